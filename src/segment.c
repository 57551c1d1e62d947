/*-------------------------------------------------------------------------
 *
 * segment.c
 *		The log's directory and its files.
 *
 * Only the writer changes anything here; it is the holder of the lock.  Readers
 * list (catalog.c) and open.
 *
 *-------------------------------------------------------------------------
 */
#include "segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "config.h"
#include "common/file_perm.h"
#include "miscadmin.h"
#include "storage/fd.h"

#define SPARE_PREFIX	"spare-"

static int	plain_fsync(int fd);

int			(*gl_segment_fsync) (int fd) = plain_fsync;

static int
plain_fsync(int fd)
{
	return fsync(fd) == 0 ? 0 : errno;
}

int
gl_sync_fd(int fd)
{
	return enableFsync ? gl_segment_fsync(fd) : 0;
}

void
gl_directory_path(char *path, const char *name)
{
	snprintf(path, MAXPGPATH, "%s/%s", gl_directory, name);
}

void
gl_segment_path(char *path, uint32 number, uint64 first_lsn)
{
	char		name[GL_SEGMENT_NAME_SIZE];

	gl_segment_name(name, number, first_lsn);
	gl_directory_path(path, name);
}

void
gl_spare_path(char *path, uint32 spare, bool ready)
{
	snprintf(path, MAXPGPATH, "%s/" SPARE_PREFIX "%08X%s", gl_directory, spare,
			 ready ? "" : GL_TMP_SUFFIX);
}

int
gl_open_file(const char *path, int flags)
{
	return BasicOpenFile(path, flags | PG_BINARY | O_CLOEXEC | O_NOFOLLOW);
}

bool
gl_file_error(GlError *error, int os_error, const char *what, const char *path)
{
	gl_error_set(error, gl_error_sqlstate(os_error), os_error, NULL,
				 "could not %s \"%s\": %s", what, path, strerror(os_error));
	return false;
}

bool
gl_directory_sync(GlError *error)
{
	int			fd = BasicOpenFile(gl_directory, O_RDONLY | PG_BINARY | O_CLOEXEC);
	int			failed;

	if (fd < 0)
		return gl_file_error(error, errno, "open directory", gl_directory);
	failed = gl_sync_fd(fd);
	close(fd);
	if (failed != 0)
		return gl_file_error(error, failed, "fsync directory", gl_directory);
	return true;
}

static bool
take_lock(GlError *error)
{
	static int	lock_fd = -1;	/* open, and so locked, while the process lives */
	char		path[MAXPGPATH];
	int			fd;

	if (lock_fd >= 0)
		return true;

	gl_directory_path(path, GL_LOCK_NAME);
	fd = gl_open_file(path, O_RDWR | O_CREAT);
	if (fd < 0)
		return gl_file_error(error, errno, "open file", path);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
	{
		int			os_error = errno;

		close(fd);
		if (os_error != EWOULDBLOCK)
			return gl_file_error(error, os_error, "lock file", path);
		gl_error_set(error, ERRCODE_OBJECT_IN_USE, 0,
					 "Give each server a grouplog.directory of its own, or stop the other server.",
					 "log directory \"%s\" is in use by another server", gl_directory);
		return false;
	}
	lock_fd = fd;
	ReserveExternalFD();
	return true;
}

bool
gl_directory_open(GlControl *control, bool *exists, GlError *error)
{
	struct stat st;

	if (stat(gl_directory, &st) != 0)
	{
		if (errno != ENOENT)
			return gl_file_error(error, errno, "stat directory", gl_directory);
		if (MakePGDirectory(gl_directory) != 0 && errno != EEXIST)
			return gl_file_error(error, errno, "create directory", gl_directory);
		/* The directory's own name must last too. */
		if (enableFsync)
		{
			char		parent[MAXPGPATH];
			int			fd;

			strlcpy(parent, gl_directory, MAXPGPATH);
			get_parent_directory(parent);
			fd = BasicOpenFile(parent[0] ? parent : ".", O_RDONLY | PG_BINARY | O_CLOEXEC);
			if (fd >= 0)
			{
				(void) gl_sync_fd(fd);
				close(fd);
			}
		}
	}
	else if (!S_ISDIR(st.st_mode))
		return gl_file_error(error, ENOTDIR, "open directory", gl_directory);

	return take_lock(error) && gl_control_read(control, exists, error);
}

