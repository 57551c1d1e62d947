/*-------------------------------------------------------------------------
 *
 * simos.c
 *		The simulated disk, and the system calls on it.
 *
 * A file has two contents: what a buffered read gives (cache), and what is on
 * the platter (disk).  A write makes sectors of 512 bytes dirty; a sync brings
 * them to the disk.  Names are held twice in the same way, with a list of the
 * changes in between.  A power cut takes each dirty sector or leaves it, in the
 * pattern of the day, in units of 512 or 4,096 bytes, and of the changes of
 * names the first few, of all files or of each.
 *
 * What a failed sync had to write is clean afterwards, landed or not: a buffered
 * read still shows it, a direct one shows the platter.
 *
 * The io_uring engine is one that carries out its steps later, in any order;
 * what it had in flight when its process ended may land late, or never.
 *
 *-------------------------------------------------------------------------
 */
#include "simos.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io_engine.h"
#include "segment.h"
#include "segment_format.h"
#include "simcalls.h"

#define SECTOR		512
#define BLOCK		4096
#define FILES		160
#define CHANGES		256
#define FLIGHTS		64
#define FD_BASE		1000
#define FD_DIRECTORY (-2)
#define NAME_LENGTH	40

typedef struct File
{
	bool		used;
	uint8	   *disk;
	uint8	   *cache;
	uint8	   *dirty;			/* a byte a sector */
	uint32		dirty_count;
	uint32		size;
	uint32		size_disk;
	bool		paged;			/* written through the page cache */
	int			links;			/* names and descriptors */
	int			locked_by;		/* descriptor */
	char		name[NAME_LENGTH];	/* "": none */
	char		name_disk[NAME_LENGTH];
} File;

/* A change of names that is not durable: this file has this name now. */
typedef struct Change
{
	int			file;
	char		name[NAME_LENGTH];
} Change;

/* A write under way, of a process that may end before it is done. */
typedef struct Flight
{
	bool		used;
	bool		late;			/* its process is gone */
	int			pid;
	GlIoOp	   *op;				/* NULL: a plain system call's */
	GlIoStep	step;
	int			file;
	int			flags;
	uint64		offset;
	int			iovcnt;
	struct iovec iov[GL_IO_MAX_IOV];
	void	   *copy;
} Flight;

static struct
{
	bool		used;
	int			pid;
	int			file;
	int			flags;
}			descriptors[256];

static File files[FILES];
static Change changes[CHANGES];
static int	change_count;
static Flight flights[FLIGHTS];
static uint32 largest;

SimFaults	sim_faults;
uint64		sim_capacity;
bool		sim_direct_io;
uint64		sim_silent_writes;

/* ----- files ----- */

void
sim_disk_format(uint32 largest_file)
{
	for (int i = 0; i < FILES; i++)
	{
		if (files[i].disk != NULL && largest != largest_file)
		{
			free(files[i].disk);
			free(files[i].cache);
			free(files[i].dirty);
			files[i].disk = NULL;
		}
		files[i].used = false;
	}
	largest = largest_file;
	change_count = 0;
	sim_silent_writes = 0;
	for (int i = 0; i < FLIGHTS; i++)
	{
		free(flights[i].copy);
		memset(&flights[i], 0, sizeof(Flight));
	}
	memset(descriptors, 0, sizeof(descriptors));
}

uint64
sim_disk_used(void)
{
	uint64		used = 0;

	for (int i = 0; i < FILES; i++)
		used += files[i].used ? files[i].size : 0;
	return used;
}

bool
sim_disk_is_used_up(void)
{
	int			used = 0;

	for (int i = 0; i < FILES; i++)
		used += files[i].used;
	return used > FILES - 30 || change_count > CHANGES - 60;
}

static uint64
disk_free(void)
{
	uint64		used = sim_disk_used();

	return used < sim_capacity ? sim_capacity - used : 0;
}

