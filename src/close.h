/*-------------------------------------------------------------------------
 *
 * close.h
 *		Close the log at shutdown.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_CLOSE_H
#define GROUPLOG_CLOSE_H

#include "postgres.h"

/* Is the server going down, or was only the writer asked to end? */
extern bool gl_server_is_stopping(void);

/* Are there client sessions?  Those of replication do not count: they end last. */
extern bool gl_sessions_remain(void);

/*
 * Make everything published durable, seal the log with a close record, answer
 * whoever still waits.  Gives up after a minute, or when the device fails.
 */
extern void gl_log_close(void);

#endif							/* GROUPLOG_CLOSE_H */
