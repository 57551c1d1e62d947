/*-------------------------------------------------------------------------
 *
 * sync_meter.c
 *		Is this a volume that counts syncs, and what does one use up?
 *
 * A volume that counts syncs lets so many pass in each tenth of a second, say, and
 * then nothing until that is over.  The usual sync is short there, and yet each
 * uses up a share of that time, which passes during waits as well: until the last
 * sync and the wait after it have used up that share, waiting costs nothing.  So
 * each sync waits so long, unless all sessions that are about have come.  Such a
 * volume is known by stalls of much more than the usual time after about as many
 * syncs each; the share is the time since the last stall by the syncs since.  Where
 * it is guessed too high there are no stalls any more, so it falls until there
 * are; and if waits don't make the stalls go away it was no such volume.
 *
 *-------------------------------------------------------------------------
 */
#include "sync_meter.h"

/*
 * A meter: so many stalls, each of at least so many times the usual, after at
 * least so many syncs, as many as the last time but for this part, and no less
 * than this part of the time since the last one.
 */
#define METER_STALLS	3
#define STALL			8
#define STALL_SYNCS		8
#define STALL_UNEVEN	0.5
#define STALL_PART		0.25

/* What came before so many syncs without a stall says nothing. */
#define STALL_FORGOTTEN	1024

/* Its cost fades by one in so many with each sync after the stall was due. */
#define METER_FADING	64

/* It is none if syncs cost so many times as much as they did, for all the waits. */
#define METER_DOUBT		1.5

static inline double
least(double a, double b)
{
	return a < b ? a : b;
}

static inline double
most(double a, double b)
{
	return a > b ? a : b;
}

/* A stall on a volume of which that is not known: is it as due as a meter's? */
static void
suspect_meter(GlPolicy *policy, double took_us, double cost_us)
{
	double		change = policy->due_syncs > 0 ? (double) policy->spent_syncs / policy->due_syncs : 1;

	if (took_us < STALL_PART * cost_us * policy->spent_syncs)
		policy->stalls = 0;
	else if (change < 1 - STALL_UNEVEN || change > 1 + STALL_UNEVEN)
		policy->stalls = 1;
	else
		policy->stalls++;

	if (policy->stalls >= METER_STALLS)
	{
		policy->meter_us = cost_us;
		policy->meter_most_us = cost_us;
		policy->company = 0;
	}
}

/* A stall on a volume that counts syncs: what does one cost? */
static void
read_meter(GlPolicy *policy, double cost_us)
{
	double		sync_us = policy->spent_us / policy->spent_syncs;

	/*
	 * A meter's syncs cannot cost more than the time for each of them, idle or
	 * not, so the least counts; unless it has become more than that in syncs
	 * alone.
	 */
	policy->meter_most_us = least(policy->meter_most_us, cost_us);
	policy->meter_most_us = most(policy->meter_most_us, sync_us);

	if (cost_us > METER_DOUBT * policy->meter_most_us)
	{
		policy->meter_us = 0;
		policy->stalls = 0;
	}
	else
		policy->meter_us = least(policy->meter_most_us, cost_us);
}

void
gl_meter_sync_done(GlPolicy *policy, double took_us, int64_t now_us)
{
	bool		metered = policy->meter_us > 0;
	double		since_us = (double) (now_us - policy->stall_us);

	policy->spent_us += took_us;
	policy->spent_syncs++;

	if (took_us < most(STALL * policy->sync_us, policy->meter_us) || policy->spent_syncs < STALL_SYNCS)
	{
		if (metered && policy->spent_syncs > policy->due_syncs)
		{
			policy->meter_us -= policy->meter_us / METER_FADING;
			if (policy->meter_us < 1.5 * policy->sync_us)
			{
				/* The next stall that is due would bring it back. */
				policy->meter_us = 0;
				policy->stalls = METER_STALLS - 1;
			}
		}
		return;
	}

	/* A hiccup between two stalls is none. */
	if (!metered && took_us < STALL_PART * since_us && took_us < policy->stall_took_us / 2 &&
		policy->spent_syncs < STALL_FORGOTTEN)
		return;

	if (metered)
		read_meter(policy, since_us / policy->spent_syncs);
	else
		suspect_meter(policy, took_us, since_us / policy->spent_syncs);

	policy->stall_took_us = took_us;
	policy->stall_us = now_us;
	policy->due_syncs = policy->spent_syncs;
	policy->spent_us = 0;
	policy->spent_syncs = 0;
}