static int
file_new(void)
{
	for (int i = 0; i < FILES; i++)
	{
		File	   *file = &files[i];

		if (file->used)
			continue;
		if (file->disk == NULL)
		{
			file->disk = malloc(largest);
			file->cache = malloc(largest);
			file->dirty = malloc(largest / SECTOR);
		}
		memset(file->disk, 0, largest);
		memset(file->cache, 0, largest);
		memset(file->dirty, 0, largest / SECTOR);
		file->used = true;
		file->dirty_count = file->size = file->size_disk = 0;
		file->paged = false;
		file->locked_by = -1;
		file->name[0] = file->name_disk[0] = '\0';
		return i;
	}
	abort();
}

static int
file_find(const char *name)
{
	for (int i = 0; i < FILES; i++)
	{
		if (files[i].used && name[0] != '\0' && strcmp(files[i].name, name) == 0)
			return i;
	}
	return -1;
}

/* Is the file still named, open or being written? */
static void
file_release(int index)
{
	File	   *file = &files[index];

	if (index < 0 || file->name[0] != '\0' || file->name_disk[0] != '\0')
		return;
	for (int i = 0; i < lengthof(descriptors); i++)
	{
		if (descriptors[i].used && descriptors[i].file == index)
			return;
	}
	for (int i = 0; i < change_count; i++)
	{
		if (changes[i].file == index)
			return;
	}
	for (int i = 0; i < FLIGHTS; i++)
	{
		if (flights[i].used && flights[i].file == index)
			return;
	}
	file->used = false;
}

static void
file_rename(int index, const char *name)
{
	strlcpy(files[index].name, name, NAME_LENGTH);
	if (change_count == CHANGES)
		abort();
	changes[change_count].file = index;
	strlcpy(changes[change_count++].name, name, NAME_LENGTH);
}

static void
names_land(void)
{
	change_count = 0;
	for (int i = 0; i < FILES; i++)
	{
		if (!files[i].used)
			continue;
		strlcpy(files[i].name_disk, files[i].name, NAME_LENGTH);
		file_release(i);
	}
}

static void
put(File *file, uint64 offset, const void *data, uint32 size, int flags)
{
	memcpy(file->cache + offset, data, size);
	if (offset + size > file->size)
		file->size = (uint32) (offset + size);
	file->paged = file->paged || !(flags & O_DIRECT);
	for (uint32 s = (uint32) (offset / SECTOR); s < (offset + size + SECTOR - 1) / SECTOR; s++)
	{
		if (flags & O_DSYNC)
		{
			memcpy(file->disk + s * SECTOR, file->cache + s * SECTOR, SECTOR);
			file->dirty_count -= file->dirty[s];
			file->dirty[s] = 0;
			file->size_disk = Max(file->size_disk, Min(file->size, (s + 1) * SECTOR));
		}
		else
		{
			file->dirty_count += !file->dirty[s];
			file->dirty[s] = 1;
		}
	}
}

static void
sync_file(File *file)
{
	file->size_disk = file->size;
	for (uint32 s = 0; file->dirty_count > 0 && s < largest / SECTOR; s++)
	{
		if (!file->dirty[s])
			continue;
		memcpy(file->disk + s * SECTOR, file->cache + s * SECTOR, SECTOR);
		file->dirty[s] = 0;
		file->dirty_count--;
	}
}

/* Each dirty sector lands or does not; none is dirty afterwards. */
static void
sectors_land(File *file)
{
	uint32		unit = sim_chance(2) ? 1 : BLOCK / SECTOR;
	uint32		pattern = sim_below(8);
	uint32		cut;
	uint32		seen = 0;
	bool		lands = false;

	if (file->dirty_count == 0)
		return;
	cut = sim_below(file->dirty_count);
	for (uint32 s = 0; s < largest / SECTOR; s++)
	{
		if (!file->dirty[s])
			continue;
		if (seen == 0 || s % unit == 0)
		{
			switch (pattern)
			{
				case 0:
					lands = false;
					break;
				case 1:
					lands = true;
					break;
				case 2:
					lands = seen < cut;
					break;
				case 3:
					lands = seen >= cut;
					break;
				case 4:
					lands = !(seen <= cut && cut < seen + unit);
					break;
				case 5:
					lands = seen <= cut && cut < seen + unit;
					break;
				default:
					lands = sim_chance(2);
					break;
			}
		}
		if (lands)
		{
			memcpy(file->disk + s * SECTOR, file->cache + s * SECTOR, SECTOR);
			file->size_disk = Max(file->size_disk, Min(file->size, (s + 1) * SECTOR));
		}
		file->dirty[s] = 0;
		seen++;
	}
	file->dirty_count = 0;
}

