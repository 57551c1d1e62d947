/*-------------------------------------------------------------------------
 *
 * sync_meter.h
 *		Is this a volume that counts syncs, and what does one use up?
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_SYNC_METER_H
#define GROUPLOG_SYNC_METER_H

#include <stdint.h>

/* All zeros: nothing is known.  The fields are the meter's own, but for cost_us and saved. */
typedef struct GlMeter
{
	double		cost_us;		/* the time that each sync uses up; 0: not such a volume */
	double		saved;			/* if it is: syncs that were left out in pauses */
	double		took_us;		/* the last sync */
	double		most_us;		/* what that may be at most, by the stalls so far */
	uint32_t	stalls;			/* so far, each as due as a meter's */
	double		stall_took_us;	/* the last of them: how long, ... */
	int64_t		stall_us;		/* ... and when it was over; since then: */
	double		spent_us;		/* time in syncs, ... */
	uint32_t	spent_syncs;	/* ... and how many; and time ... */
	double		idle_us;		/* ... without a sync that no wait was the cause of */
	uint32_t	due_syncs;		/* how many it was the last time */
} GlMeter;

/* A sync starts, pause_us after the last one was done. */
extern void gl_meter_sync_starts(GlMeter *meter, double pause_us);

/*
 * A sync that took took_us is done at now_us, and the usual one takes usual_us:
 * what does it say of a meter?  Sets cost_us.
 */
extern void gl_meter_sync_done(GlMeter *meter, double usual_us, double took_us, int64_t now_us);

#endif							/* GROUPLOG_SYNC_METER_H */
