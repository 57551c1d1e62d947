/*-------------------------------------------------------------------------
 *
 * stream.h
 *		Whose record it is: the stream id of the current database.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_STREAM_H
#define GROUPLOG_STREAM_H

#include "postgres.h"

/*
 * The id of this database's main stream; cached for the session, forgotten when
 * the extension's table changes.  Raises an error where the extension is not
 * installed in this database.
 */
extern uint64 gl_stream_id(void);

#endif							/* GROUPLOG_STREAM_H */
