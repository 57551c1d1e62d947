/*-------------------------------------------------------------------------
 *
 * segment.c
 *		The log's directory and its files.
 *
 * Only the writer changes anything here; it is the holder of the lock.  Readers
 * list and open.
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
#include "shared.h"
#include "storage/fd.h"

#define SPARE_PREFIX	"spare-"
#define TMP_SUFFIX		".tmp"

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
			 ready ? "" : TMP_SUFFIX);
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

/*
 * What a name is: a segment, another file of ours, or a stranger.
 */
typedef enum NameKind
{
	NAME_STRANGER,
	NAME_SEGMENT,
	NAME_OTHER
} NameKind;

bool
gl_spare_name_parse(const char *name, uint32 *number, bool *ready)
{
	Size		prefix = strlen(SPARE_PREFIX);

	if (strncmp(name, SPARE_PREFIX, prefix) != 0 ||
		strspn(name + prefix, "0123456789ABCDEF") != 8)
		return false;
	*number = (uint32) strtoul(name + prefix, NULL, 16);
	*ready = name[prefix + 8] == '\0';
	return *ready || strcmp(name + prefix + 8, TMP_SUFFIX) == 0;
}

static NameKind
classify(const char *name, uint32 *number, uint64 *first_lsn)
{
	bool		ready;

	if (gl_segment_name_parse(name, number, first_lsn))
		return NAME_SEGMENT;
	if (gl_spare_name_parse(name, number, &ready))
		return NAME_OTHER;
	if (strcmp(name, GL_CONTROL_NAME) == 0 || strcmp(name, GL_LOCK_NAME) == 0 ||
		strcmp(name, GL_RESTORED_NAME) == 0 || strcmp(name, GL_CONTROL_NAME TMP_SUFFIX) == 0)
		return NAME_OTHER;
	return NAME_STRANGER;
}

typedef struct NamedSegment
{
	uint32		number;
	uint64		first_lsn;
} NamedSegment;

static int
compare_named(const void *a, const void *b)
{
	const NamedSegment *left = a;
	const NamedSegment *right = b;

	if (left->number != right->number)
		return left->number < right->number ? -1 : 1;
	if (left->first_lsn != right->first_lsn)
		return left->first_lsn < right->first_lsn ? -1 : 1;
	return 0;
}

/* Read one header.  Returns 1, 0 for a bad one (*check says why), or -errno. */
static int
read_header(const NamedSegment *named, GlSegmentHeader *header, uint64 *file_size,
			GlHeaderCheck *check)
{
	char		path[MAXPGPATH];
	struct stat st;
	ssize_t		got;
	int			fd;
	int			os_error;

	gl_segment_path(path, named->number, named->first_lsn);
	fd = gl_open_file(path, O_RDONLY);
	if (fd < 0)
		return -errno;
	got = pread(fd, header, sizeof(*header), 0);
	os_error = errno;
	if (got >= 0 && fstat(fd, &st) != 0)
	{
		got = -1;
		os_error = errno;
	}
	close(fd);
	if (got < 0)
		return -os_error;
	*file_size = st.st_size;
	if (got < (ssize_t) sizeof(*header))
		memset((char *) header + got, 0, sizeof(*header) - got);
	*check = gl_segment_header_check(header);
	if (*check == GL_HEADER_OK &&
		(header->number != named->number || header->first_lsn != named->first_lsn))
		*check = GL_HEADER_BAD_FIELD;
	return *check == GL_HEADER_OK;
}

