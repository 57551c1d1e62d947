/*-------------------------------------------------------------------------
 *
 * stats.h
 *		Statistics in shared memory.
 *
 * Appenders count into stripes (a cache line each, chosen by the backend's
 * number), so that sessions do not fight over a counter; the flusher's counters
 * have one writer.  All are relaxed atomics: never a lock, and a reader sees a
 * moment's blur.  Times are kept in nanoseconds and shown in milliseconds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_STATS_H
#define GROUPLOG_STATS_H

#include "postgres.h"

#include <stdalign.h>
#include <stdatomic.h>

#include "histogram.h"
#include "sync_policy.h"

#define GL_STAT_STRIPES		32

typedef struct GlStatMode
{
	_Atomic uint64 appends;
	_Atomic uint64 append_bytes;	/* payload */
	_Atomic uint64 waits;			/* waits for durability that slept or not, one an append or batch */
	_Atomic uint64 wait_time_ns;
} GlStatMode;

typedef struct GlStatStripe
{
	alignas(64) GlStatMode mode[GL_SYNC_MODES];
} GlStatStripe;

typedef struct GlStats
{
	GlStatStripe stripes[GL_STAT_STRIPES];

	/* appenders, seldom */
	alignas(64) _Atomic uint64 buffers_full;	/* had to wait for ring room */
	_Atomic uint64 lag_waits;		/* periodic appends that waited for the lag limit */
	_Atomic uint64 refused;			/* appends refused: full disk, budget, closed, failed */
	_Atomic uint64 outcome_unknown;	/* waits that ended without an answer because the device failed */

	/* the flusher */
	alignas(64) _Atomic uint64 groups;
	_Atomic uint64 records;			/* data records made durable */
	_Atomic uint64 log_bytes;		/* log bytes made durable, headers and padding included */
	_Atomic uint64 writes;
	_Atomic uint64 write_bytes;		/* as given to the kernel */
	_Atomic uint64 write_time_ns;
	_Atomic uint64 syncs;
	_Atomic uint64 sync_time_ns;
	_Atomic uint64 flushes[GL_FLUSH_REASONS];
	_Atomic uint64 write_errors;
	_Atomic uint64 sync_errors;
	_Atomic uint64 continuations;	/* files begun because of an error or a restart of the writer */
	_Atomic uint64 segments_created;
	_Atomic uint64 segments_recycled;
	_Atomic uint64 segments_removed;
	_Atomic int64 reset_time;		/* TimestampTz */

	/* ns; group_records: data records; group_bytes: log bytes */
	GlHistogram append_wait;
	GlHistogram sync;
	GlHistogram write;
	GlHistogram group_records;
	GlHistogram group_bytes;
} GlStats;

extern void gl_stats_init(GlStats *stats);

/* The calling backend's stripe. */
extern GlStatStripe *gl_stats_stripe(GlStats *stats);

static inline void
gl_stat_add(_Atomic uint64 *counter, uint64 value)
{
	atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

#endif							/* GROUPLOG_STATS_H */
