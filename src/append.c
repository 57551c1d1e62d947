/*-------------------------------------------------------------------------
 *
 * append.c
 *		The appender's path: check, claim, copy, publish, wait.
 *
 * Everything that can fail, and everything that takes long, comes before the
 * claim: detoasting (the caller's), the payload's CRC, all checks.  Between
 * claim and publish interrupts are held and nothing can raise an error, so a
 * cancelled or terminated session never leaves a hole.
 *
 *-------------------------------------------------------------------------
 */
#include "append.h"

#include "compat.h"
#include "config.h"
#include "durable.h"
#include "gate.h"
#include "lone.h"
#include "miscadmin.h"
#include "shared.h"
#include "storage/ipc.h"
#include "stream.h"
#include "utils/timestamp.h"

/* --- room --- */

static void
leave_queue(int code, Datum ticket)
{
	gl_ring_queue_leave(gl_ring(), DatumGetUInt64(ticket));
	/* Whoever is first now may not have been woken for the room there is. */
	gl_wakeup_broadcast(&gl_shared->room, GL_WAKE_ALL);
}

/* Tell the writer what we wait for, and sleep a slice. */
static void
sleep_for_room(uint32 seen, GlClaimStatus why)
{
	if (why == GL_CLAIM_NO_SEGMENT)
		atomic_store(&gl_shared->need_segment, 1);
	gl_shared_urge(gl_ring_insert_lsn(gl_ring()));
	gl_wakeup_sleep(&gl_shared->room, GL_WAKE_ALL, seen, GL_SLEEP_SLICE_MS,
					gl_wait_event(GL_WAIT_APPEND_ROOM));
}

static GlClaimStatus
try_claim(uint64 span, GlClaim *claim)
{
	GlRing	   *ring = gl_ring();
	GlClaimStatus status;

	do
	{
		uint64		position = gl_ring_position(ring);

		status = gl_ring_try_claim(ring, position, span, GetCurrentTimestamp(), false, claim);
	} while (status == GL_CLAIM_RACE);
	return status;
}

/* With fsync off the durable LSN proves nothing. */
static uint32
undurable_distance(const GlClaim *claim)
{
	return atomic_load(&gl_shared->fsync_on) ?
		gl_undurable_distance(claim->lsn, claim->durable_lsn) : GL_UNDURABLE_UNKNOWN;
}

/*
 * Fill the rest of a segment.  Called with interrupts held, as we hold a claim.
 */
static void
fill_padding(const GlClaim *claim)
{
	GlSeed		seed = gl_shared_seed();

	gl_ring_publish_padding(gl_ring(), claim, &seed, undurable_distance(claim),
							gl_hint(GL_SYNC_PERIODIC, false, gl_now_us()));
}

/*
 * With a ticket: wait for our turn, and for room.  Returns with interrupts held.
 */
static void
claim_in_turn(uint64 ticket, uint64 span, GlClaim *claim)
{
	GlRing	   *ring = gl_ring();

	for (;;)
	{
		GlClaimStatus status = GL_CLAIM_NO_ROOM;
		uint32		seen;

		gl_gate_check_open();
		seen = gl_wakeup_prepare(&gl_shared->room);
		if (gl_ring_queue_first(ring, ticket))
		{
			HOLD_INTERRUPTS();
			while ((status = try_claim(span, claim)) == GL_CLAIM_PADDING)
				fill_padding(claim);
			if (status == GL_CLAIM_OK)
			{
				gl_wakeup_cancel(&gl_shared->room);
				return;
			}
			RESUME_INTERRUPTS();
		}
		if (status == GL_CLAIM_SEALED)
		{
			gl_wakeup_cancel(&gl_shared->room);
			gl_gate_raise_closed();
		}
		if (status == GL_CLAIM_NO_SEGMENT)
		{
			gl_wakeup_cancel(&gl_shared->room);
			gl_gate_check_files();
			seen = gl_wakeup_prepare(&gl_shared->room);
		}
		sleep_for_room(seen, status);
		CHECK_FOR_INTERRUPTS();
		gl_gate_check_writer();
	}
}

/*
 * Claim span bytes, waiting for room if need be.  Returns with interrupts held:
 * the caller copies, publishes and releases them.
 */
