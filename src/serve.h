/*-------------------------------------------------------------------------
 *
 * serve.h
 *		The writer does what sessions have asked for: truncate, accept_end.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_SERVE_H
#define GROUPLOG_SERVE_H

#include "postgres.h"

/* Take a request and do it, or go on with the one in progress. */
extern void gl_serve(void);

/* Has somebody asked? */
extern bool gl_serve_wanted(void);

/* A predecessor took a request and died: whoever asked must not wait for it. */
extern void gl_serve_orphan(void);

#endif							/* GROUPLOG_SERVE_H */
