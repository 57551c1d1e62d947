/*-------------------------------------------------------------------------
 *
 * simulate.h
 *		What is simulated, and what comes of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GL_SIMULATE_H
#define GL_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "sync_policy.h"

#define MAX_SLOTS		4096	/* sessions at one time */
#define MAX_WAITS		400000	/* appends of one run */
#define MANY_CORES		MAX_SLOTS

typedef enum Spread
{
	CONSTANT,
	JITTER,						/* uniform, +- 20 % */
	EXPONENTIAL,
	LOGNORMAL					/* sigma 1, same mean */
} Spread;

typedef struct Clients
{
	int			count;
	double		think_us;
	Spread		think;
	double		stay_us;		/* leaves after about this time; 0: never */
	double		away_us;		/* and returns after about this time */
	double		on_us;			/* all are at work for so long together, ... */
	double		off_us;			/* ... and then away together; 0: no such pauses */
	bool		fixed;			/* keeps its own mode in every run ... */
	GlSyncMode	mode;			/* ... which is this one */
	double		window_us;		/* of a fixed group client */
} Clients;

typedef struct Cell
{
	const char *name;
	double		sync_us;
	Spread		sync;
	int			tokens;			/* syncs in each refill_us, more must wait; 0: any number */
	double		refill_us;
	int			cores;
	double		append_us;		/* CPU of one append, mean */
	Clients		clients[2];		/* closed loop, if count > 0 */
	double		open_us;		/* open loop: mean time between arrivals, if > 0 */
	int			burst;			/* arrivals at one time */
	Spread		arrival;		/* spread of the time between arrivals */
	double		least;			/* the rate that adaptive must reach besides; or 0 */
	bool		by_mean;		/* open loop: the mean wait is judged, not the median */
	bool		lone;			/* a lone client flushes by itself */
	bool		meets_fixed;	/* adaptive must reach 0.97 of batch and of group, 10 ms */
	bool		known;			/* does not hold, for the reason given in its family; ... */
	double		known_limit;	/* ... its rate or wait ratio then; 0: that of most */
} Cell;

typedef struct Result
{
	double		rate;			/* durable appends a second */
	double		median_us;
	double		mean_us;
	double		group;			/* waiters a group */
} Result;

extern uint64_t seed;

/* One run of a cell in one mode, until so many appends are durable. */
extern Result run(const Cell *cell, GlSyncMode mode, double window_us, long appends);

#endif