static void
claim_room(uint64 span, GlClaim *claim)
{
	GlRing	   *ring = gl_ring();
	uint64		ticket;
	GlClaimStatus status = GL_CLAIM_NO_ROOM;

	/* The fast path: nobody waits, and there is room. */
	HOLD_INTERRUPTS();
	while (gl_ring_queue_empty(ring))
	{
		status = try_claim(span, claim);
		if (status == GL_CLAIM_OK)
			return;
		if (status != GL_CLAIM_PADDING)
			break;
		fill_padding(claim);
	}
	RESUME_INTERRUPTS();

	if (status == GL_CLAIM_NO_ROOM)
		gl_stat_add(&gl_shared->stats.buffers_full, 1);

	/* In order of arrival from here on. */
	while (!gl_ring_queue_join(ring, &ticket))
	{
		pg_usleep(1000);
		CHECK_FOR_INTERRUPTS();
		gl_gate_check_writer();
	}
	PG_ENSURE_ERROR_CLEANUP(leave_queue, UInt64GetDatum(ticket));
	{
		claim_in_turn(ticket, span, claim);
	}
	PG_END_ENSURE_ERROR_CLEANUP(leave_queue, UInt64GetDatum(ticket));
	leave_queue(0, UInt64GetDatum(ticket));
}

/* Is the oldest record without a sync older than periodic mode allows? */
static bool
lags(void)
{
	int64		now_us = gl_now_us();
	int64		record_time;
	int64		oldest_us = gl_ring_oldest_us(gl_ring(), now_us, &record_time);

	if (oldest_us == GL_NEVER)
		return false;
	return now_us - oldest_us > gl_config_lag_limit_us() ||
		(record_time != INT64_MAX && GetCurrentTimestamp() - record_time > GL_HINT_RANGE_US);
}

/* Periodic mode: the oldest record without a sync must not grow too old. */
static void
wait_for_lag(void)
{
	if (!lags())
		return;

	gl_stat_add(&gl_shared->stats.lag_waits, 1);
	for (;;)
	{
		uint32		seen;

		gl_gate_check_open();
		seen = gl_wakeup_prepare(&gl_shared->durable);
		if (!lags())
		{
			gl_wakeup_cancel(&gl_shared->durable);
			return;
		}
		gl_shared_urge(gl_ring_insert_lsn(gl_ring()));
		gl_wakeup_sleep(&gl_shared->durable, GL_WAKE_ALL, seen, GL_SLEEP_SLICE_MS,
						gl_wait_event(GL_WAIT_APPEND_DURABLE));
		CHECK_FOR_INTERRUPTS();
		gl_gate_check_writer();
	}
}

/* --- one record --- */

/*
 * Does the writer have to be woken for this record?  It has announced until
 * when it sleeps; see writer.c.
 */
static void
wake_if_earlier(GlSyncMode mode, bool waits, int64 deadline_us, const GlClaim *claim)
{
	int64		sleep_until_us;
	uint64		joins = 0;
	bool		wake;

	if (waits)
		joins = atomic_fetch_add(&gl_shared->joins, 1) + 1;
	atomic_thread_fence(memory_order_seq_cst);
	sleep_until_us = atomic_load_explicit(&gl_shared->sleep_until_us, memory_order_relaxed);
	if (sleep_until_us == 0)
		return;

	wake = deadline_us < sleep_until_us;
	if (waits)
	{
		uint64		target = atomic_load_explicit(&gl_shared->join_target, memory_order_relaxed);

		/* An adaptive append brings no deadline: the writer sets it. */
		if (mode == GL_SYNC_ADAPTIVE)
			wake = target == GL_FIRST_ADAPTIVE;
		if (joins >= target)
			wake = true;
	}
	if (claim->lsn + claim->span - claim->durable_lsn >=
		Min((uint64) gl_group_bytes * 1024, gl_shared->ring_size / 4))
		wake = true;
	if (wake && atomic_exchange(&gl_shared->sleep_until_us, 0) != 0)
		gl_shared_wake_writer();
}

