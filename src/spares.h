/*-------------------------------------------------------------------------
 *
 * spares.h
 *		Files made ahead of need.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_SPARES_H
#define GROUPLOG_SPARES_H

#include "postgres.h"

#include "error.h"

#define GL_SPARES_WANTED	2


/* Take over the spares that lie there, remove what is not usable. */
extern bool gl_spares_start(GlError *error);
extern uint32 gl_spares_ready(void);
extern uint32 gl_spares_next_number(void);
extern void gl_spares_add(uint32 number);

/* The next ready spare; false if there is none. */
extern bool gl_spares_take(uint32 *number);

/*
 * Do a bounded piece of the work ahead of need, without waiting.  Returns true
 * when there was a change (a spare became ready, or the reason not to make one
 * changed).  *pause_us: earliest time at which another call makes sense
 * (GL_NEVER: after I/O or a change).
 */
extern bool gl_spares_step(int64 now_us, int64 *pause_us);

/* Something has changed: do not wait with the next try. */
extern void gl_spares_retry(void);

/*
 * Make one now, handling interrupts meanwhile.  It may exceed the budget by one
 * file: what is left behind gives that back.  A continuation, for records that
 * are claimed already, may use the reserve of min_free_space, too.
 */
extern bool gl_spares_make_one(bool continuation, GlError *error);

#endif							/* GROUPLOG_SPARES_H */
