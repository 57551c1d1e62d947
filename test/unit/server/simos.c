/*-------------------------------------------------------------------------
 *
 * simos.c
 *		System calls on the simulated disk, and an io_uring engine.
 *
 * The engine is one that carries out its steps later, in any order; what it had
 * in flight when its process ended may land late, or never.
 *
 *-------------------------------------------------------------------------
 */
#include "disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "segment.h"
#include "shared.h"
#include "simcalls.h"

static bool
fails(uint32 one_in)
{
	if (sim_quiet || !sim_chance(one_in))
		return false;
	/* misfortunes come together: what a failure leaves is there for a moment only */
	if (sim_steps_to_crash > 0 && sim_chance(20))
		sim_steps_to_crash = 1 + sim_below(60);
	return true;
}

static const char *
name_of(const char *path)
{
	Size		length = strlen(gl_directory_name);

	if (strncmp(path, gl_directory_name, length) != 0)
		return NULL;
	if (path[length] == '\0')
		return "";
	return path[length] == '/' ? path + length + 1 : NULL;
}

static int
fail(int error)
{
	errno = error;
	return -1;
}

int
sim_open(const char *path, int flags)
{
	const char *name = name_of(path);
	int			file;
	int			fd;

	sim_step();
	if (name == NULL)
		return fail(ENOENT);
	if ((flags & O_DIRECT) && !sim_direct_io)
		return fail(EINVAL);
	if (fails(sim_faults.name))
		return fail(EIO);
	file = name[0] == '\0' ? FD_DIRECTORY : disk_file_find(name);
	if (file == -1)
	{
		if (!(flags & O_CREAT))
			return fail(ENOENT);
		if (disk_free_bytes() == 0)
			return fail(ENOSPC);
		file = disk_file_new();
		disk_file_rename(file, name);
	}
	else if (file >= 0 && (flags & O_TRUNC))
		disk_files[file].size = 0;
	for (fd = 0; fd < lengthof(disk_descriptors) && disk_descriptors[fd].used; fd++)
		;
	if (fd == lengthof(disk_descriptors))
		return fail(EMFILE);
	disk_descriptors[fd].used = true;
	disk_descriptors[fd].pid = sim_self ? sim_self->pid : 0;
	disk_descriptors[fd].file = file;
	disk_descriptors[fd].flags = flags;
	return FD_BASE + fd;
}

int
sim_close(int fd)
{
	int			file;

	fd -= FD_BASE;
	if (fd < 0 || fd >= lengthof(disk_descriptors) || !disk_descriptors[fd].used)
		return fail(EBADF);
	file = disk_descriptors[fd].file;
	disk_descriptors[fd].used = false;
	if (file >= 0)
	{
		if (disk_files[file].locked_by == fd)
			disk_files[file].locked_by = -1;
		disk_file_release(file);
	}
	return 0;
}

static int
file_of(int fd)
{
	fd -= FD_BASE;
	if (fd < 0 || fd >= lengthof(disk_descriptors) || !disk_descriptors[fd].used)
	{
		violation("descriptor %d is not open", fd + FD_BASE);
		return -1;
	}
	return disk_descriptors[fd].file;
}

int
sim_flock(int fd, int operation)
{
	int			file = file_of(fd);

	if (file < 0)
		return fail(EBADF);
	if (disk_files[file].locked_by >= 0 && disk_files[file].locked_by != fd - FD_BASE)
		return fail(EWOULDBLOCK);
	disk_files[file].locked_by = fd - FD_BASE;
	return 0;
}