/* Some of a write's sectors arrive, dirty. */
static void
flight_lands(Flight *flight, bool whole)
{
	File	   *file = &files[flight->file];
	uint64		at = flight->offset;
	uint32		pattern = whole ? 0 : sim_below(4);

	for (int i = 0; i < flight->iovcnt; i++)
	{
		const uint8 *data = flight->iov[i].iov_base;

		for (uint64 done = 0; done < flight->iov[i].iov_len;)
		{
			uint64		part = Min(SECTOR - at % SECTOR, flight->iov[i].iov_len - done);

			if (at + part <= largest &&
				(pattern == 0 || (pattern > 1 && sim_chance(2))))
				put(file, at, data + done, (uint32) part, flight->flags & ~O_DSYNC);
			at += part;
			done += part;
		}
	}
}

static void
flight_end(Flight *flight)
{
	int			file = flight->file;

	free(flight->copy);
	memset(flight, 0, sizeof(Flight));
	file_release(file);
}

static Flight *
flight_begin(int file, int flags, uint64 offset, const struct iovec *iov, int iovcnt)
{
	for (int i = 0; i < FLIGHTS; i++)
	{
		Flight	   *flight = &flights[i];

		if (flight->used)
			continue;
		flight->used = true;
		flight->pid = sim_self ? sim_self->pid : 0;
		flight->file = file;
		flight->flags = flags;
		flight->offset = offset;
		flight->iovcnt = iovcnt;
		memcpy(flight->iov, iov, iovcnt * sizeof(struct iovec));
		return flight;
	}
	abort();
}

void
sim_disk_late_writes(void)
{
	for (int i = 0; i < FLIGHTS; i++)
	{
		if (flights[i].used && flights[i].late && sim_chance(4))
		{
			flight_lands(&flights[i], !sim_chance(3));
			flight_end(&flights[i]);
		}
	}
}

/* It goes on by itself, with a copy of what it had to write. */
static void
flight_is_late(Flight *flight)
{
	uint64		size = 0;
	uint8	   *at;

	for (int j = 0; j < flight->iovcnt; j++)
		size += flight->iov[j].iov_len;
	at = flight->copy = malloc(size + 1);
	for (int j = 0; j < flight->iovcnt; j++)
	{
		memcpy(at, flight->iov[j].iov_base, flight->iov[j].iov_len);
		at += flight->iov[j].iov_len;
	}
	flight->iov[0].iov_base = flight->copy;
	flight->iov[0].iov_len = size;
	flight->iovcnt = 1;
	flight->op = NULL;
	flight->step = GL_IO_STEP_WRITE;
	flight->late = true;
}

void
sim_files_of_process_gone(int pid)
{
	for (int i = 0; i < FLIGHTS; i++)
	{
		Flight	   *flight = &flights[i];

		if (!flight->used || flight->late || flight->pid != pid)
			continue;
		if (flight->step != GL_IO_STEP_WRITE || sim_chance(3))
		{
			if (flight->step == GL_IO_STEP_WRITE && sim_chance(2))
				flight_lands(flight, !sim_chance(3));
			flight_end(flight);
			continue;
		}
		flight_is_late(flight);
	}
	for (int i = 0; i < lengthof(descriptors); i++)
	{
		if (descriptors[i].used && descriptors[i].pid == pid)
			(void) sim_close(FD_BASE + i);
	}
}

