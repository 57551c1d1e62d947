/*-------------------------------------------------------------------------
 *
 * wakeup.c
 *		Wake many sleeping sessions at once.
 *
 * The sleeper announces itself, then reads the generation, then looks at its
 * condition; the waker makes the condition true, then looks for sleepers and
 * moves the generation.  With sequential consistency one of the two sees the
 * other.
 *
 *-------------------------------------------------------------------------
 */
#include "wakeup.h"

#ifdef GL_USE_FUTEX
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#endif

#include "utils/wait_event.h"

void
gl_wakeup_init(GlWakeup *wakeup)
{
	atomic_init(&wakeup->generation, 0);
	atomic_init(&wakeup->sleepers, 0);
#ifndef GL_USE_FUTEX
	ConditionVariableInit(&wakeup->cv);
#endif
}

uint32
gl_wakeup_prepare(GlWakeup *wakeup)
{
	atomic_fetch_add(&wakeup->sleepers, 1);
#ifndef GL_USE_FUTEX
	ConditionVariablePrepareToSleep(&wakeup->cv);
#endif
	return atomic_load(&wakeup->generation);
}

void
gl_wakeup_cancel(GlWakeup *wakeup)
{
	atomic_fetch_sub(&wakeup->sleepers, 1);
#ifndef GL_USE_FUTEX
	ConditionVariableCancelSleep();
#endif
}

void
gl_wakeup_sleep(GlWakeup *wakeup, uint32 topics, uint32 seen, long timeout_ms, uint32 wait_event)
{
#ifdef GL_USE_FUTEX
	struct timespec until;

	/* A wait for a bit set counts from the clock's start. */
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (timeout_ms % 1000) * 1000000L;
	if (until.tv_nsec >= 1000000000L)
	{
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}

	pgstat_report_wait_start(wait_event);
	/* Woken, changed already, timed out or interrupted: the caller looks again. */
	(void) syscall(SYS_futex, &wakeup->generation, FUTEX_WAIT_BITSET, seen, &until, NULL, topics);
	pgstat_report_wait_end();
	atomic_fetch_sub(&wakeup->sleepers, 1);
#else
	atomic_fetch_sub(&wakeup->sleepers, 1);
	(void) seen;
	(void) ConditionVariableTimedSleep(&wakeup->cv, timeout_ms, wait_event);
#endif
}

void
gl_wakeup_broadcast(GlWakeup *wakeup, uint32 topics)
{
#ifdef GL_USE_FUTEX
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&wakeup->sleepers) == 0)
		return;
	atomic_fetch_add(&wakeup->generation, 1);
	(void) syscall(SYS_futex, &wakeup->generation, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL,
				   topics);
#else
	ConditionVariableBroadcast(&wakeup->cv);
#endif
}
