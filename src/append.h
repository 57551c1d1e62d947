/*-------------------------------------------------------------------------
 *
 * append.h
 *		The appender's path: check, claim, copy, publish, wait.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_APPEND_H
#define GROUPLOG_APPEND_H

#include "postgres.h"

#include "sync_policy.h"

/* A payload that is detoasted already. */
typedef struct GlPayload
{
	const char *data;
	Size		size;
} GlPayload;

/*
 * Everything that forbids an append whatever the record: not preloaded,
 * read-only transaction, recovery, parallel worker.  Raises the error.
 */
extern void gl_append_check_allowed(void);

/*
 * Append count payloads in order, one record each; flags: GL_RECORD_TEXT or 0.
 * With wait (and a mode other than periodic) returns when the last one is
 * durable.  Returns the LSN of the last record.
 *
 * Not atomic: an error after the first record carries the last LSN appended in
 * its detail.  A payload too large is an error before anything is appended.
 */
extern uint64 gl_append(const GlPayload *payloads, int64 count, uint8 flags,
						GlSyncMode mode, bool wait);

/*
 * Wait until the record at lsn is durable.  timeout_us < 0: for ever.  False on
 * timeout.  Raises an error for an LSN never handed out, or lost in a crash.
 */
extern bool gl_wait_durable(uint64 lsn, int64 timeout_us);

/* Make everything appended so far durable; returns the end: all before it is. */
extern uint64 gl_flush(void);

/* Ask the writer for something and wait for the answer; raises its error. */
extern uint64 gl_request(int kind, uint64 lsn);

#endif							/* GROUPLOG_APPEND_H */