void
sim_disk_crash(bool power)
{
	int			stop[FILES];

	/* of all processes: in flight, then perhaps landed */
	for (int i = 0; i < FLIGHTS; i++)
	{
		if (!flights[i].used)
			continue;
		if (flights[i].step == GL_IO_STEP_WRITE)
			flight_lands(&flights[i], false);
		flight_end(&flights[i]);
	}
	memset(descriptors, 0, sizeof(descriptors));
	for (int i = 0; i < FILES; i++)
		files[i].locked_by = -1;

	if (!power)
		return;

	/* of the changes of names the first few, of all files or of each */
	for (int i = 0, same = sim_chance(2) ? (int) sim_below(change_count + 1) : -1; i < FILES; i++)
	{
		stop[i] = same >= 0 ? same : (int) sim_below(change_count + 1);
		if (files[i].used)
			strlcpy(files[i].name, files[i].name_disk, NAME_LENGTH);
	}
	for (int i = 0; i < change_count; i++)
	{
		int			other;

		if (i >= stop[changes[i].file])
			continue;
		other = file_find(changes[i].name);
		if (other >= 0)
			files[other].name[0] = '\0';
		strlcpy(files[changes[i].file].name, changes[i].name, NAME_LENGTH);
	}
	change_count = 0;

	for (int i = 0; i < FILES; i++)
	{
		File	   *file = &files[i];

		if (!file->used)
			continue;
		sectors_land(file);
		/* a truncation, or growth, that was not synced */
		if (sim_chance(2))
			file->size_disk = file->size;
		file->size = file->size_disk;
		memset(file->disk + file->size, 0, largest - file->size);
		memcpy(file->cache, file->disk, largest);
		file->paged = false;
		strlcpy(file->name_disk, file->name, NAME_LENGTH);
		file_release(i);
	}
}

/* A file of the log is gone; not the oldest, whose loss nothing shows. */
static bool
lose_file(char *what, Size size)
{
	uint32		oldest = UINT32_MAX;
	uint32		known = 0;
	int			control = file_find(GL_CONTROL_NAME);

	if (control >= 0)
		memcpy(&known, files[control].disk + 48, sizeof(known));
	for (int round = 0; round < 2; round++)
	{
		int			start = (int) sim_below(FILES);

		for (int i = 0; i < FILES; i++)
		{
			File	   *file = &files[(start + i) % FILES];
			uint32		number;
			uint64		first_lsn;

			if (!file->used || !gl_segment_name_parse(file->name, &number, &first_lsn))
				continue;
			if (round == 0)
				oldest = Min(oldest, number);
			else if (number > oldest && number <= known)
			{
				snprintf(what, size, "the loss of %s", file->name);
				file->name[0] = file->name_disk[0] = '\0';
				file_release((start + i) % FILES);
				return true;
			}
		}
	}
	return false;
}

bool
sim_disk_damage(char *what, Size size)
{
	int			index = -1;
	int			seen = 0;
	uint32		at;
	File	   *file;

	for (int i = 0; i < FILES; i++)
	{
		if (files[i].used && strcmp(files[i].name, GL_LOCK_NAME) != 0 && files[i].name[0] != '\0' &&
			files[i].size > 0 && (index < 0 || sim_below(++seen) == 0))
			index = i;
	}
	if (index < 0)
		return false;
	if (sim_chance(8))
		return lose_file(what, size);
	file = &files[index];
	if (sim_chance(8))
		at = sim_below(BLOCK);
	else
	{
		/* where there is something */
		at = sim_below(file->size);
		for (int tries = 0; tries < 8 && file->disk[at] == 0; tries++)
			at = sim_below(file->size);
	}
	if (at >= file->size)
		return false;
	sync_file(file);
	switch (sim_below(6))
	{
		case 0:
		case 1:
		case 2:
			file->disk[at] ^= (uint8) (1 << sim_below(8));
			snprintf(what, size, "a bit of byte %u of %s", at, file->name);
			break;
		case 3:
			memset(file->disk + at / SECTOR * SECTOR, 0, SECTOR);
			snprintf(what, size, "a sector of zeros at %u of %s", at / SECTOR * SECTOR, file->name);
			break;
		case 4:
			for (uint32 i = 0; i < SECTOR; i++)
				file->disk[at / SECTOR * SECTOR + i] = (uint8) sim_random();
			snprintf(what, size, "a sector of garbage at %u of %s", at / SECTOR * SECTOR, file->name);
			break;
		default:
			{
				/* one sector under another's address */
				uint32		from = sim_below(file->size / SECTOR + 1) * SECTOR;

				if (from + SECTOR <= largest)
					memcpy(file->disk + at / SECTOR * SECTOR, file->disk + from, SECTOR);
				snprintf(what, size, "sector %u of %s has come to %u", from, file->name,
						 at / SECTOR * SECTOR);
			}
			break;
	}
	memcpy(file->cache, file->disk, largest);
	return true;
}

