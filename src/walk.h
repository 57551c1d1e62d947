/*-------------------------------------------------------------------------
 *
 * walk.h
 *		Walk over the records of a log, checking each.
 *
 * Recovery, readers and verify() all walk with this.  The walk reads the log by
 * LSN through the map, so a record whose bytes lie in two files (its head before
 * the block where a continuation took over) is put together; it steps over the
 * gap between two server runs by itself.
 *
 * The walk's buffer belongs to the caller; every record is handed out whole,
 * in place.  A record that does not fit ends the step with
 * GL_WALK_BUFFER_TOO_SMALL; the caller gives a larger buffer and calls again.
 *
 * Pure: no server headers, no allocation; bytes come from a callback.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_WALK_H
#define GROUPLOG_WALK_H

#include "logmap.h"

/*
 * Read up to size bytes of the file map->entries[index] at a file offset into
 * buf.  Returns the bytes read (fewer only at the end of the file), or -errno.
 * Offset and size are multiples of GL_BLOCK, buf is aligned if the walk's
 * buffer is: so the callback may use direct I/O.
 */
typedef int64_t (*GlWalkRead) (void *arg, uint32_t index, uint64_t offset,
							   void *buf, uint32_t size);

typedef enum GlWalkStatus
{
	GL_WALK_RECORD,				/* *record is filled; the walk stands after it */
	GL_WALK_END,				/* the limit, or the end of the map, is reached */
	GL_WALK_INVALID,			/* no valid record at walk->lsn; see walk->check */
	GL_WALK_BUFFER_TOO_SMALL,	/* walk->buf_needed says how much is needed */
	GL_WALK_READ_ERROR			/* walk->error says which errno, walk->lsn where */
} GlWalkStatus;

typedef struct GlWalkRecord
{
	uint64_t	lsn;
	uint64_t	next_lsn;		/* lsn + span */
	const GlRecordHeader *header;	/* valid until the next call */
	const uint8_t *payload;
	uint32_t	payload_size;
	uint32_t	index;			/* the file that holds its header */
} GlWalkRecord;

typedef struct GlWalk
{
	const GlLogMap *map;
	GlWalkRead	read;
	void	   *arg;
	uint64_t	lsn;			/* where the next record is looked for */
	uint64_t	limit;			/* nothing at or beyond this LSN is parsed */
	uint8_t    *buf;			/* aligned to 8 bytes at least */
	uint32_t	buf_size;		/* bytes, a multiple of GL_BLOCK, at least two blocks */
	uint32_t	buf_needed;
	GlRecordCheck check;		/* why, after GL_WALK_INVALID */
	int			error;			/* errno, after GL_WALK_READ_ERROR */
	uint64_t	nonzero_end;	/* gl_walk_resync: end of the last byte passed that
								 * is not zero (a record counts whole); 0 if none */

	/* private */
	uint32_t	index;			/* the file last used */
	uint64_t	buf_lsn;		/* block-aligned LSN of buf[0] */
	uint32_t	buf_len;		/* valid bytes in buf */
} GlWalk;

/* lsn: start of a record (any LSN in a gap is fine too). */
extern void gl_walk_init(GlWalk *walk, const GlLogMap *map, GlWalkRead read, void *arg,
						 void *buf, uint32_t buf_size, uint64_t lsn, uint64_t limit);

/* Move; what is buffered stays usable. */
extern void gl_walk_seek(GlWalk *walk, uint64_t lsn);

/* Give a larger buffer (contents need not be kept). */
extern void gl_walk_set_buffer(GlWalk *walk, void *buf, uint32_t buf_size);

/* Forget what is buffered (the file may have changed). */
extern void gl_walk_forget(GlWalk *walk);

/*
 * The next record.  A record that would cross the limit is INVALID
 * (GL_RECORD_BAD_LENGTH).  Bytes missing because the file is short count as
 * no record (GL_RECORD_EMPTY).
 */
extern GlWalkStatus gl_walk_next(GlWalk *walk, GlWalkRecord *record);

/*
 * Look for the next valid record strictly after walk->lsn, granule by granule,
 * up to the limit and through every later file.  GL_WALK_RECORD: the record is
 * handed out as by gl_walk_next.  GL_WALK_END: the walk stands where it stood.
 * GL_WALK_BUFFER_TOO_SMALL: call again with a larger buffer, it goes on.
 */
extern GlWalkStatus gl_walk_resync(GlWalk *walk, GlWalkRecord *record);

#endif							/* GROUPLOG_WALK_H */
