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
 * What passes in a pause is saved for what comes after it, up to what passes between
 * two stalls; a stall says that nothing is left.
 *
 *-------------------------------------------------------------------------
 */
#include "sync_meter.h"

#include <stdbool.h>

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

/*
 * Its cost fades by one in so many with each sync after the stall was due.  Each
 * stall that comes of a guess too low makes everybody wait, so slowly.
 */
#define METER_FADING	256

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
suspect_meter(GlMeter *meter, double took_us, double since_us)
{
	double		change = meter->due_syncs > 0 ? (double) meter->spent_syncs / meter->due_syncs : 1;
	double		cost_us = since_us / meter->spent_syncs;

	if (took_us < STALL_PART * (since_us - meter->idle_us))
		meter->stalls = 0;
	else if (change < 1 - STALL_UNEVEN || change > 1 + STALL_UNEVEN)
		meter->stalls = 1;
	else
		meter->stalls++;

	meter->most_us = meter->stalls <= 1 ? cost_us : least(meter->most_us, cost_us);
	if (meter->stalls >= METER_STALLS)
		meter->cost_us = meter->most_us;
}

/* A stall on a volume that counts syncs: what does one cost? */
static void
read_meter(GlMeter *meter, double since_us)
{
	double		cost_us = since_us / meter->spent_syncs;
	double		sync_us = meter->spent_us / meter->spent_syncs;

	/*
	 * A meter's syncs cannot cost more than the time for each of them, idle or
	 * not, so the least counts; unless it has become more than that in syncs
	 * alone.
	 */
	meter->most_us = least(meter->most_us, cost_us);
	meter->most_us = most(meter->most_us, sync_us);

	/*
	 * Waits did not help?  After idle time nobody knows: in it syncs seem to cost
	 * more, and a lone session may have used up what a crowd then lacks.
	 */
	if (meter->idle_us == 0 && since_us > METER_DOUBT * meter->most_us * meter->spent_syncs)
	{
		meter->cost_us = 0;
		meter->stalls = 0;
	}
	else
		meter->cost_us = meter->most_us;
}

/*
 * A pause longer than any wait for the meter, or while that is not known longer
 * than a stall, is idle time, such as that of a lone session's own flushes.
 */
void
gl_meter_sync_starts(GlMeter *meter, double pause_us)
{
	double		usual_us = meter->cost_us > 0 ? meter->cost_us : meter->stall_took_us;

	if (pause_us > usual_us)
		meter->idle_us += pause_us - usual_us;
	if (meter->cost_us > 0)
	{
		double		passed_us = pause_us + least(meter->took_us, meter->cost_us);

		meter->saved += passed_us / meter->cost_us - 1;
		meter->saved = least(most(meter->saved, 0), meter->due_syncs);
	}
}

void
gl_meter_sync_done(GlMeter *meter, double usual_us, double took_us, int64_t now_us)
{
	bool		metered = meter->cost_us > 0;
	double		since_us = (double) (now_us - meter->stall_us);

	meter->took_us = took_us;
	meter->spent_us += took_us;
	meter->spent_syncs++;

	if (took_us < most(STALL * usual_us, meter->cost_us) || meter->spent_syncs < STALL_SYNCS)
	{
		if (metered && meter->spent_syncs > meter->due_syncs)
		{
			meter->cost_us -= meter->cost_us / METER_FADING;
			if (meter->cost_us < 1.5 * usual_us)
			{
				/* The next stall that is due would bring it back. */
				meter->cost_us = 0;
				meter->stalls = METER_STALLS - 1;
			}
		}
		return;
	}

	/* A hiccup between two stalls is none. */
	if (!metered && took_us < STALL_PART * since_us && took_us < meter->stall_took_us / 2 &&
		meter->spent_syncs < STALL_FORGOTTEN)
		return;

	if (metered)
		read_meter(meter, since_us);
	else
		suspect_meter(meter, took_us, since_us);

	meter->stall_took_us = took_us;
	meter->stall_us = now_us;
	meter->due_syncs = meter->spent_syncs;
	meter->spent_us = 0;
	meter->spent_syncs = 0;
	meter->idle_us = 0;
	meter->saved = 0;
}
