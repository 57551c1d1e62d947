/*-------------------------------------------------------------------------
 *
 * session_files.c
 *		The log's files as a session sees them.
 *
 * The map of the files is read once a session and kept until the directory's
 * generation moves.
 *
 *-------------------------------------------------------------------------
 */
#include "session_files.h"

#include <fcntl.h>
#include <unistd.h>

#include "miscadmin.h"
#include "shared.h"
#include "storage/fd.h"
#include "utils/memutils.h"

/* This session's map. */
static GlCatalog *cached = NULL;
static MemoryContext cached_context = NULL;

/*
 * The files of earlier runs end where recovery found the end; the last of them
 * does not say so itself until this run has a file.
 */
static void
clip_map(GlCatalog *catalog)
{
	uint64		end_before = atomic_load(&gl_shared->end_before);
	uint64		before_number = atomic_load(&gl_shared->before_number);

	for (uint32 i = 0; i < catalog->map.count; i++)
	{
		GlMapEntry *entry = &catalog->map.entries[i];

		if (entry->number <= before_number)
			entry->end = Min(entry->end, end_before);
	}
}

GlCatalog *
gl_session_catalog(void)
{
	MemoryContext old;
	MemoryContext context;
	GlCatalog  *catalog;
	GlError		error;
	uint64		generation = atomic_load(&gl_shared->directory_generation);

	if (cached != NULL && cached->generation == generation)
		return cached;

	context = AllocSetContextCreate(CurrentMemoryContext, "grouplog catalog", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	catalog = gl_catalog_read(atomic_load(&gl_shared->holes_end), &error);
	MemoryContextSwitchTo(old);
	if (catalog == NULL)
		gl_error_report(ERROR, &error);
	clip_map(catalog);

	if (cached_context != NULL)
		MemoryContextDelete(cached_context);
	MemoryContextSetParent(context, CacheMemoryContext ? CacheMemoryContext : TopMemoryContext);
	cached_context = context;
	cached = catalog;
	return cached;
}

void
gl_read_file_close(GlReadFile *file)
{
	if (file->fd < 0)
		return;
	close(file->fd);
	ReleaseExternalFD();
	file->fd = -1;
	file->index = -1;
}

static void
close_with_context(void *file)
{
	gl_read_file_close(file);
}

void
gl_read_file_init(GlReadFile *file, MemoryContext context, const GlLogMap *map)
{
	file->map = map;
	file->fd = -1;
	file->index = -1;
	file->callback.func = close_with_context;
	file->callback.arg = file;
	MemoryContextRegisterResetCallback(context, &file->callback);
}

int64_t
gl_read_file(void *arg, uint32_t index, uint64_t offset, void *buf, uint32_t size)
{
	GlReadFile *file = arg;
	ssize_t		got;

	CHECK_FOR_INTERRUPTS();
	if (file->index != index)
	{
		char		path[MAXPGPATH];

		gl_read_file_close(file);
		if (!AcquireExternalFD())
			return -EMFILE;
		gl_segment_path(path, file->map->entries[index].number, file->map->entries[index].first_lsn);
		file->fd = gl_open_file(path, O_RDONLY);
		if (file->fd < 0)
		{
			int			os_error = errno;

			ReleaseExternalFD();
			return -os_error;
		}
		file->index = index;
	}
	do
	{
		got = pread(file->fd, buf, size, offset);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

void *
gl_read_buffer(MemoryContext context, void **allocated, uint32 size)
{
	if (*allocated != NULL)
		pfree(*allocated);
	*allocated = NULL;
	*allocated = MemoryContextAllocHuge(context, (Size) size + GL_BLOCK);
	return (void *) TYPEALIGN(GL_BLOCK, *allocated);
}