/* Once over; returns false with error, or sets *again when files moved. */
static bool
catalog_read_once(GlCatalog *catalog, uint64 holes_end, bool *again, GlError *error)
{
	GlSegmentHeader *header = palloc(sizeof(GlSegmentHeader));
	NamedSegment *named;
	NamedSegment *bad;
	GlHeaderCheck *bad_checks;
	Size		bad_count = 0;
	Size		allocated = 64;
	Size		count = 0;
	uint32		previous = 0;
	DIR		   *dir;
	struct dirent *de;

	*again = false;
	memset(catalog, 0, sizeof(*catalog));
	catalog->generation = gl_shared ? atomic_load(&gl_shared->directory_generation) : 0;

	dir = AllocateDir(gl_directory);
	if (dir == NULL)
		return gl_file_error(error, errno, "open directory", gl_directory);

	named = palloc(allocated * sizeof(NamedSegment));
	while (errno = 0, (de = readdir(dir)) != NULL)
	{
		char		path[MAXPGPATH];
		struct stat st;
		uint32		number = 0;
		uint64		first_lsn = 0;
		NameKind	kind;

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		kind = classify(de->d_name, &number, &first_lsn);
		gl_directory_path(path, de->d_name);
		if (lstat(path, &st) != 0)
		{
			if (errno == ENOENT)
				continue;
			{
				int			os_error = errno;

				FreeDir(dir);
				return gl_file_error(error, os_error, "stat file", path);
			}
		}
		if (kind == NAME_SEGMENT && !S_ISREG(st.st_mode))
		{
			/* Passing over it could hide acknowledged records. */
			FreeDir(dir);
			gl_error_set(error, ERRCODE_WRONG_OBJECT_TYPE, 0,
						 "Put the file itself in its place, or remove what has its name.",
						 "log file \"%s\" is not a regular file", path);
			return false;
		}
		if (kind == NAME_STRANGER || !S_ISREG(st.st_mode))
		{
			catalog->strangers++;
			strlcpy(catalog->stranger, de->d_name, sizeof(catalog->stranger));
			continue;
		}
		if (kind == NAME_SEGMENT)
		{
			if (count == allocated)
			{
				allocated *= 2;
				named = repalloc_huge(named, allocated * sizeof(NamedSegment));
			}
			named[count].number = number;
			named[count].first_lsn = first_lsn;
			catalog->highest_lsn = Max(catalog->highest_lsn, first_lsn);
			count++;
		}
	}
	if (errno != 0)
	{
		int			os_error = errno;

		FreeDir(dir);
		return gl_file_error(error, os_error, "read directory", gl_directory);
	}
	FreeDir(dir);

	qsort(named, count, sizeof(NamedSegment), compare_named);
	catalog->map.entries = palloc0(Max(count, 1) * sizeof(GlMapEntry));
	catalog->created = palloc0(Max(count, 1) * sizeof(int64));
	bad = palloc(Max(count, 1) * sizeof(NamedSegment));
	bad_checks = palloc(Max(count, 1) * sizeof(GlHeaderCheck));

	for (Size i = 0; i < count; i++)
	{
		uint64		file_size = 0;
		GlHeaderCheck check = GL_HEADER_OK;
		int			result;

		CHECK_FOR_INTERRUPTS();
		catalog->last_number = named[i].number;
		if (named[i].number == previous)
		{
			/* Two files with one number: no rule of ours makes that. */
			check = GL_HEADER_BAD_FIELD;
			result = 0;
		}
		else
			result = read_header(&named[i], header, &file_size, &check);
		previous = named[i].number;
		if (result == -ENOENT)
		{
			*again = true;
			return true;
		}
		if (result < 0)
		{
			char		path[MAXPGPATH];

			gl_segment_path(path, named[i].number, named[i].first_lsn);
			return gl_file_error(error, -result, "read file", path);
		}
		if (result == 0)
		{
			if (check == GL_HEADER_UNSUPPORTED || check == GL_HEADER_BAD_VERSION)
			{
				char		path[MAXPGPATH];

				gl_segment_path(path, named[i].number, named[i].first_lsn);
				gl_error_set(error, ERRCODE_FEATURE_NOT_SUPPORTED, 0,
							 "Install the version of grouplog that wrote it.",
							 "log file \"%s\" cannot be used: %s", path, gl_header_check_name(check));
				return false;
			}
			bad[bad_count] = named[i];
			bad_checks[bad_count++] = check;
			continue;
		}
		catalog->created[catalog->map.count] = header->created;
		gl_map_entry_from_header(&catalog->map.entries[catalog->map.count++], header, file_size);
	}

	/*
	 * A bad one matters unless a later file has ended the log before it, or it
	 * lies where holes are accepted.
	 */
	for (Size i = 0; i < bad_count; i++)
	{
		bool		dead = bad[i].first_lsn < holes_end;

		for (uint32 j = 0; j < catalog->map.count && !dead; j++)
		{
			const GlMapEntry *entry = &catalog->map.entries[j];

			dead = entry->number > bad[i].number && entry->end_before <= bad[i].first_lsn;
		}
		if (!dead && catalog->bad_headers++ == 0)
		{
			catalog->bad_number = bad[i].number;
			catalog->bad_lsn = bad[i].first_lsn;
			catalog->bad_check = bad_checks[i];
		}
	}

	catalog->sound = gl_map_finish(&catalog->map, &catalog->fault);
	if (!catalog->sound && holes_end > 0)
		catalog->sound = gl_map_check(&catalog->map, holes_end, &catalog->fault);
	return true;
}

GlCatalog *
gl_catalog_read(uint64 holes_end, GlError *error)
{
	GlCatalog  *catalog = palloc(sizeof(GlCatalog));

	/* Files move seldom; a hundred times in a row they do not. */
	for (int tries = 0; tries < 100; tries++)
	{
		bool		again;

		CHECK_FOR_INTERRUPTS();
		if (!catalog_read_once(catalog, holes_end, &again, error))
			return NULL;
		/* What looks like a fault may be a file that came while we listed. */
		if (!again && gl_shared != NULL && (!catalog->sound || catalog->bad_headers > 0) &&
			catalog->generation != atomic_load(&gl_shared->directory_generation))
			again = true;
		if (!again)
			return catalog;
	}
	gl_error_set(error, ERRCODE_OBJECT_IN_USE, 0, NULL,
				 "log directory \"%s\" changes faster than it can be read", gl_directory);
	return NULL;
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
