/*-------------------------------------------------------------------------
 *
 * stats_sql.c
 *		The functions beneath the views.
 *
 * All work as soon as the library is loaded, whether the log is open or not:
 * they are what tells why it is not.  Columns are filled in the order in which
 * grouplog--1.0.sql declares them.
 *
 * A histogram is copied before it is looked at, so that the columns of a row
 * fit each other although sessions go on recording.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/xlog.h"
#include "compat.h"
#include "config.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "shared.h"
#include "gate.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "verify.h"

PG_FUNCTION_INFO_V1(grouplog_stat_get);
PG_FUNCTION_INFO_V1(grouplog_stat_get_latency);
PG_FUNCTION_INFO_V1(grouplog_stat_get_latency_histogram);
PG_FUNCTION_INFO_V1(grouplog_stat_get_group);
PG_FUNCTION_INFO_V1(grouplog_stat_get_sync_mode);
PG_FUNCTION_INFO_V1(grouplog_get_status);
PG_FUNCTION_INFO_V1(grouplog_get_segments);

#define NANOSECONDS_PER_MS	1000000.0

/* A row under construction. */
#define ROW_MAX_COLUMNS	40

typedef struct Row
{
	int			count;
	Datum		values[ROW_MAX_COLUMNS];
	bool		nulls[ROW_MAX_COLUMNS];
} Row;

static void
put(Row *row, Datum value, bool isnull)
{
	Assert(row->count < ROW_MAX_COLUMNS);
	row->values[row->count] = value;
	row->nulls[row->count] = isnull;
	row->count++;
}

static void
put_int(Row *row, int64 value)
{
	put(row, Int64GetDatum(value), false);
}

static void
put_float(Row *row, double value)
{
	put(row, Float8GetDatum(value), false);
}

static void
put_counter(Row *row, _Atomic uint64 *counter)
{
	put_int(row, (int64) atomic_load_explicit(counter, memory_order_relaxed));
}

static void
put_time(Row *row, uint64 ns)
{
	put_float(row, ns / NANOSECONDS_PER_MS);
}

/* '' is shown as null */
static void
put_text(Row *row, const char *value)
{
	if (value[0] == '\0')
		put(row, (Datum) 0, true);
	else
		put(row, CStringGetTextDatum(value), false);
}

/* 0/0 is before everything: no position, shown as null */
static void
put_lsn(Row *row, uint64 lsn)
{
	put(row, LSNGetDatum(lsn), lsn == 0);
}

static void
put_reset_time(Row *row)
{
	put(row, TimestampTzGetDatum(atomic_load(&gl_shared->stats.reset_time)), false);
}

/* The row is full: give it to the function's result, and begin the next. */
static void
put_row(FunctionCallInfo fcinfo, Row *row)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	Assert(row->count == rsinfo->setDesc->natts);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row->values, row->nulls);
	row->count = 0;
}

/* The same for a function that returns one row, not a set. */
static Datum
return_row(FunctionCallInfo fcinfo, Row *row)
{
	TupleDesc	tupdesc;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	Assert(row->count == tupdesc->natts);
	tupdesc = BlessTupleDesc(tupdesc);
	return HeapTupleGetDatum(heap_form_tuple(tupdesc, row->values, row->nulls));
}

/*
 * Counters
 */

typedef struct ModeTotals
{
	uint64		appends;
	uint64		append_bytes;
	uint64		waits;
	uint64		wait_time_ns;
} ModeTotals;

static void
add_mode(ModeTotals *totals, int mode)
{
	for (int stripe = 0; stripe < GL_STAT_STRIPES; stripe++)
	{
		GlStatMode *counters = &gl_shared->stats.stripes[stripe].mode[mode];

		totals->appends += atomic_load_explicit(&counters->appends, memory_order_relaxed);
		totals->append_bytes += atomic_load_explicit(&counters->append_bytes, memory_order_relaxed);
		totals->waits += atomic_load_explicit(&counters->waits, memory_order_relaxed);
		totals->wait_time_ns += atomic_load_explicit(&counters->wait_time_ns, memory_order_relaxed);
	}
}

