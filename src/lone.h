/*-------------------------------------------------------------------------
 *
 * lone.h
 *		A lone appender flushes its record by itself.
 *
 * See lone.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_LONE_H
#define GROUPLOG_LONE_H

#include "postgres.h"

#include "ring.h"

/*
 * Flush everything up to and including this record, published by us and ours to
 * wait for, with a plain system call.  False: not now, or it failed; then the
 * writer does it, and must be woken as ever.  Raises no error.
 */
extern bool gl_lone_flush(const GlClaim *claim);

#endif							/* GROUPLOG_LONE_H */
