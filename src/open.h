/*-------------------------------------------------------------------------
 *
 * open.h
 *		Open the log: recover what the files hold, begin a new run.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_OPEN_H
#define GROUPLOG_OPEN_H

#include "postgres.h"

#include "error.h"

/*
 * Recover, and set the shared state: OPEN, CORRUPT (error says what is lost) or
 * UNAVAILABLE (error says why; calling again later may help).  Raises no error
 * but for memory and interrupts.
 */
extern void gl_log_open(GlError *error);

/*
 * End a corrupt log at this LSN for good, and open it.  Checks that records end
 * there.  An LSN beyond the bad one keeps what was readable after it; readers
 * pass over the hole from then on.
 */
extern bool gl_log_accept_end(uint64 lsn, GlError *error);

#endif							/* GROUPLOG_OPEN_H */