static void
put_mode_totals(Row *row, const ModeTotals *totals)
{
	put_int(row, (int64) totals->appends);
	put_int(row, (int64) totals->append_bytes);
	put_int(row, (int64) totals->waits);
	put_time(row, totals->wait_time_ns);
}

Datum
grouplog_stat_get(PG_FUNCTION_ARGS)
{
	GlStats    *stats;
	ModeTotals	totals = {0};
	Row			row = {0};

	gl_gate_check_loaded();
	stats = &gl_shared->stats;

	for (int mode = 0; mode < GL_SYNC_MODES; mode++)
		add_mode(&totals, mode);
	put_mode_totals(&row, &totals);

	put_counter(&row, &stats->groups);
	put_counter(&row, &stats->records);
	put_counter(&row, &stats->log_bytes);
	put_counter(&row, &stats->writes);
	put_counter(&row, &stats->write_bytes);
	put_time(&row, atomic_load(&stats->write_time_ns));
	put_counter(&row, &stats->syncs);
	put_time(&row, atomic_load(&stats->sync_time_ns));
	for (int reason = 0; reason < GL_FLUSH_REASONS; reason++)
		put_counter(&row, &stats->flushes[reason]);

	put_counter(&row, &stats->buffers_full);
	put_counter(&row, &stats->lag_waits);
	put_counter(&row, &stats->refused);
	put_counter(&row, &stats->outcome_unknown);
	put_counter(&row, &stats->write_errors);
	put_counter(&row, &stats->sync_errors);
	put_counter(&row, &stats->continuations);
	put_counter(&row, &stats->segments_created);
	put_counter(&row, &stats->segments_recycled);
	put_counter(&row, &stats->segments_removed);
	put_reset_time(&row);

	return return_row(fcinfo, &row);
}

