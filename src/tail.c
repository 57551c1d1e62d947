/*-------------------------------------------------------------------------
 *
 * tail.c
 *		The end of the log, read and made durable before it is believed.
 *
 * See tail.h.
 *
 *-------------------------------------------------------------------------
 */
#include "tail.h"

#include <fcntl.h>
#include <unistd.h>

#include "io_wait.h"
#include "miscadmin.h"
#include "segment.h"

#define COPY_BUFFER		(1024 * 1024)

int64_t
gl_tail_read(void *arg, uint32_t index, uint64_t offset, void *buf, uint32_t size)
{
	GlTailReader *reader = arg;
	const GlMapEntry *entry = &reader->map->entries[index];
	uint32		done = 0;

	if (reader->open_index != index)
	{
		char		path[MAXPGPATH];

		if (reader->fd >= 0)
			close(reader->fd);
		gl_segment_path(path, entry->number, entry->first_lsn);
		reader->fd = -1;
		reader->open_index = -1;
		if (reader->direct)
			reader->fd = gl_open_file(path, O_RDONLY | O_DIRECT);
		if (reader->fd < 0)
			reader->fd = gl_open_file(path, O_RDONLY);
		if (reader->fd < 0)
			return -errno;
		reader->open_index = index;
	}

	while (done < size)
	{
		ssize_t		got = pread(reader->fd, (char *) buf + done, size - done, offset + done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		done += got;
		/* Short: the end of the file. Direct I/O could not go on from there. */
		if (got == 0 || done % GL_BLOCK != 0)
			break;
	}
	return done;
}

void
gl_tail_close(GlTailReader *reader)
{
	if (reader->fd >= 0)
		close(reader->fd);
	reader->fd = -1;
	reader->open_index = -1;
}

/* The files that may hold the end: back to the last one that ended full. */
static uint32
tail_begin(const GlLogMap *map)
{
	uint32		i = map->count;

	while (i > 0)
	{
		const GlMapEntry *entry = &map->entries[--i];

		if (i + 1 < map->count &&
			entry->end == gl_segment_full_end(entry->first_lsn, entry->segment_size))
			return i + 1;
	}
	return 0;
}

bool
gl_tail_sync(const GlLogMap *map, GlError *error)
{
	if (!enableFsync)
		return true;

	/*
	 * All of them, not just the newest: an earlier run may have written with
	 * fsync off.  Where nothing is dirty that costs little.
	 */
	for (uint32 i = 0; i < map->count; i++)
	{
		gl_io_check_interrupts();
		if (!gl_segment_sync(map->entries[i].number, map->entries[i].first_lsn, error))
			return false;
	}
	return gl_directory_sync(error);
}

/*
 * What is written is what recovery has read: where a sync has failed, the page
 * cache may hold more than the device, and to write part of a page would bring
 * all of it there.  So whole blocks, read as recovery reads them.
 */
bool
gl_tail_rewrite(const GlLogMap *map, uint64 end, GlError *error)
{
	GlTailReader reader = {.map = map,.open_index = -1,.fd = -1,.direct = true};
	char	   *memory = palloc(COPY_BUFFER + GL_BLOCK);
	char	   *buf = (char *) TYPEALIGN(GL_BLOCK, memory);
	bool		fine = true;

	for (uint32 i = tail_begin(map); i < map->count && fine; i++)
	{
		const GlMapEntry *entry = &map->entries[i];
		uint64		from = gl_block_floor(entry->first_lsn);
		uint64		to = gl_block_ceil(Min(entry->end, end));
		char		path[MAXPGPATH];
		int			fd;
		int			failed = 0;

		if (end > entry->ring_size)
			from = Max(from, gl_block_floor(end - entry->ring_size));
		gl_segment_path(path, entry->number, entry->first_lsn);
		fd = gl_open_file(path, O_RDWR);
		if (fd < 0)
			failed = errno;
		while (failed == 0 && from < to)
		{
			uint64		offset = gl_segment_offset(entry->first_lsn, from);
			int64		got = gl_tail_read(&reader, i, offset, buf, Min(COPY_BUFFER, to - from));

			CHECK_FOR_INTERRUPTS();
			errno = 0;
			if (got < 0)
				failed = (int) -got;
			else if (got == 0)
				break;
			else if (pwrite(fd, buf, got, offset) != got)
				failed = errno ? errno : ENOSPC;
			else
				from += got;
		}
		if (failed == 0 && enableFsync)
			failed = gl_io_fsync(fd);
		if (fd >= 0)
			close(fd);
		if (failed != 0 && failed != EROFS)
		{
			gl_error_set(error, gl_error_sqlstate(failed), failed, NULL,
						 "could not make file \"%s\" durable: %s", path, strerror(failed));
			fine = false;
		}
	}
	gl_tail_close(&reader);
	pfree(memory);
	return fine;
}
