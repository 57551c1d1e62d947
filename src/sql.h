/*-------------------------------------------------------------------------
 *
 * sql.h
 *		What the SQL entry points share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_SQL_H
#define GROUPLOG_SQL_H

#include "postgres.h"

/* Raises the error of a session in a server that did not preload the library. */
extern void gl_require_loaded(void);

#endif							/* GROUPLOG_SQL_H */