Datum
grouplog_stat_get_sync_mode(PG_FUNCTION_ARGS)
{
	Row			row = {0};

	gl_gate_check_loaded();
	InitMaterializedSRF(fcinfo, 0);

	for (int mode = 0; mode < GL_SYNC_MODES; mode++)
	{
		ModeTotals	totals = {0};

		add_mode(&totals, mode);
		put_text(&row, gl_sync_mode_name((GlSyncMode) mode));
		put_mode_totals(&row, &totals);
		put_reset_time(&row);
		put_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/*
 * Histograms
 */

static GlHistogram *
copy_histogram(const GlHistogram *histogram)
{
	GlHistogram *copy = palloc(sizeof(GlHistogram));

	gl_histogram_reset(copy);
	gl_histogram_merge(copy, histogram);
	return copy;
}

/*
 * One row: name, count, mean, percentiles and maximum in the given unit.  Where
 * nothing was measured, there is no mean and no percentile.
 */
static void
put_summary(FunctionCallInfo fcinfo, const char *name, const GlHistogram *histogram, double unit)
{
	static const double fractions[] = {0.50, 0.95, 0.99, 0.999};
	GlHistogram *copy = copy_histogram(histogram);
	uint64		count = gl_histogram_count(copy);
	bool		none = count == 0;
	Row			row = {0};

	put_text(&row, name);
	put_int(&row, (int64) count);
	put(&row, Float8GetDatum(gl_histogram_mean(copy) / unit), none);
	for (int i = 0; i < lengthof(fractions); i++)
		put(&row, Float8GetDatum(gl_histogram_percentile(copy, fractions[i]) / unit), none);
	put(&row, Float8GetDatum(gl_histogram_max(copy) / unit), none);
	put_reset_time(&row);
	put_row(fcinfo, &row);
	pfree(copy);
}

Datum
grouplog_stat_get_latency(PG_FUNCTION_ARGS)
{
	GlStats    *stats;

	gl_gate_check_loaded();
	InitMaterializedSRF(fcinfo, 0);
	stats = &gl_shared->stats;

	put_summary(fcinfo, "append_wait", &stats->append_wait, NANOSECONDS_PER_MS);
	put_summary(fcinfo, "sync", &stats->sync, NANOSECONDS_PER_MS);
	put_summary(fcinfo, "write", &stats->write, NANOSECONDS_PER_MS);
	return (Datum) 0;
}

Datum
grouplog_stat_get_group(PG_FUNCTION_ARGS)
{
	GlStats    *stats;

	gl_gate_check_loaded();
	InitMaterializedSRF(fcinfo, 0);
	stats = &gl_shared->stats;

	put_summary(fcinfo, "records", &stats->group_records, 1.0);
	put_summary(fcinfo, "bytes", &stats->group_bytes, 1.0);
	return (Datum) 0;
}

static void
put_buckets(FunctionCallInfo fcinfo, const char *name, const GlHistogram *histogram)
{
	Row			row = {0};

	for (uint32 bucket = 0; bucket < GL_HISTOGRAM_BUCKETS; bucket++)
	{
		uint64		count = atomic_load_explicit(&((GlHistogram *) histogram)->buckets[bucket],
												 memory_order_relaxed);

		if (count == 0)
			continue;
		put_text(&row, name);
		put_time(&row, gl_histogram_bucket_low(bucket));
		if (bucket == GL_HISTOGRAM_BUCKETS - 1)
			put_float(&row, INFINITY);	/* the last one is open */
		else
			put_time(&row, gl_histogram_bucket_high(bucket));
		put_int(&row, (int64) count);
		put_row(fcinfo, &row);
	}
}

Datum
grouplog_stat_get_latency_histogram(PG_FUNCTION_ARGS)
{
	GlStats    *stats;

	gl_gate_check_loaded();
	InitMaterializedSRF(fcinfo, 0);
	stats = &gl_shared->stats;

	put_buckets(fcinfo, "append_wait", &stats->append_wait);
	put_buckets(fcinfo, "sync", &stats->sync);
	put_buckets(fcinfo, "write", &stats->write);
	return (Datum) 0;
}

/*
 * State
 */

static const char *
refusal_name(GlRefusal refusal)
{
	switch (refusal)
	{
		case GL_REFUSE_NOTHING:
			return "";
		case GL_REFUSE_FREE_SPACE:
			return "min_free_space";
		case GL_REFUSE_DEVICE:
			return "device";
		case GL_REFUSE_NO_SPACE:
			return "no_space";
		case GL_REFUSE_MAX_SIZE:
			return "max_size";
	}
	return "";
}

/* Message and detail as one text; no error is null. */
static void
put_error(Row *row, const GlError *shared_error)
{
	GlError		error;

	gl_shared_get_error(shared_error, &error);
	if (error.sqlstate == 0)
		put(row, (Datum) 0, true);
	else if (error.detail[0] == '\0')
		put_text(row, error.message);
	else
		put_text(row, psprintf("%s: %s", error.message, error.detail));
}

/* size: of the array in shared memory */
static void
put_shared_text(Row *row, const char *shared_text, Size size)
{
	char	   *copy = palloc(size);

	gl_shared_get_text(shared_text, copy, size);
	put_text(row, copy);
}

Datum
grouplog_get_status(PG_FUNCTION_ARGS)
{
	GlRing	   *ring;
	GlState		state;
	GlRefusal	refusal;
	uint64		log_id;
	int			writer_pid;
	bool		opened;
	Row			row = {0};

	gl_gate_check_loaded();
	ring = gl_ring();
	state = (GlState) atomic_load(&gl_shared->state);
	log_id = atomic_load(&gl_shared->log_id);
	writer_pid = atomic_load(&gl_shared->writer_pid);

	/* what the writer finds out when it opens the log is not known before */
	opened = state != GL_STATE_STARTING;

	put_text(&row, RecoveryInProgress() ? "standby" : gl_state_name(state));
	refusal = (GlRefusal) atomic_load(&gl_shared->refusal);
	put_text(&row, refusal_name(refusal));
	if (state == GL_STATE_OPEN && refusal == GL_REFUSE_NOTHING)
		put_text(&row, "");		/* it is over */
	else if (state == GL_STATE_STARTING && writer_pid == 0)
		put_text(&row, RecoveryInProgress() ? "no writer runs during recovery" :
				 "the grouplog writer is not running");
	else
		put_error(&row, &gl_shared->problem);

	put_lsn(&row, gl_ring_insert_lsn(ring));
	/* a group is acknowledged as one: written is seen only when durable */
	put_lsn(&row, gl_ring_durable_lsn(ring));
	put_lsn(&row, gl_ring_durable_lsn(ring));
	put_lsn(&row, atomic_load(&gl_shared->oldest_lsn));
	put_lsn(&row, atomic_load(&gl_shared->run_start));

	put_text(&row, log_id == 0 ? "" : psprintf("%016llx", (unsigned long long) log_id));
	put(&row, Int64GetDatum((int64) atomic_load(&gl_shared->epoch)), log_id == 0);
	put(&row, Int32GetDatum(writer_pid), writer_pid == 0);

	put_text(&row, !opened ? "" :
			 atomic_load(&gl_shared->io_method) == GL_IO_URING ? "io_uring" : "sync");
	put_shared_text(&row, gl_shared->io_reason, sizeof(gl_shared->io_reason));
	put_text(&row, !opened ? "" :
			 atomic_load(&gl_shared->sync_method) == GL_SYNC_OPEN_DATASYNC ?
			 "open_datasync" : "fdatasync");
	put_shared_text(&row, gl_shared->sync_reason, sizeof(gl_shared->sync_reason));
	put(&row, BoolGetDatum(atomic_load(&gl_shared->fsync_on) != 0), !opened);

	put_text(&row, is_absolute_path(gl_directory) ? gl_directory :
			 psprintf("%s/%s", DataDir, gl_directory));
	put_int(&row, (int64) atomic_load(&gl_shared->directory_bytes));
	put_int(&row, (int64) gl_shared->ring_size);
	put_int(&row, (int64) gl_shared->segment_size);

	put_shared_text(&row, gl_shared->recovery, sizeof(gl_shared->recovery));
	put_lsn(&row, atomic_load(&gl_shared->holes_end));
	put_error(&row, &gl_shared->last_error);

	return return_row(fcinfo, &row);
}

Datum
grouplog_get_segments(PG_FUNCTION_ARGS)
{
	GlState		state;
	GlSegmentReport *reports;
	int			count;
	Row			row = {0};

	gl_gate_check_loaded();
	InitMaterializedSRF(fcinfo, 0);

	/* the files of a log that is not open may belong to somebody else */
	state = (GlState) atomic_load(&gl_shared->state);
	if (state == GL_STATE_STARTING || state == GL_STATE_UNAVAILABLE)
		return (Datum) 0;

	reports = gl_segment_reports(false, &count);
	for (int i = 0; i < count; i++)
	{
		const GlSegmentReport *report = &reports[i];
		char		file[GL_SEGMENT_NAME_SIZE];

		gl_segment_name(file, report->number, report->first_lsn);
		put_int(&row, report->number);
		put_text(&row, file);
		put_lsn(&row, report->first_lsn);
		put_lsn(&row, report->end_lsn);
		put_int(&row, (int64) report->file_bytes);
		put(&row, BoolGetDatum(report->current), false);
		put(&row, TimestampTzGetDatum(report->created), false);
		put_row(fcinfo, &row);
	}
	return (Datum) 0;
}