ssize_t
sim_pread(int fd, void *buf, size_t size, off_t offset)
{
	int			index = file_of(fd);
	const SimFile *file;
	bool		direct;

	sim_step();
	if (index < 0)
		return fail(EBADF);
	if (fails(sim_faults.read))
		return fail(EIO);
	file = &disk_files[index];
	direct = (disk_descriptors[fd - FD_BASE].flags & O_DIRECT) != 0;
	if (direct && (offset % SECTOR != 0 || size % SECTOR != 0 || (uintptr_t) buf % SECTOR != 0))
		return fail(EINVAL);
	if (offset >= file->size)
		return 0;
	size = Min(size, file->size - (size_t) offset);
	memcpy(buf, file->data.cache + offset, size);
	if (direct)
	{
		for (size_t at = 0; at < size; at += SECTOR)
		{
			if (!file->data.dirty[(offset + at) / SECTOR])
				memcpy((uint8 *) buf + at, file->data.disk + offset + at, Min(SECTOR, size - at));
		}
	}
	return (ssize_t) size;
}

/* The whole of one write as the device does it.  Returns bytes, or -errno. */
static int64
write_file(int index, int flags, uint64 offset, const struct iovec *iov, int iovcnt)
{
	SimFile    *file = &disk_files[index];
	uint64		size = 0;
	uint64		done = 0;
	uint64		room;

	for (int i = 0; i < iovcnt; i++)
	{
		size += iov[i].iov_len;
		if ((flags & O_DIRECT) &&
			(iov[i].iov_len % SECTOR != 0 || (uintptr_t) iov[i].iov_base % SECTOR != 0))
			return -EINVAL;
	}
	if ((flags & O_DIRECT) && offset % SECTOR != 0)
		return -EINVAL;
	if (offset + size > disk_largest)
	{
		violation("write of %u bytes at %u, beyond the largest file", (uint32) size, (uint32) offset);
		return -EFBIG;
	}
	if (fails(sim_faults.write))
	{
		Flight		partial = {.file = index,.flags = flags,.offset = offset,.iovcnt = iovcnt};

		memcpy(partial.iov, iov, iovcnt * sizeof(struct iovec));
		disk_flight_lands(&partial, false);
		/* or later, when nobody expects it any more */
		if (sim_chance(4))
			disk_flight_is_late(disk_flight_begin(index, flags, offset, iov, iovcnt));
		/* of a direct write that is on the platter or not, and nobody knows */
		if (flags & O_DIRECT)
		{
			disk_sectors_land(file);
			memcpy(file->data.cache, file->data.disk, disk_largest);
		}
		return -EIO;
	}
	room = file->size > offset ? file->size - offset : 0;
	room += disk_free_bytes();
	if (size > room)
		size = room / SECTOR * SECTOR;
	if (size == 0)
		return -ENOSPC;
	if (size > SECTOR && fails(sim_faults.short_write))
		size = (1 + sim_below((uint32) (size / SECTOR) - 1)) * SECTOR;
	if (!sim_quiet && strstr(file->name, ".seg") != NULL)
	{
		if (sim_chance(sim_faults.lost_write))
		{
			sim_silent_writes++;
			return (int64) size;
		}
		if (sim_chance(sim_faults.stray_write) && disk_largest > size + BLOCK)
		{
			sim_silent_writes++;
			offset = sim_below((disk_largest - (uint32) size) / BLOCK) * BLOCK;
			if (offset + size > file->size)
				return (int64) size;
		}
	}
	for (int i = 0; i < iovcnt && done < size; i++)
	{
		uint64		part = Min(iov[i].iov_len, size - done);

		disk_put(file, offset + done, iov[i].iov_base, (uint32) part, flags);
		done += part;
	}
	return (int64) size;
}

/*
 * What a failure leaves in a segment nobody knows, and a later sync that succeeds
 * says nothing of it: the log must go on in another file.  Recovery, which reads
 * what there is and writes it anew, may try again.
 */
static void
note_failure(SimFile *file)
{
	if (atomic_load(&gl_shared->state) == GL_STATE_OPEN && disk_is_segment(file))
		file->failed = true;
}

