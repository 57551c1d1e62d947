/*-------------------------------------------------------------------------
 *
 * faultfs.c
 *		A pass-through file system that fails as it is told.
 *
 *	faultfs BACKING MOUNTPOINT SOCKET
 *
 * Stays in the foreground until unmounted.  BACKING is an empty folder; what is
 * in it is explained in disk.h.  Nothing is cached by the kernel, so each write
 * and sync of a program arrives here, whichever way it was made (system call,
 * io_uring, O_DIRECT, O_DSYNC).
 *
 * Commands come over the socket: see knobs.h.
 *
 *-------------------------------------------------------------------------
 */
#define FUSE_USE_VERSION 31

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "knobs.h"

typedef struct Handle
{
	Node	   *node;
	int			flags;
} Handle;

/* By its name of now: a spare becomes a segment while it is open. */
static int
class_of(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	size_t		length = strlen(name);

	if (strncmp(name, "spare-", 6) == 0)
		return SPARE;
	if (strncmp(name, "control", 7) == 0)
		return CONTROL;
	return length == 29 && strcmp(name + 25, ".seg") == 0 ? SEGMENT : OTHER;
}

/* Of a call other than read and write: 0, or -errno. */
static int
call_fails(int on, int class, bool changes)
{
	Strike		fault;

	if (power_is_off)
		return -EIO;
	fault = strike(on, class);
	if (fault.cut && !power_is_off)
		cut_power();
	if (power_is_off)
		return -EIO;
	if (changes && read_only)
		return -EROFS;
	return -fault.error;
}

static const char *
seen_path(char *full, const char *path)
{
	snprintf(full, NAME_SIZE, "data%s", path);
	return full;
}

/* ---- names ---- */

static void *
fs_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
	/* with it, the kernel makes an I/O error of a short write */
	connection->want &= ~FUSE_CAP_ASYNC_DIO;
	/* a power cut changes names and sizes behind the kernel's back */
	config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
	config->hard_remove = 1;
	config->use_ino = 0;
	config->nullpath_ok = 1;
	return NULL;
}

