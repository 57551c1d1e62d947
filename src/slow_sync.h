/*-------------------------------------------------------------------------
 *
 * slow_sync.h
 *		Say in the server log when the device is slow.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_SLOW_SYNC_H
#define GROUPLOG_SLOW_SYNC_H

#include "postgres.h"

/* A sync that began at start_ns (monotonic) is still in progress. */
extern void gl_slow_sync_in_progress(int64 start_ns);

/* It has succeeded. */
extern void gl_slow_sync_done(int64 start_ns);

#endif							/* GROUPLOG_SLOW_SYNC_H */