static int64
do_write(int index, int flags, uint64 offset, const struct iovec *iov, int iovcnt)
{
	SimFile    *file = &disk_files[index];
	int64		result;

	if (file->failed)
		violation("process %d writes to %s, where a write or sync has failed",
				  sim_self ? sim_self->pid : 0, file->name);
	result = write_file(index, flags, offset, iov, iovcnt);
	if (result < 0)
		note_failure(file);
	return result;
}

static int64
do_sync(int index)
{
	SimFile    *file;

	if (index == FD_DIRECTORY)
	{
		if (fails(sim_faults.directory))
			return -EIO;
		disk_names_land();
		return 0;
	}
	file = &disk_files[index];
	if (fails(sim_faults.sync))
	{
		note_failure(file);
		disk_sectors_land(file);
		if (!file->paged)
			memcpy(file->data.cache, file->data.disk, disk_largest);
		return -EIO;
	}
	disk_sync_file(file);
	return 0;
}

ssize_t
sim_pwritev(int fd, const struct iovec *iov, int iovcnt, off_t offset)
{
	int			index = file_of(fd);
	int			flags;
	int64		result;
	Flight	   *flight;

	if (index < 0)
		return fail(EBADF);
	flags = disk_descriptors[fd - FD_BASE].flags;
	flight = disk_flight_begin(index, flags, (uint64) offset, iov, iovcnt);
	flight->step = GL_IO_STEP_WRITE;
	sim_step();
	disk_flight_end(flight);
	result = do_write(index, flags, (uint64) offset, iov, iovcnt);
	sim_step();
	return result < 0 ? fail((int) -result) : result;
}

ssize_t
sim_preadv(int fd, const struct iovec *iov, int iovcnt, off_t offset)
{
	return sim_pread(fd, iov[0].iov_base, iov[0].iov_len, offset);
}

ssize_t
sim_pwrite(int fd, const void *buf, size_t size, off_t offset)
{
	struct iovec iov = {.iov_base = unconstify(void *, buf),.iov_len = size};

	return sim_pwritev(fd, &iov, 1, offset);
}

int
sim_fsync(int fd)
{
	int			index = file_of(fd);
	int64		result;

	if (index == -1)
		return fail(EBADF);
	sim_step();
	result = do_sync(index);
	sim_step();
	return result < 0 ? fail((int) -result) : 0;
}

int
sim_fdatasync(int fd)
{
	return sim_fsync(fd);
}

int
sim_rename(const char *from, const char *to)
{
	int			file = disk_file_find(name_of(from));
	int			other;

	sim_step();
	if (file < 0)
		return fail(ENOENT);
	if (fails(sim_faults.name))
		return fail(EIO);
	other = disk_file_find(name_of(to));
	/* what is replaced goes with the change that replaces it, not before */
	if (other >= 0 && other != file)
		disk_files[other].name[0] = '\0';
	disk_file_rename(file, name_of(to));
	disk_file_release(other);
	return 0;
}

int
sim_unlink(const char *path)
{
	int			file = disk_file_find(name_of(path));

	sim_step();
	if (file < 0)
		return fail(ENOENT);
	if (fails(sim_faults.name))
		return fail(EIO);
	disk_file_rename(file, "");
	disk_file_release(file);
	return 0;
}

static int
cut(int index, off_t size, int error_if_none)
{
	SimFile    *file;

	sim_step();
	if (index < 0)
		return fail(error_if_none);
	if (fails(sim_faults.name))
		return fail(EIO);
	file = &disk_files[index];
	if (size >= file->size)
		return 0;
	for (uint32 s = (uint32) (size + SECTOR - 1) / SECTOR; s < disk_largest / SECTOR; s++)
	{
		file->data.dirty_count -= file->data.dirty[s];
		file->data.dirty[s] = 0;
	}
	memset(file->data.cache + size, 0, disk_largest - (uint32) size);
	file->size = (uint32) size;
	return 0;
}

int
sim_truncate(const char *path, off_t size)
{
	return cut(disk_file_find(name_of(path)), size, ENOENT);
}

