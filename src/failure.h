/*-------------------------------------------------------------------------
 *
 * failure.h
 *		What the writer does when the device fails.
 *
 * The first failure of a write or sync costs a file: it is never synced again,
 * and the unacknowledged records, which are still in the ring, go to a
 * continuation file.  If that fails too, everybody who waits is told that the
 * outcome is unknown, and appends are refused until a later try succeeds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_FAILURE_H
#define GROUPLOG_FAILURE_H

#include "postgres.h"

#include "error.h"

/* Keep it for grouplog.status. */
extern void gl_failure_note(const GlError *error);

/*
 * Have an open file that holds the durable LSN: the next one after a full one,
 * or one that continues in the middle.
 */
extern bool gl_group_file(GlError *error);

/* A group's write or sync has failed. */
extern void gl_failure_write(const GlError *error);

/* Nobody knows what became of the pending records: say so, refuse new ones. */
extern void gl_failure_give_up(const GlError *error);

/*
 * Nothing is pending, and no file can be had for what comes.  Where space or the
 * budget is the reason, the refusal says so already.
 */
extern void gl_failure_no_file(const GlError *error);

/* A group came through, or a file could be had. */
extern void gl_failure_over(void);

/* Is the next group the first try after a failure? */
extern bool gl_failure_retrying(void);

/* Appends are refused; when is the next try due (monotonic microseconds)? */
extern bool gl_failure_refusing(int64 *retry_at_us);

#endif							/* GROUPLOG_FAILURE_H */
