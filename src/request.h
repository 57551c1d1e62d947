/*-------------------------------------------------------------------------
 *
 * request.h
 *		Ask the writer for something that only it may do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_REQUEST_H
#define GROUPLOG_REQUEST_H

#include "postgres.h"

/* Ask (kind: GlRequestKind) and wait for the answer; raises the writer's error. */
extern uint64 gl_request(int kind, uint64 lsn);

#endif							/* GROUPLOG_REQUEST_H */
