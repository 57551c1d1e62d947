/*-------------------------------------------------------------------------
 *
 * ledger.h
 *		What sim_log knows to be true: records sent, answers, damage.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SERVER_LEDGER_H
#define SERVER_LEDGER_H

#include "simos.h"

#define MAX_RECORDS		20000
#define ARENA_SIZE		(16 << 20)

typedef enum Outcome
{
	SENT,						/* no answer yet, or none that says anything */
	ACKNOWLEDGED,				/* or read by somebody */
	REFUSED,
	LOST						/* not found after a crash */
} Outcome;

typedef struct Record
{
	uint64		lsn;			/* 0: not known */
	uint64		after;			/* an LSN that was handed out before it was sent */
	uint64		upto;			/* the LSN that its call returned, or 0 */
	uint32		payload;		/* in the arena */
	uint32		size;
	uint32		count;			/* records of its batch */
	uint32		run;
	uint32		seen;			/* the last check that found it */
	Outcome		outcome;
} Record;

extern Record records[MAX_RECORDS];
extern uint32 record_count;
extern uint8 arena[ARENA_SIZE];
extern uint32 arena_used;

/* of this world */
extern uint64 world_seed;
extern uint32 world_steps_at;
extern uint32 run;
extern uint32 checks;
extern uint64 handed_out;		/* end of the last claim */
extern uint64 returned;			/* the largest LSN that any call returned */
extern uint64 truncated_to;		/* somebody asked for that */
extern uint64 sound_from;		/* silent damage is known below it */
extern bool damaged;			/* silently, and not looked at since */
extern bool reported;			/* the damage */
extern bool still_corrupt;		/* nobody has ended the log yet */
extern bool silent_world;
extern bool was_opened;			/* in this run */
extern bool closed;				/* cleanly, the run before */
extern bool opening;			/* the check is the one after an opening */
extern bool settling;			/* no more calls, and no more faults */
extern bool is_over;			/* nothing more to be had from this world */
extern char damage[160];

extern uint64 violations;
typedef struct Counts
{
	uint64		worlds;
	uint64		runs;
	uint64		crashes;
	uint64		power_cuts;
	uint64		closes;
	uint64		records;
	uint64		acknowledged;
	uint64		refused;
	uint64		unknown;
	uint64		checked;
	uint64		continuations;
	uint64		lone;			/* groups flushed by the session itself */
	uint64		recycled;
	uint64		io_errors;
	uint64		writers;
	uint64		damages;
	uint64		damages_reported;
	uint64		damages_unproven;
	uint64		ends_accepted;
} Counts;

extern Counts counts;

/* A session: appends, flushes, waits, truncates, until it is told to go. */
extern void appender_main(SimProcess *self);

/* Read the whole log and compare.  Call with sim_call. */
extern void check_now(void);

#endif							/* SERVER_LEDGER_H */
