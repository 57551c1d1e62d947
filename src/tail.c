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

#include "compat.h"
#include "io_wait.h"
#include "miscadmin.h"
#include "segment.h"
#include "sync_method.h"
#include "utils/memutils.h"

#define COPY_BUFFER		(1024 * 1024)
#define CHUNK_SIZE		(1024 * 1024)
#define CHUNKS_AHEAD	2

/*
 * What is read ahead: chunks that follow each other in the open file, oldest
 * first.  Static, since the kernel writes to them whatever becomes of us.
 */
typedef struct Chunk
{
	GlIoOp		op;
	void	   *memory;			/* holds buf; NULL: none yet */
	char	   *buf;
} Chunk;

static Chunk chunks[CHUNKS_AHEAD];
static uint32 oldest_chunk = 0;
static uint32 chunk_count = 0;
static uint64 ahead_offset;		/* of the next byte that they give */

static void
wait_for(const Chunk *chunk)
{
	while (chunk->op.state != GL_IO_DONE)
	{
		gl_io_check_interrupts();
		gl_io_wait_complete(gl_wait_event(GL_WAIT_WRITER_IO));
	}
}

static void
drop_ahead(void)
{
	for (; chunk_count > 0; chunk_count--)
	{
		wait_for(&chunks[oldest_chunk]);
		oldest_chunk = (oldest_chunk + 1) % CHUNKS_AHEAD;
	}
}

/* Begin to read what follows, up to an offset. */
static void
read_ahead(int fd, uint64 end)
{
	uint64		offset = ahead_offset;

	if (chunk_count > 0)
		offset = chunks[oldest_chunk].op.offset + (uint64) chunk_count * CHUNK_SIZE;
	for (; chunk_count < CHUNKS_AHEAD && offset < end; offset += CHUNK_SIZE)
	{
		Chunk	   *chunk = &chunks[(oldest_chunk + chunk_count) % CHUNKS_AHEAD];

		if (chunk->memory == NULL)
		{
			chunk->memory = MemoryContextAlloc(TopMemoryContext, CHUNK_SIZE + GL_BLOCK);
			chunk->buf = (char *) TYPEALIGN(GL_BLOCK, chunk->memory);
		}
		memset(&chunk->op, 0, sizeof(chunk->op));
		chunk->op.kind = GL_IO_READ;
		chunk->op.fd = fd;
		chunk->op.offset = offset;
		chunk->op.iovcnt = 1;
		chunk->op.iov[0].iov_base = chunk->buf;
		chunk->op.iov[0].iov_len = Min(CHUNK_SIZE, end - offset);
		chunk_count++;
		gl_io_submit(gl_io_engine(), &chunk->op);
	}
}

/* Copy what has been read ahead; 0: nothing, or nothing good. */
static uint32
take_ahead(uint64 offset, char *buf, uint32 size)
{
	Chunk	   *chunk = &chunks[oldest_chunk];
	uint64		end;

	if (chunk_count == 0)
		return 0;
	wait_for(chunk);
	end = chunk->op.offset + chunk->op.done_bytes;
	if (offset != ahead_offset || chunk->op.error != 0 || offset >= end)
	{
		drop_ahead();
		return 0;
	}
	size = (uint32) Min(size, end - offset);
	memcpy(buf, chunk->buf + (offset - chunk->op.offset), size);
	ahead_offset += size;
	if (ahead_offset == chunk->op.offset + CHUNK_SIZE)
	{
		oldest_chunk = (oldest_chunk + 1) % CHUNKS_AHEAD;
		chunk_count--;
	}
	return size;
}

/*
 * Only where there is no direct I/O at all is the page cache read: else what is
 * believed and what is then written again might differ.  Returns an errno.
 */
static int
open_file(GlTailReader *reader, uint32 index)
{
	const GlMapEntry *entry = &reader->map->entries[index];
	char		path[MAXPGPATH];

	gl_tail_close(reader);
	gl_segment_path(path, entry->number, entry->first_lsn);
	if (reader->direct)
	{
		reader->fd = gl_open_file(path, O_RDONLY | O_DIRECT);
		if (reader->fd < 0 && !gl_no_direct_io(errno))
			return errno;
		reader->direct = reader->fd >= 0;
	}
	if (!reader->direct)
		reader->fd = gl_open_file(path, O_RDONLY);
	if (reader->fd < 0)
		return errno;
	reader->ahead = reader->direct && gl_io_engine() != NULL && gl_io_fd(gl_io_engine()) >= 0;
	reader->open_index = index;
	return 0;
}

int64_t
gl_tail_read(void *arg, uint32_t index, uint64_t offset, void *buf, uint32_t size)
{
	GlTailReader *reader = arg;
	const GlMapEntry *entry = &reader->map->entries[index];
	uint64		end = gl_segment_offset(entry->first_lsn, gl_block_ceil(entry->end));
	uint32		done = 0;
	int			error = 0;

	if (reader->open_index != index)
		error = open_file(reader, index);

	while (error == 0 && done < size)
	{
		ssize_t		got = take_ahead(offset + done, (char *) buf + done, size - done);

		if (got == 0)
		{
			got = pread(reader->fd, (char *) buf + done, size - done, offset + done);
			error = got < 0 ? errno : 0;
			ahead_offset = offset + done + Max(got, 0);
		}
		if (error == EINTR)
		{
			error = 0;
			continue;
		}
		if (reader->direct && gl_no_direct_io(error))
		{
			/* Some file systems say so only now. */
			reader->direct = false;
			error = open_file(reader, index);
			continue;
		}
		if (error != 0)
			break;
		if (reader->ahead && got > 0 && got % GL_BLOCK == 0)
			read_ahead(reader->fd, end);
		done += got;
		/* Short: the end of the file. Direct I/O could not go on from there. */
		if (got == 0 || done % GL_BLOCK != 0)
			break;
	}
	if (error != 0)
		return -error;
	return done;
}

void
gl_tail_close(GlTailReader *reader)
{
	drop_ahead();
	for (int i = 0; i < CHUNKS_AHEAD; i++)
	{
		if (chunks[i].memory != NULL)
			pfree(chunks[i].memory);
		chunks[i].memory = NULL;
	}
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