int
sim_ftruncate(int fd, off_t size)
{
	return cut(file_of(fd), size, EBADF);
}

int
sim_fstat(int fd, struct stat *st)
{
	int			file = file_of(fd);

	if (file < 0)
		return fail(EBADF);
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFREG | 0600;
	st->st_nlink = disk_files[file].name[0] != '\0';
	st->st_size = disk_files[file].size;
	return 0;
}

int
sim_stat(const char *path, struct stat *st)
{
	const char *name = name_of(path);
	int			file;

	memset(st, 0, sizeof(*st));
	if (name == NULL)
		return fail(ENOENT);
	if (name[0] == '\0')
	{
		st->st_mode = S_IFDIR | 0700;
		return 0;
	}
	file = disk_file_find(name);
	if (file < 0)
		return fail(ENOENT);
	st->st_mode = S_IFREG | 0600;
	st->st_size = disk_files[file].size;
	return 0;
}

int
sim_lstat(const char *path, struct stat *st)
{
	return sim_stat(path, st);
}

int
sim_access(const char *path, int mode)
{
	struct stat st;

	return sim_stat(path, &st);
}

int
sim_statvfs(const char *path, struct statvfs *st)
{
	memset(st, 0, sizeof(*st));
	st->f_frsize = 1;
	st->f_bavail = disk_free_bytes();
	return 0;
}

/* One listing at a time a process: at is all it needs. */
struct dirent *
sim_readdir(DIR *dir)
{
	static struct dirent entry;
	int		   *at = (int *) dir;

	while (*at < FILES)
	{
		const SimFile *file = &disk_files[(*at)++];

		if (!file->used || file->name[0] == '\0')
			continue;
		strlcpy(entry.d_name, file->name, sizeof(entry.d_name));
		return &entry;
	}
	return NULL;
}

/* ----- the engine that works behind one's back ----- */

static void
engine_start(GlIoOp *op, GlIoStep step)
{
	int			file = file_of(op->fd);
	Flight	   *flight = disk_flight_begin(file, disk_descriptors[op->fd - FD_BASE].flags,
									  gl_io_write_offset(op), op->work_iov, op->work_iovcnt);

	flight->op = op;
	flight->step = step;
}

static void
engine_submit(GlIo *io, GlIoOp *op, GlIoStep first)
{
	if (first == GL_IO_STEP_READ)
	{
		gl_io_run(op, first);
		gl_io_finished(io);
	}
	else
		engine_start(op, first);
}

static void
engine_reap(GlIo *io)
{
	int			start = (int) sim_below(FLIGHTS);

	for (int i = 0; i < FLIGHTS; i++)
	{
		Flight	   *flight = &disk_flights[(start + i) % FLIGHTS];
		GlIoOp	   *op = flight->op;
		GlIoStep	next;
		int64		result;

		if (!flight->used || op == NULL || flight->pid != sim_self->pid || !sim_chance(3))
			continue;
		if (sim_chance(100))
			result = -EINTR;
		else if (flight->step == GL_IO_STEP_WRITE)
			result = do_write(flight->file, flight->flags, flight->offset, flight->iov, flight->iovcnt);
		else
			result = do_sync(flight->file);
		disk_flight_end(flight);
		next = gl_io_next(op, result);
		if (next == GL_IO_STEP_END)
			gl_io_finished(io);
		else
			engine_start(op, next);
	}
	sim_step();
}

static int
engine_fd(GlIo *io)
{
	return FD_BASE - 1;
}

static void
engine_close(GlIo *io)
{
	/* the kernel has it still: see sim_files_of_process_gone */
	free(io);
}

static const GlIoEngine engine = {
	.submit = engine_submit,
	.reap = engine_reap,
	.fd = engine_fd,
	.close = engine_close,
};

GlIo *
gl_io_uring_open(char *reason, size_t reason_size)
{
	GlIo	   *io = calloc(1, sizeof(GlIo));

	io->engine = &engine;
	return io;
}
