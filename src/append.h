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
 * Append count payloads in order, one record each; flags: GL_RECORD_TEXT or 0.
 * With wait (and a mode other than periodic) returns when the last one is
 * durable.  Returns the LSN of the last record.
 *
 * Not atomic: an error after the first record carries the last LSN appended in
 * its detail.  A payload too large is an error before anything is appended.
 */
extern uint64 gl_append(const GlPayload *payloads, int64 count, uint8 flags,
						GlSyncMode mode, bool wait);

#endif							/* GROUPLOG_APPEND_H */
