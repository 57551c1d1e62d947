/*-------------------------------------------------------------------------
 *
 * sync_policy.h
 *		When to sync: the four modes as deadlines.
 *
 * The writer knows one thing: the earliest deadline by which somebody wants the
 * pending bytes durable.  A mode only says what deadline an append brings and
 * whether its session waits, so sessions in different modes share groups.
 *
 *	periodic   the oldest record that is not durable + sync_period; does not wait
 *	batch      now; waits
 *	group      append + group_window; waits
 *	adaptive   the moment when those expected to join have joined; never later
 *	           than half a measured sync time, or, on a volume that counts syncs,
 *	           than the time that the last one uses up; nor than group_window; waits
 *
 * A function of (clock, pending, history, configuration) to (sync now, or sleep
 * until t): no clock, no locks, no server headers, so it is tested and
 * simulated without a server.  All times are microseconds of one monotonic
 * clock that the caller reads.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_SYNC_POLICY_H
#define GROUPLOG_SYNC_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "sync_meter.h"

typedef enum GlSyncMode
{
	GL_SYNC_PERIODIC = 0,
	GL_SYNC_BATCH,
	GL_SYNC_GROUP,
	GL_SYNC_ADAPTIVE
} GlSyncMode;

#define GL_SYNC_MODES	4

/* Why a group was flushed: the first of these that held. */
typedef enum GlFlushReason
{
	GL_FLUSH_REQUEST = 0,		/* flush(), wait_durable(), ring room, lag limit, shutdown */
	GL_FLUSH_BYTES,				/* group_bytes, or a quarter of the ring */
	GL_FLUSH_BATCH,				/* a batch append */
	GL_FLUSH_WINDOW,			/* a group window ended */
	GL_FLUSH_PERIOD,			/* the sync period ended */
	GL_FLUSH_JOINED,			/* adaptive: everyone expected is there, or none was */
	GL_FLUSH_PATIENCE,			/* adaptive: waited as long as it may */
	GL_FLUSH_LONE				/* not the policy's: a lone appender flushed by itself */
} GlFlushReason;

#define GL_FLUSH_REASONS	8

#define GL_NEVER		INT64_MAX	/* a time that does not come */

typedef struct GlPolicyConfig
{
	int64_t		sync_period_us;
	int64_t		adaptive_window_us;	/* adaptive never waits longer (grouplog.group_window
									 * of the server, not of a session) */
	uint64_t	flush_bytes;	/* min(group_bytes, ring size / 4) */
} GlPolicyConfig;

/* What is published and not yet part of a group: built up by the scan. */
typedef struct GlPending
{
	uint64_t	bytes;
	uint32_t	records;
	uint32_t	waiters;		/* sessions that wait: batch, group, adaptive */
	uint32_t	adaptive;		/* of those, adaptive */
	uint32_t	batch;			/* of those, batch */
	int64_t		oldest_us;		/* oldest record of any mode; GL_NEVER if none */
	int64_t		adaptive_us;	/* oldest adaptive waiter's record; GL_NEVER if none */
	int64_t		joined_us;		/* newest one; 0 if none */
	int64_t		window_us;		/* earliest end of a group window; GL_NEVER if none */
	int64_t		released_us;	/* when the last group's waiters were released; 0: a group
								 * is under way */
	uint32_t	others;			/* adaptive waiters older than that: none of those */
} GlPending;

/*
 * What past waits have taught, in one situation.  Gain and cost are smoothed, in
 * sync times for each waiter of the group.
 */
typedef struct GlPolicyLesson
{
	double		gain;			/* saved for those who joined during waits */
	double		cost;			/* lost for those who were there, and for those too late */
	double		share;			/* how many of those expected come in time */
	uint32_t	backoff;		/* groups without a wait after the last bad probe */
	uint32_t	skip;			/* groups without a wait until the next probe */
} GlPolicyLesson;

