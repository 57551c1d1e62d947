/*-------------------------------------------------------------------------
 *
 * durable.h
 *		Wait until records are durable.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_DURABLE_H
#define GROUPLOG_DURABLE_H

#include "postgres.h"

/*
 * Wait until the record at lsn, of this server run, is durable, or until
 * deadline_us (monotonic; GL_NEVER).  False when the deadline came first.
 * Raises an error where the outcome is unknown.
 */
extern bool gl_wait_until(uint64 lsn, int64 deadline_us);

/*
 * Ask for the record at lsn to be made durable, and wait.  timeout_us < 0: for
 * ever.  False on timeout.  Raises an error for an LSN never handed out, or lost
 * in a crash.
 */
extern bool gl_wait_durable(uint64 lsn, int64 timeout_us);

/*
 * Make everything appended so far durable.  Returns the LSN of the last durable
 * record, '0/0' if there is none: everything appended before the call is at or
 * before it.
 */
extern uint64 gl_flush(void);

#endif							/* GROUPLOG_DURABLE_H */
