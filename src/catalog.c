/*-------------------------------------------------------------------------
 *
 * catalog.c
 *		What lies in the log's directory.
 *
 * Names are sorted into segments, other files of ours and strangers; then every
 * segment's header is read.  Files may come and go meanwhile: one that is gone
 * when it is opened, or a fault while the directory's generation moved, makes
 * the reading start again.
 *
 *-------------------------------------------------------------------------
 */
#include "segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "miscadmin.h"
#include "shared.h"
#include "storage/fd.h"

/*
 * What a name is: a segment, another file of ours, or a stranger.
 */
typedef enum NameKind
{
	NAME_STRANGER,
	NAME_SEGMENT,
	NAME_OTHER
} NameKind;

static NameKind
classify(const char *name, uint32 *number, uint64 *first_lsn)
{
	bool		ready;

	if (gl_segment_name_parse(name, number, first_lsn))
		return NAME_SEGMENT;
	if (gl_spare_name_parse(name, number, &ready))
		return NAME_OTHER;
	if (strcmp(name, GL_CONTROL_NAME) == 0 || strcmp(name, GL_LOCK_NAME) == 0 ||
		strcmp(name, GL_RESTORED_NAME) == 0 || strcmp(name, GL_CONTROL_NAME GL_TMP_SUFFIX) == 0)
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
	 * A bad one matters unless a later file has ended the log before it, or all of
	 * it lies where holes are accepted, which only a later file can say.
	 */
	for (Size i = 0; i < bad_count; i++)
	{
		bool		dead = false;

		for (uint32 j = 0; j < catalog->map.count && !dead; j++)
		{
			const GlMapEntry *entry = &catalog->map.entries[j];

			dead = entry->number > bad[i].number &&
				entry->end_before <= Max(bad[i].first_lsn, holes_end);
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
		catalog->sound = gl_map_check_beyond(&catalog->map, holes_end, &catalog->fault);
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