/* ----- system calls ----- */

static bool
fails(uint32 one_in)
{
	return !sim_quiet && sim_chance(one_in);
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
	file = name[0] == '\0' ? FD_DIRECTORY : file_find(name);
	if (file == -1)
	{
		if (!(flags & O_CREAT))
			return fail(ENOENT);
		if (disk_free() == 0)
			return fail(ENOSPC);
		file = file_new();
		file_rename(file, name);
	}
	else if (file >= 0 && (flags & O_TRUNC))
		files[file].size = 0;
	for (fd = 0; fd < lengthof(descriptors) && descriptors[fd].used; fd++)
		;
	if (fd == lengthof(descriptors))
		return fail(EMFILE);
	descriptors[fd].used = true;
	descriptors[fd].pid = sim_self ? sim_self->pid : 0;
	descriptors[fd].file = file;
	descriptors[fd].flags = flags;
	return FD_BASE + fd;
}

int
sim_close(int fd)
{
	int			file;

	fd -= FD_BASE;
	if (fd < 0 || fd >= lengthof(descriptors) || !descriptors[fd].used)
		return fail(EBADF);
	file = descriptors[fd].file;
	descriptors[fd].used = false;
	if (file >= 0)
	{
		if (files[file].locked_by == fd)
			files[file].locked_by = -1;
		file_release(file);
	}
	return 0;
}

static int
file_of(int fd)
{
	fd -= FD_BASE;
	if (fd < 0 || fd >= lengthof(descriptors) || !descriptors[fd].used)
	{
		violation("descriptor %d is not open", fd + FD_BASE);
		return -1;
	}
	return descriptors[fd].file;
}

int
sim_flock(int fd, int operation)
{
	int			file = file_of(fd);

	if (file < 0)
		return fail(EBADF);
	if (files[file].locked_by >= 0 && files[file].locked_by != fd - FD_BASE)
		return fail(EWOULDBLOCK);
	files[file].locked_by = fd - FD_BASE;
	return 0;
}

ssize_t
sim_pread(int fd, void *buf, size_t size, off_t offset)
{
	int			index = file_of(fd);
	File	   *file = &files[index];
	bool		direct;

	sim_step();
	if (index < 0)
		return fail(EBADF);
	direct = (descriptors[fd - FD_BASE].flags & O_DIRECT) != 0;
	if (direct && (offset % SECTOR != 0 || size % SECTOR != 0 || (uintptr_t) buf % SECTOR != 0))
		return fail(EINVAL);
	if (offset >= file->size)
		return 0;
	size = Min(size, file->size - (size_t) offset);
	memcpy(buf, file->cache + offset, size);
	if (direct)
	{
		for (size_t at = 0; at < size; at += SECTOR)
		{
			if (!file->dirty[(offset + at) / SECTOR])
				memcpy((uint8 *) buf + at, file->disk + offset + at, Min(SECTOR, size - at));
		}
	}
	return (ssize_t) size;
}

