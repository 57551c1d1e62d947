/*-------------------------------------------------------------------------
 *
 * group.h
 *		A group: what its write covers, and how it is acknowledged.
 *
 * Shared by the two who flush, each under the flush token: the writer (flush.c)
 * and a lone appender (lone.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_GROUP_H
#define GROUPLOG_GROUP_H

#include "postgres.h"

#include "io.h"

/* No lone appender flushes by itself where a sync takes longer: see lone.c. */
#define GL_LONE_SYNC_US	10000

typedef struct GlGroup
{
	uint64		start;			/* the durable LSN before it */
	uint64		cut;			/* ... and after it */
	uint64		last_lsn;		/* of its last record */
	uint32		waiters;		/* sessions that wait for it */
	uint64		data_records;
	int64		start_ns;		/* monotonic: the write began */
	int64		sync_ns;		/* the sync began; 0: write and sync are one, or
								 * there is no sync */
} GlGroup;

/*
 * Take the token; false if another process holds it.
 */
extern bool gl_token_take(void);
extern bool gl_token_held(void);
extern void gl_token_release(void);

/* A block-aligned block of this process, for gl_group_write; NULL: no memory. */
extern char *gl_group_block(void);

/*
 * Fill in the group's write to the file that begins at file_lsn: whole blocks,
 * from the one that holds group->start to the one that holds the last byte before
 * group->cut.  block: see gl_group_block; it must stay as it is until the write
 * is done.  All before the cut is published.
 */
extern void gl_group_write(GlIoOp *op, const GlGroup *group, uint64 file_lsn, char *block);

/* It is durable: move the durable LSN, wake who waits, count. */
extern void gl_group_acknowledge(const GlGroup *group, int64 now_us, bool synced);

#endif							/* GROUPLOG_GROUP_H */