/* Claim, copy, publish; returns the LSN. */
static uint64
append_one(const GlPayload *payload, uint8 flags, uint64 stream, GlSyncMode mode, bool waits)
{
	GlRing	   *ring = gl_ring();
	GlRecordHeader header = {0};
	uint64		span = gl_record_span(payload->size);
	uint32		payload_crc = gl_record_payload_crc(payload->data, payload->size);
	uint64		used = GL_RECORD_HEADER_SIZE + payload->size;
	GlClaim		claim;
	GlSeed		seed;
	int64		deadline_us;

	header.length = (uint32) used;
	header.stream = stream;
	header.kind = GL_RECORD_DATA;
	header.flags = flags;

	claim_room(span, &claim);

	/* Nothing from here to the end of the block can fail. */
	seed = gl_shared_seed();
	header.time = claim.time;
	header.undurable = undurable_distance(&claim);
	gl_record_seal(&header, &seed, claim.lsn, payload_crc);
	gl_ring_write(ring, claim.lsn, &header, sizeof(header));
	gl_ring_write(ring, claim.lsn + sizeof(header), payload->data, payload->size);
	gl_ring_zero(ring, claim.lsn + used, span - used);
	deadline_us = gl_now_us();
	if (mode == GL_SYNC_GROUP)
		deadline_us += (int64) (gl_group_window * 1000);
	gl_ring_publish(ring, claim.lsn, gl_hint(mode, waits, deadline_us));
	if (mode == GL_SYNC_PERIODIC || !waits)
		deadline_us += (int64) gl_sync_period * 1000;
	RESUME_INTERRUPTS();

	/* Group mode has its window to wait for. */
	if (!waits || mode == GL_SYNC_GROUP || !gl_lone_flush(&claim))
		wake_if_earlier(mode, waits, deadline_us, &claim);
	return claim.lsn;
}

typedef struct BatchContext
{
	int64		appended;
	uint64		last_lsn;
} BatchContext;

static void
batch_error_context(void *arg)
{
	BatchContext *context = arg;

	if (context->appended > 0)
		errcontext("%lld records of the batch are in the log, the last one at LSN " GL_LSN,
				   (long long) context->appended, LSN_FORMAT_ARGS(context->last_lsn));
}

uint64
gl_append(const GlPayload *payloads, int64 count, uint8 flags, GlSyncMode mode, bool wait)
{
	GlRing	   *ring;
	GlStatMode *stat;
	uint64		stream;
	uint64		limit;
	int64		start_ns = 0;
	BatchContext context = {0};
	ErrorContextCallback callback;

	gl_gate_check_allowed("append to");
	stream = gl_stream_id();
	ring = gl_ring();
	limit = gl_ring_max_span(ring) - GL_RECORD_HEADER_SIZE;
	for (int64 i = 0; i < count; i++)
	{
		if (i % 10000 == 9999)
			CHECK_FOR_INTERRUPTS();
		if (payloads[i].size > limit)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("a record of %zu bytes is too large for the log", payloads[i].size),
					 errdetail("The largest record has %llu bytes, a quarter of \"grouplog.buffers\" less the record's header.",
							   (unsigned long long) limit),
					 errhint("Raise \"grouplog.buffers\" and restart the server.")));
	}
	gl_gate_check_open();

	callback.previous = error_context_stack;
	callback.callback = batch_error_context;
	callback.arg = &context;
	if (count > 1)
		error_context_stack = &callback;

	stat = &gl_stats_stripe(&gl_shared->stats)->mode[mode];
	for (int64 i = 0; i < count; i++)
	{
		bool		waits = wait && mode != GL_SYNC_PERIODIC && i == count - 1;

		if (waits)
			start_ns = gl_now_ns();
		if (mode == GL_SYNC_PERIODIC)
			wait_for_lag();
		/* What waits for nothing brings no deadline but the period's. */
		context.last_lsn = append_one(&payloads[i], flags, stream,
									  waits ? mode : GL_SYNC_PERIODIC, waits);
		context.appended++;
		gl_stat_add(&stat->appends, 1);
		gl_stat_add(&stat->append_bytes, payloads[i].size);
		if (count > 1)
			CHECK_FOR_INTERRUPTS();
	}
	if (wait && mode != GL_SYNC_PERIODIC)
	{
		int64		wait_ns;

		gl_wait_until(context.last_lsn, GL_NEVER);
		wait_ns = gl_now_ns() - start_ns;
		gl_stat_add(&stat->waits, 1);
		gl_stat_add(&stat->wait_time_ns, wait_ns);
		gl_histogram_record(&gl_shared->stats.append_wait, wait_ns);
	}
	error_context_stack = callback.previous;
	return context.last_lsn;
}

