/*-------------------------------------------------------------------------
 *
 * flush.h
 *		One group: cut, write and sync, acknowledge.
 *
 * Flushing runs under one token in shared memory, so there is one flusher at a
 * time, and never are two writes of one block in flight.  The writer holds the
 * token, but for the moments in which it offers it to a lone appender (lone.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_FLUSH_H
#define GROUPLOG_FLUSH_H

#include "postgres.h"

#include "error.h"
#include "sync_policy.h"

typedef enum GlFlushStatus
{
	GL_FLUSH_IDLE,				/* nothing in flight */
	GL_FLUSH_IN_FLIGHT,
	GL_FLUSH_ACKNOWLEDGED,		/* just now: the durable LSN has moved */
	GL_FLUSH_FAILED				/* just now: see the error; nothing was acknowledged */
} GlFlushStatus;

/* Begin at the durable LSN; what was scanned before is forgotten. */
extern void gl_flush_start(void);

/* Walk over what was published since; returns true if there was anything. */
extern bool gl_flush_scan(int64 now_us);

/* What is scanned and not yet in a group. */
extern const GlPending *gl_flush_pending(void);

/*
 * Does what is pending reach to the end of the file?  Whoever waits may then be
 * in the next file, where the scan does not look before this group is done.
 */
extern bool gl_flush_fills_file(void);

/* Is something claimed beyond the scan? */
extern bool gl_flush_unpublished(void);

/* All waiters ever cut into groups; see GlShared.join_target. */
extern uint64 gl_flush_waiters_cut(void);

/*
 * Cut what is pending, up to the end of the current file, and start its write.
 * There is something pending, nothing in flight, and the file is open and holds
 * the durable LSN.
 */
extern void gl_flush_begin(GlFlushReason reason, int64 now_us);

extern GlFlushStatus gl_flush_poll(int64 now_us, GlError *error);

extern GlPolicy *gl_flush_policy(void);

/*
 * Offer the token to a lone appender, and take stock when it is ours again (then
 * FAILED: its write failed, see the error; else IDLE).
 */
extern bool gl_flush_may_offer(void);
extern void gl_flush_offer(void);
extern GlFlushStatus gl_flush_take_back(int64 now_us, GlError *error);

/* Had an appender flushed anything when we last took the token back? */
extern bool gl_flush_lone_at_work(void);

#endif							/* GROUPLOG_FLUSH_H */