bool
gl_spare_name_parse(const char *name, uint32 *number, bool *ready)
{
	Size		prefix = strlen(SPARE_PREFIX);

	if (strncmp(name, SPARE_PREFIX, prefix) != 0 ||
		strspn(name + prefix, "0123456789ABCDEF") != 8)
		return false;
	*number = (uint32) strtoul(name + prefix, NULL, 16);
	*ready = name[prefix + 8] == '\0';
	return *ready || strcmp(name + prefix + 8, GL_TMP_SUFFIX) == 0;
}

/*
 * Called while the postmaster starts, before anything reads backup_label away.
 * The mark is only worth something if it lasts.
 */
void
gl_restored_mark_if_backup(void)
{
	char		path[MAXPGPATH];
	struct stat st;
	int			fd;
	GlError		error;

	if (stat("backup_label", &st) != 0 || stat(gl_directory, &st) != 0)
		return;

	/* Another server's log, on a directory that both name, is no backup. */
	gl_directory_path(path, GL_LOCK_NAME);
	fd = gl_open_file(path, O_RDWR | O_CREAT);
	if (fd >= 0)
	{
		bool		free = flock(fd, LOCK_EX | LOCK_NB) == 0;

		close(fd);
		if (!free)
		{
			ereport(WARNING,
					(errmsg("log directory \"%s\" is in use by another server", gl_directory)));
			return;
		}
	}

	gl_directory_path(path, GL_RESTORED_NAME);
	fd = gl_open_file(path, O_RDWR | O_CREAT);
	if (fd < 0)
	{
		ereport(WARNING,
				(errcode_for_file_access(),
				 errmsg("could not create file \"%s\": %m", path)));
		return;
	}
	(void) gl_sync_fd(fd);
	close(fd);
	if (!gl_directory_sync(&error))
		gl_error_report(WARNING, &error);
}

bool
gl_restored_mark_exists(void)
{
	char		path[MAXPGPATH];
	struct stat st;

	gl_directory_path(path, GL_RESTORED_NAME);
	return lstat(path, &st) == 0;
}

bool
gl_restored_mark_remove(GlError *error)
{
	char		path[MAXPGPATH];

	gl_directory_path(path, GL_RESTORED_NAME);
	if (unlink(path) != 0 && errno != ENOENT)
		return gl_file_error(error, errno, "remove file", path);
	return gl_directory_sync(error);
}

bool
gl_segment_remove(uint32 number, uint64 first_lsn, uint64 *freed, GlError *error)
{
	char		path[MAXPGPATH];
	struct stat st;
	int			fd;
	bool		fine;

	*freed = 0;
	gl_segment_path(path, number, first_lsn);
	if (lstat(path, &st) == 0)
		*freed = st.st_size;
	fd = gl_open_file(path, O_RDWR);
	if (unlink(path) != 0 && errno != ENOENT)
		fine = gl_file_error(error, errno, "remove file", path);
	else
		fine = gl_directory_sync(error);

	/*
	 * Sessions may have it open for long: give its space back now, unless
	 * somebody has given it another name.
	 */
	if (fd >= 0 && fine && fstat(fd, &st) == 0 && st.st_nlink == 0)
		(void) !ftruncate(fd, 0);
	if (fd >= 0)
		close(fd);
	return fine;
}