/* The whole of one write as the device does it.  Returns bytes, or -errno. */
static int64
do_write(int index, int flags, uint64 offset, const struct iovec *iov, int iovcnt)
{
	File	   *file = &files[index];
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
	if (offset + size > largest)
	{
		violation("write of %u bytes at %u, beyond the largest file", (uint32) size, (uint32) offset);
		return -EFBIG;
	}
	if (fails(sim_faults.write))
	{
		Flight		partial = {.file = index,.flags = flags,.offset = offset,.iovcnt = iovcnt};

		memcpy(partial.iov, iov, iovcnt * sizeof(struct iovec));
		flight_lands(&partial, false);
		/* or later, when nobody expects it any more */
		if (sim_chance(4))
			flight_is_late(flight_begin(index, flags, offset, iov, iovcnt));
		/* of a direct write that is on the platter or not, and nobody knows */
		if (flags & O_DIRECT)
		{
			sectors_land(file);
			memcpy(file->cache, file->disk, largest);
		}
		return -EIO;
	}
	room = file->size > offset ? file->size - offset : 0;
	room += disk_free();
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
		if (sim_chance(sim_faults.stray_write) && largest > size + BLOCK)
		{
			sim_silent_writes++;
			offset = sim_below((largest - (uint32) size) / BLOCK) * BLOCK;
			if (offset + size > file->size)
				return (int64) size;
		}
	}
	for (int i = 0; i < iovcnt && done < size; i++)
	{
		uint64		part = Min(iov[i].iov_len, size - done);

		put(file, offset + done, iov[i].iov_base, (uint32) part, flags);
		done += part;
	}
	return (int64) size;
}

static int64
do_sync(int index)
{
	File	   *file = &files[index];

	if (index == FD_DIRECTORY)
	{
		if (fails(sim_faults.directory))
			return -EIO;
		names_land();
		return 0;
	}
	if (fails(sim_faults.sync))
	{
		sectors_land(file);
		if (!file->paged)
			memcpy(file->cache, file->disk, largest);
		return -EIO;
	}
	sync_file(file);
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
	flags = descriptors[fd - FD_BASE].flags;
	flight = flight_begin(index, flags, (uint64) offset, iov, iovcnt);
	flight->step = GL_IO_STEP_WRITE;
	sim_step();
	flight_end(flight);
	result = do_write(index, flags, (uint64) offset, iov, iovcnt);
	sim_step();
	return result < 0 ? fail((int) -result) : result;
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
	int			file = file_find(name_of(from));
	int			other;

	sim_step();
	if (file < 0)
		return fail(ENOENT);
	if (fails(sim_faults.name))
		return fail(EIO);
	other = file_find(name_of(to));
	/* what is replaced goes with the change that replaces it, not before */
	if (other >= 0 && other != file)
		files[other].name[0] = '\0';
	file_rename(file, name_of(to));
	file_release(other);
	return 0;
}

int
sim_unlink(const char *path)
{
	int			file = file_find(name_of(path));

	sim_step();
	if (file < 0)
		return fail(ENOENT);
	if (fails(sim_faults.name))
		return fail(EIO);
	file_rename(file, "");
	file_release(file);
	return 0;
}

int
sim_truncate(const char *path, off_t size)
{
	int			index = file_find(name_of(path));
	File	   *file = &files[index];

	sim_step();
	if (index < 0)
		return fail(ENOENT);
	if (fails(sim_faults.name))
		return fail(EIO);
	if (size < file->size)
	{
		for (uint32 s = (uint32) (size + SECTOR - 1) / SECTOR; s < largest / SECTOR; s++)
		{
			file->dirty_count -= file->dirty[s];
			file->dirty[s] = 0;
		}
		memset(file->cache + size, 0, largest - (uint32) size);
		file->size = (uint32) size;
	}
	return 0;
}

int
sim_fstat(int fd, struct stat *st)
{
	int			file = file_of(fd);

	if (file < 0)
		return fail(EBADF);
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFREG | 0600;
	st->st_size = files[file].size;
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
	file = file_find(name);
	if (file < 0)
		return fail(ENOENT);
	st->st_mode = S_IFREG | 0600;
	st->st_size = files[file].size;
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
	st->f_bavail = disk_free();
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
		const File *file = &files[(*at)++];

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
	Flight	   *flight = flight_begin(file, descriptors[op->fd - FD_BASE].flags,
									  gl_io_write_offset(op), op->work_iov, op->work_iovcnt);

	flight->op = op;
	flight->step = step;
}

static void
engine_submit(GlIo *io, GlIoOp *op, GlIoStep first)
{
	engine_start(op, first);
}

static void
engine_reap(GlIo *io)
{
	int			start = (int) sim_below(FLIGHTS);

	for (int i = 0; i < FLIGHTS; i++)
	{
		Flight	   *flight = &flights[(start + i) % FLIGHTS];
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
		flight_end(flight);
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
