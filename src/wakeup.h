/*-------------------------------------------------------------------------
 *
 * wakeup.h
 *		Wake many sleeping sessions at once.
 *
 * On Linux one futex broadcast wakes all who sleep, where a condition variable
 * sends a signal to each; elsewhere a condition variable does it.  Sleeps are
 * short slices: whoever waits looks at interrupts, the postmaster and the
 * writer in between (a futex sleep is not ended by a latch, and the kernel
 * restarts it after some signals).
 *
 *		for (;;)
 *		{
 *			uint32 seen = gl_wakeup_prepare(wakeup);
 *
 *			if (condition)
 *				break;			... after gl_wakeup_cancel(wakeup)
 *			gl_wakeup_sleep(wakeup, topics, seen, timeout_ms, wait_event);
 *			CHECK_FOR_INTERRUPTS();
 *		}
 *
 * Whoever makes the condition true calls gl_wakeup_broadcast afterwards, with the
 * topics that it is about; with nobody asleep that costs a load.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_WAKEUP_H
#define GROUPLOG_WAKEUP_H

#include "postgres.h"

#include <stdalign.h>
#include <stdatomic.h>

#include "storage/condition_variable.h"

/*
 * What a sleeper is interested in, and what a broadcast is about: a set of 32
 * topics.  Sleepers whose set has none of the broadcast's topics sleep on (where
 * there is no futex, all wake).
 */
#define GL_WAKE_ALL			PG_UINT32_MAX

/* The longest slice, in milliseconds. */
#define GL_SLEEP_SLICE_MS	100

#if defined(__linux__) && !defined(GL_NO_FUTEX)
#define GL_USE_FUTEX
#endif

typedef struct GlWakeup
{
	alignas(64) _Atomic uint32 generation;	/* the futex */
	_Atomic uint32 sleepers;
#ifndef GL_USE_FUTEX
	ConditionVariable cv;
#endif
} GlWakeup;

extern void gl_wakeup_init(GlWakeup *wakeup);
extern uint32 gl_wakeup_prepare(GlWakeup *wakeup);
extern void gl_wakeup_cancel(GlWakeup *wakeup);
extern void gl_wakeup_sleep(GlWakeup *wakeup, uint32 topics, uint32 seen, long timeout_ms,
							uint32 wait_event);
extern void gl_wakeup_broadcast(GlWakeup *wakeup, uint32 topics);

#endif							/* GROUPLOG_WAKEUP_H */