bool
gl_segment_remove_older(uint32 number, uint64 *freed, GlError *error)
{
	DIR		   *dir = AllocateDir(gl_directory);
	struct dirent *de;
	bool		fine = true;
	bool		removed = false;

	*freed = 0;
	if (dir == NULL)
		return gl_file_error(error, errno, "open directory", gl_directory);
	while (fine && (errno = 0, de = readdir(dir)) != NULL)
	{
		uint32		found;
		uint64		first_lsn;
		char		path[MAXPGPATH];
		struct stat st;

		if (!gl_segment_name_parse(de->d_name, &found, &first_lsn) || found >= number)
			continue;
		gl_directory_path(path, de->d_name);
		if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		if (unlink(path) == 0)
		{
			*freed += st.st_size;
			removed = true;
		}
		else if (errno != ENOENT)
			fine = gl_file_error(error, errno, "remove file", path);
	}
	if (fine && errno != 0)
		fine = gl_file_error(error, errno, "read directory", gl_directory);
	FreeDir(dir);
	return fine && (!removed || gl_directory_sync(error));
}

bool
gl_segment_sync(uint32 number, uint64 first_lsn, GlError *error)
{
	char		path[MAXPGPATH];
	int			fd;
	int			failed;

	gl_segment_path(path, number, first_lsn);
	fd = gl_open_file(path, O_RDWR);
	if (fd < 0)
		failed = errno;
	else
	{
		failed = gl_sync_fd(fd);
		close(fd);
	}
	/* A read-only file system holds nothing that could be lost. */
	if (failed != 0 && failed != EROFS)
		return gl_file_error(error, failed, "fsync file", path);
	return true;
}

bool
gl_segment_recycle(uint32 number, uint64 first_lsn, uint32 spare, bool *renamed, GlError *error)
{
	static const char zeros[GL_BLOCK];
	char		path[MAXPGPATH];
	char		tmp[MAXPGPATH];
	char		ready[MAXPGPATH];
	int			fd;
	int			failed = 0;
	bool		fine;

	/* Under the unready name first: the old header must be gone for good. */
	*renamed = false;
	gl_segment_path(path, number, first_lsn);
	gl_spare_path(tmp, spare, false);
	gl_spare_path(ready, spare, true);
	if (rename(path, tmp) != 0)
		return gl_file_error(error, errno, "rename file", path);
	*renamed = true;

	fine = gl_directory_sync(error);
	if (fine)
	{
		fd = gl_open_file(tmp, O_RDWR);
		if (fd < 0)
			failed = errno;
		else
		{
			errno = 0;
			if (pwrite(fd, zeros, sizeof(zeros), 0) != sizeof(zeros))
				failed = errno ? errno : ENOSPC;
			if (failed == 0)
				failed = gl_sync_fd(fd);
			close(fd);
		}
		if (failed == 0 && rename(tmp, ready) != 0)
			failed = errno;
		if (failed != 0)
			fine = gl_file_error(error, failed, "recycle file", tmp);
	}
	/* It is no segment any more, whatever failed. */
	if (!fine)
		(void) unlink(tmp);
	return fine;
}

bool
gl_segment_trim(uint32 number, uint64 first_lsn, uint64 end, GlError *error)
{
	char		path[MAXPGPATH];
	struct stat st;
	uint64		size = GL_BLOCK;

	if (end > gl_block_floor(first_lsn))
		size = gl_segment_offset(first_lsn, end);
	gl_segment_path(path, number, first_lsn);
	if (lstat(path, &st) != 0)
		return gl_file_error(error, errno, "stat file", path);
	if ((uint64) st.st_size <= size)
		return true;
	if (truncate(path, size) != 0)
		return gl_file_error(error, errno, "truncate file", path);
	return true;
}

bool
gl_directory_free_bytes(uint64 *free_bytes, GlError *error)
{
	struct statvfs st;

	if (statvfs(gl_directory, &st) != 0)
		return gl_file_error(error, errno, "stat file system of", gl_directory);
	*free_bytes = (uint64) st.f_bavail * st.f_frsize;
	return true;
}
