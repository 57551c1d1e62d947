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

/*
 * Make everything published durable, seal the log with a close record, answer
 * whoever still waits.  Gives up after a minute, or when the device fails.
 */
extern void gl_log_close(void);

#endif							/* GROUPLOG_CLOSE_H */