static int
fs_getattr(const char *path, struct stat *st, struct fuse_file_info *file)
{
	char		full[NAME_SIZE];

	if (file != NULL)
		return fstat(((Handle *) (uintptr_t) file->fh)->node->fd, st) == 0 ? 0 : -errno;
	return fstatat(disk_root(), seen_path(full, path), st, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

static int
fs_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
		   struct fuse_file_info *file, enum fuse_readdir_flags flags)
{
	char		full[NAME_SIZE];
	const char *name = (const char *) (uintptr_t) file->fh;
	int			fd = openat(disk_root(), seen_path(full, name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR		   *dir;
	struct dirent *entry;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	while ((entry = readdir(dir)) != NULL)
		fill(buffer, entry->d_name, NULL, 0, 0);
	closedir(dir);
	return 0;
}

static int
fs_opendir(const char *path, struct fuse_file_info *file)
{
	file->fh = (uintptr_t) strdup(path);
	return file->fh != 0 ? 0 : -ENOMEM;
}

static int
fs_releasedir(const char *path, struct fuse_file_info *file)
{
	free((void *) (uintptr_t) file->fh);
	return 0;
}

/* Whichever directory: there is one list of changes. */
static int
fs_fsyncdir(const char *path, int datasync, struct fuse_file_info *file)
{
	int			failed;

	lock();
	failed = call_fails(ON_NAMES, ~0, false);
	if (failed == 0)
		disk_sync_names();
	return unlock(failed);
}

static int
fs_mkdir(const char *path, mode_t mode)
{
	char		full[NAME_SIZE];
	struct fuse_context *caller = fuse_get_context();
	int			failed;

	lock();
	failed = call_fails(ON_CREATE, OTHER, true);
	if (failed == 0 && mkdirat(disk_root(), seen_path(full, path), mode) != 0)
		failed = -errno;
	if (failed == 0 && fchownat(disk_root(), full, caller->uid, caller->gid, 0) != 0)
		failed = -errno;
	return unlock(failed);
}

static int
fs_unlink(const char *path)
{
	char		full[NAME_SIZE];
	int			failed;

	lock();
	failed = call_fails(ON_UNLINK, class_of(path), true);
	if (failed == 0)
		failed = disk_unlink(seen_path(full, path));
	return unlock(failed);
}

static int
fs_rename(const char *from, const char *to, unsigned int flags)
{
	char		full_from[NAME_SIZE];
	char		full_to[NAME_SIZE];
	int			failed;

	if (flags != 0)
		return -EINVAL;
	lock();
	failed = call_fails(ON_RENAME, class_of(from) | class_of(to), true);
	if (failed == 0)
		failed = disk_rename(seen_path(full_from, from), seen_path(full_to, to));
	return unlock(failed);
}

static int
fs_chmod(const char *path, mode_t mode, struct fuse_file_info *file)
{
	char		full[NAME_SIZE];

	return fchmodat(disk_root(), seen_path(full, path), mode, 0) == 0 ? 0 : -errno;
}

static int
fs_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *file)
{
	char		full[NAME_SIZE];

	return fchownat(disk_root(), seen_path(full, path), uid, gid, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

static int
fs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *file)
{
	return 0;
}

static int
fs_statfs(const char *path, struct statvfs *st)
{
	if (fstatvfs(disk_root(), st) != 0)
		return -errno;
	lock();
	/* a quota does not show here */
	if (space >= 0 && space_error == ENOSPC && (unsigned long) space / st->f_frsize < st->f_bavail)
		st->f_bfree = st->f_bavail = space / st->f_frsize;
	if (read_only)
		st->f_flag |= ST_RDONLY;
	return unlock(0);
}

/* ---- files ---- */

static int
new_handle(const char *full, int fd, struct fuse_file_info *file)
{
	Node	   *node = disk_node(full, fd);
	Handle	   *handle;

	if (node == NULL)
		return -errno;
	handle = calloc(1, sizeof(Handle));
	if (handle == NULL)
		abort();
	handle->node = node;
	handle->flags = file->flags;
	node->handles++;
	file->fh = (uintptr_t) handle;
	file->direct_io = shows_short || !(file->flags & O_DIRECT);
	return 0;
}

static int
fs_open(const char *path, struct fuse_file_info *file)
{
	char		full[NAME_SIZE];
	bool		changes = (file->flags & O_ACCMODE) != O_RDONLY;
	int			failed;

	lock();
	failed = call_fails(ON_OPEN, class_of(path), changes);
	if (failed == 0)
		failed = new_handle(seen_path(full, path), -1, file);
	if (failed == 0 && (file->flags & O_TRUNC))
		failed = disk_truncate(((Handle *) (uintptr_t) file->fh)->node, 0);
	return unlock(failed);
}

static int
fs_create(const char *path, mode_t mode, struct fuse_file_info *file)
{
	char		full[NAME_SIZE];
	struct fuse_context *caller = fuse_get_context();
	int			failed;
	int			fd = -1;

	lock();
	failed = call_fails(ON_CREATE, class_of(path), true);
	if (failed == 0)
	{
		fd = openat(disk_root(), seen_path(full, path), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd < 0 || fchown(fd, caller->uid, caller->gid) != 0)
			failed = -errno;
	}
	if (failed == 0)
	{
		disk_made(full);
		failed = new_handle(full, fd, file);
	}
	return unlock(failed);
}

static int
fs_release(const char *path, struct fuse_file_info *file)
{
	Handle	   *handle = (Handle *) (uintptr_t) file->fh;

	lock();
	disk_release(handle->node);
	free(handle);
	return unlock(0);
}

static int
fs_truncate(const char *path, off_t size, struct fuse_file_info *file)
{
	char		full[NAME_SIZE];
	Node	   *node;
	int			failed;

	lock();
	node = file != NULL ? ((Handle *) (uintptr_t) file->fh)->node :
		disk_node(seen_path(full, path), -1);
	failed = node == NULL ? -errno : node->dead ? -EIO : 0;
	if (failed == 0)
		failed = call_fails(ON_TRUNCATE, class_of(node->path), true);
	if (failed == 0)
		failed = disk_truncate(node, size);
	return unlock(failed);
}

static int
fs_read(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *file)
{
	Handle	   *handle = (Handle *) (uintptr_t) file->fh;
	Strike		fault;
	ssize_t		done;

	lock();
	if (power_is_off || handle->node->dead)
		return unlock(-EIO);
	fault = strike(ON_READ, class_of(handle->node->path));
	if (fault.error != 0)
		return unlock(-fault.error);
	done = disk_read(handle->node, buffer, size, offset, (handle->flags & O_DIRECT) != 0);
	if (fault.flip && done > 0)
		buffer[disk_random(done)] ^= 1 << disk_random(8);
	return unlock((int) done);
}

/* The sync that fsync, fdatasync and O_DSYNC ask for. */
static int
sync_part(Handle *handle, uint64_t from, uint64_t to)
{
	Strike		fault = strike(ON_SYNC, class_of(handle->node->path));

	if (power_is_off || handle->node->dead)
		return -EIO;
	if (fault.cut)
	{
		cut_power();
		return -EIO;
	}
	if (fault.error != 0)
	{
		disk_sync_failed(handle->node, from, to);
		return -fault.error;
	}
	disk_sync(handle->node, from, to);
	return 0;
}

/* How much of a write there is space for. */
static size_t
within_space(const Node *node, size_t size, uint64_t offset)
{
	uint64_t	more = offset + size > node->size ? offset + size - node->size : 0;

	if (space < 0 || more == 0)
		return size;
	if (more > size)
		more = size;
	if (more > (uint64_t) space)
	{
		size -= more - space;
		more = space;
	}
	space -= more;
	return size;
}

static int
fs_write(const char *path, const char *buffer, size_t size, off_t offset, struct fuse_file_info *file)
{
	Handle	   *handle = (Handle *) (uintptr_t) file->fh;
	char	   *changed = NULL;
	Strike		fault;
	ssize_t		done;

	lock();
	if (power_is_off || handle->node->dead)
		return unlock(-EIO);
	fault = strike(ON_WRITE, class_of(handle->node->path));
	if (power_is_off || handle->node->dead)
		return unlock(-EIO);
	if (read_only)
		return unlock(-EROFS);
	if (fault.error != 0)
	{
		/* some of it may be there, all the same; never part of a sector */
		size = disk_random(size / SECTOR + 1) * SECTOR;
		if (fault.error == EIO)
			disk_write(handle->node, buffer, size, offset);
		return unlock(-fault.error);
	}
	if (fault.lose)
		return unlock((int) size);
	if (fault.bytes >= 0 && size > (size_t) fault.bytes)
		size = fault.bytes;
	if (size == 0)
		return unlock(0);
	size = within_space(handle->node, size, offset);
	if (size == 0)
		return unlock(-space_error);
	if (fault.flip)
	{
		changed = malloc(size);
		if (changed == NULL)
			abort();
		memcpy(changed, buffer, size);
		changed[disk_random(size)] ^= 1 << disk_random(8);
	}
	done = disk_write(handle->node, changed ? changed : buffer, size, offset);
	free(changed);
	if (fault.cut)
	{
		cut_power();
		return unlock(-EIO);
	}
	if (done > 0 && (handle->flags & (O_DSYNC | O_SYNC)))
	{
		int			failed = sync_part(handle, offset, offset + done);

		if (failed != 0)
			return unlock(failed);
	}
	return unlock((int) done);
}

static int
fs_fsync(const char *path, int datasync, struct fuse_file_info *file)
{
	Handle	   *handle = (Handle *) (uintptr_t) file->fh;

	lock();
	if (power_is_off || handle->node->dead)
		return unlock(-EIO);
	return unlock(sync_part(handle, 0, UINT64_MAX));
}

static const struct fuse_operations operations = {
	.init = fs_init,
	.getattr = fs_getattr,
	.readdir = fs_readdir,
	.opendir = fs_opendir,
	.releasedir = fs_releasedir,
	.fsyncdir = fs_fsyncdir,
	.mkdir = fs_mkdir,
	.unlink = fs_unlink,
	.rename = fs_rename,
	.chmod = fs_chmod,
	.chown = fs_chown,
	.utimens = fs_utimens,
	.statfs = fs_statfs,
	.open = fs_open,
	.create = fs_create,
	.release = fs_release,
	.truncate = fs_truncate,
	.read = fs_read,
	.write = fs_write,
	.fsync = fs_fsync
};

int
main(int argc, char **argv)
{
	char	   *fuse_argv[] = {argv[0], "-f", "-o", "allow_other,default_permissions,fsname=faultfs",
		argc > 2 ? argv[2] : NULL, NULL};
	int			failed;

	if (argc != 4)
	{
		fprintf(stderr, "usage: faultfs BACKING MOUNTPOINT SOCKET\n");
		return 2;
	}
	umask(0);
	failed = disk_open_root(argv[1]);
	if (failed == 0)
		failed = knobs_listen(argv[3]);
	if (failed != 0)
	{
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-failed));
		return 1;
	}
	return fuse_main(5, fuse_argv, &operations, NULL);
}
