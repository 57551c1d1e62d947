/*-------------------------------------------------------------------------
 *
 * stats.c
 *		Statistics in shared memory: made, zeroed, and where a session counts.
 *
 * The views over them are in stats_sql.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "stats.h"
#include "utils/timestamp.h"

static inline void
zero(_Atomic uint64 *counter)
{
	atomic_store_explicit(counter, 0, memory_order_relaxed);
}

/*
 * Zero everything.  At startup and for grouplog.stat_reset(): sessions may be
 * counting meanwhile, so each counter is stored by itself, and what is counted
 * during the reset lands before or after it, field by field.
 */
void
gl_stats_init(GlStats *stats)
{
	for (int stripe = 0; stripe < GL_STAT_STRIPES; stripe++)
	{
		for (int mode = 0; mode < GL_SYNC_MODES; mode++)
		{
			GlStatMode *counters = &stats->stripes[stripe].mode[mode];

			zero(&counters->appends);
			zero(&counters->append_bytes);
			zero(&counters->waits);
			zero(&counters->wait_time_ns);
		}
	}

	zero(&stats->buffers_full);
	zero(&stats->lag_waits);
	zero(&stats->refused);
	zero(&stats->outcome_unknown);

	zero(&stats->groups);
	zero(&stats->records);
	zero(&stats->log_bytes);
	zero(&stats->writes);
	zero(&stats->write_bytes);
	zero(&stats->write_time_ns);
	zero(&stats->syncs);
	zero(&stats->sync_time_ns);
	for (int reason = 0; reason < GL_FLUSH_REASONS; reason++)
		zero(&stats->flushes[reason]);
	zero(&stats->write_errors);
	zero(&stats->sync_errors);
	zero(&stats->continuations);
	zero(&stats->segments_created);
	zero(&stats->segments_recycled);
	zero(&stats->segments_removed);

	gl_histogram_reset(&stats->append_wait);
	gl_histogram_reset(&stats->sync);
	gl_histogram_reset(&stats->write);
	gl_histogram_reset(&stats->group_records);
	gl_histogram_reset(&stats->group_bytes);

	atomic_store_explicit(&stats->reset_time, GetCurrentTimestamp(), memory_order_relaxed);
}

GlStatStripe *
gl_stats_stripe(GlStats *stats)
{
	return &stats->stripes[(uint32) MyProcNumber % GL_STAT_STRIPES];
}