/*
 * What was learnt.  Initialise with gl_policy_init; the fields are the policy's
 * own, but plain numbers, so that a view or a simulation may look.
 */
typedef struct GlPolicy
{
	double		sync_us;		/* smoothed time of one group's write and sync; 0: none yet */
	double		tail;			/* smoothed part of a sync that is left after half the
								 * usual time: 0.5 if all take the same, more if not */

	GlMeter		meter;			/* a volume that counts syncs is known by it; there: */
	double		company;		/* sessions about; falls slowly */

	/* The last group that was synced. */
	int64_t		cut_us;			/* when it was cut */
	int64_t		done_us;		/* when it was durable */
	uint32_t	released;		/* how many waiters that released */
	bool		paced;			/* it kept the pace of a meter, known when it was cut */
	bool		waited;			/* it waited for company; then: */
	bool		waited_probing;
	int64_t		waited_us;		/* how long, ... */
	double		waited_syncs;	/* ... and in sync times */
	uint32_t	waited_before;	/* waiters when the wait began */
	uint32_t	waited_joined;	/* waiters who came during it */

	/* The next group. */
	bool		fresh;			/* no decision yet since the last sync */
	bool		crowd;			/* adaptive waiters were pending when that was done */
	bool		probing;		/* a wait would only try whether waiting pays by now */
	bool		waiting;		/* a wait began */
	uint32_t	carried;		/* waiters pending when the last sync was done */
	uint32_t	candidates;		/* waiters who may join those */
	uint32_t	expected;		/* waiters expected in all */
	uint32_t	wait_before;	/* waiters when the wait began */
	int64_t		wait_start_us;

	uint32_t	burst;			/* waiters who last came together out of quiet */
	GlPolicyLesson lessons[2];	/* out of quiet; with a crowd pending */
} GlPolicy;

typedef struct GlDecision
{
	bool		sync;
	GlFlushReason reason;		/* if sync */
	int64_t		wake_us;		/* if not: decide again then, at the latest; GL_NEVER: only
								 * when something comes */
	uint32_t	join_target;	/* if not: decide again as soon as this many waiters are
								 * pending (counted as GlPending.waiters); an append that
								 * waits, in whatever mode, and finds the count there wakes
								 * the writer.  0: no adaptive append is pending, and the
								 * next one wakes the writer */
} GlDecision;

extern void gl_pending_reset(GlPending *pending);

/*
 * A published record.  time_us: of the append; for a group append that waits the
 * end of its window instead (append + window).  waits: its session waits for it.
 * A record for which nobody waits brings the deadline of periodic mode, whatever
 * its mode: if somebody waits for it later, that is urgent.
 */
extern void gl_pending_add(GlPending *pending, GlSyncMode mode, bool waits,
						   int64_t time_us, uint64_t bytes);

extern void gl_policy_init(GlPolicy *policy);

/*
 * Nothing is in flight: sync now, or until when to wait.  urgent: somebody
 * asked for what is pending now, whatever the mode; with nothing pending there
 * is nothing to sync.  The first call after gl_policy_done should come at once:
 * it settles who is expected.  Any further calls change nothing but note that a
 * wait began.
 */
extern GlDecision gl_policy_decide(GlPolicy *policy, const GlPolicyConfig *config,
								   const GlPending *pending, bool urgent, int64_t now_us);

/* All that is pending was cut into a group, and its write starts. */
extern void gl_policy_cut(GlPolicy *policy, const GlPending *pending, int64_t now_us);

/* That group is durable, and its waiters are released; pending came meanwhile. */
extern void gl_policy_done(GlPolicy *policy, GlPending *pending, int64_t now_us);

/* It failed: forget it. */
extern void gl_policy_failed(GlPolicy *policy);

extern const char *gl_flush_reason_name(GlFlushReason reason);
extern const char *gl_sync_mode_name(GlSyncMode mode);

#endif							/* GROUPLOG_SYNC_POLICY_H */
