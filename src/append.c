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
 * Waits sleep in slices of at most 100 ms and look at interrupts, the
 * postmaster and the writer in between.
 *
 *-------------------------------------------------------------------------
 */
#include "append.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "compat.h"
#include "config.h"
#include "miscadmin.h"
#include "reader.h"
#include "shared.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"
#include "stream.h"
#include "utils/timestamp.h"

/* No writer for so long: none will come by itself. */
#define WRITER_PATIENCE_US	INT64CONST(10000000)

/* What an error during a wait must say. */
typedef struct WaitContext
{
	uint64		lsn;
} WaitContext;

static void
wait_error_context(void *arg)
{
	WaitContext *context = arg;

	errcontext("waiting for the record at LSN %X/%X, which is in the log and may still become durable",
			   LSN_FORMAT_ARGS(context->lsn));
}

void
gl_append_check_allowed(void)
{
	if (gl_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("grouplog is not loaded"),
				 errhint("Add grouplog to \"shared_preload_libraries\" and restart the server.")));
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot append to the log during recovery"),
				 errhint("Append on the primary server, or promote this one.")));
	if (XactReadOnly)
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot append to the log in a read-only transaction")));
	if (IsInParallelMode())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot append to the log during a parallel operation")));
}

/* A writer that is gone for good must not leave us asleep for ever. */
static void
check_writer(void)
{
	int64		gone_us = atomic_load(&gl_shared->writer_gone_us);

	if (gone_us != 0 && gl_now_us() - gone_us > WRITER_PATIENCE_US)
		ereport(ERROR,
				(errcode(ERRCODE_CANNOT_CONNECT_NOW),
				 errmsg("the grouplog writer is not running"),
				 errhint("See the server log; \"max_worker_processes\" may be too low.")));
	if (!PostmasterIsAlive())
		proc_exit(1);
}

/* Raise the error that the writer has left for us. */
static void
raise_problem(int fallback_sqlstate, const char *fallback)
{
	GlError		problem;

	gl_shared_get_error(&gl_shared->problem, &problem);
	gl_stat_add(&gl_shared->stats.refused, 1);
	if (problem.sqlstate == 0)
		ereport(ERROR, (errcode(fallback_sqlstate), errmsg("%s", fallback)));
	gl_error_report(ERROR, &problem);
}

static void pg_attribute_noreturn()
raise_closed(void)
{
	gl_stat_add(&gl_shared->stats.refused, 1);
	ereport(ERROR,
			(errcode(ERRCODE_CANNOT_CONNECT_NOW),
			 errmsg("the log is closed, the server is shutting down")));
}

/* The slow part of check_open. */
static void
wait_until_open(void)
{
	for (;;)
	{
		uint32		seen = gl_wakeup_prepare(&gl_shared->durable);
		GlState		state = (GlState) atomic_load(&gl_shared->state);

		if (state != GL_STATE_STARTING)
		{
			gl_wakeup_cancel(&gl_shared->durable);
			break;
		}
		gl_wakeup_sleep(&gl_shared->durable, seen, GL_SLEEP_SLICE_MS,
						gl_wait_event(GL_WAIT_REQUEST));
		CHECK_FOR_INTERRUPTS();
		check_writer();
	}
}

/* Is the log open for appends?  A log that is just starting is waited for. */
static void
check_open(void)
{
	for (;;)
	{
		switch ((GlState) atomic_load_explicit(&gl_shared->state, memory_order_acquire))
		{
			case GL_STATE_OPEN:
				switch ((GlRefusal) atomic_load_explicit(&gl_shared->refusal, memory_order_relaxed))
				{
					case GL_REFUSE_FREE_SPACE:
						raise_problem(ERRCODE_DISK_FULL, "the log has no space");
						break;
					case GL_REFUSE_DEVICE:
						raise_problem(ERRCODE_IO_ERROR, "the log cannot be written");
						break;
					default:
						break;
				}
				return;
			case GL_STATE_STARTING:
				wait_until_open();
				break;
			case GL_STATE_CORRUPT:
				raise_problem(ERRCODE_DATA_CORRUPTED, "the log is corrupt");
				break;
			case GL_STATE_UNAVAILABLE:
				raise_problem(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the log is not available");
				break;
			case GL_STATE_CLOSED:
				raise_closed();
				break;
		}
	}
}

/* --- room --- */

static void
leave_queue(int code, Datum ticket)
{
	gl_ring_queue_leave(gl_ring(), DatumGetUInt64(ticket));
	/* Whoever is first now may not have been woken for the room there is. */
	gl_wakeup_broadcast(&gl_shared->room);
}

/* Tell the writer what we wait for, and sleep a slice. */
static void
sleep_for_room(uint32 seen, GlClaimStatus why)
{
	if (why == GL_CLAIM_NO_SEGMENT)
		atomic_store(&gl_shared->need_segment, 1);
	gl_shared_urge(gl_ring_insert_lsn(gl_ring()));
	gl_wakeup_sleep(&gl_shared->room, seen, GL_SLEEP_SLICE_MS,
					gl_wait_event(GL_WAIT_APPEND_ROOM));
}

/* No file, and none to be had: an error before anything is claimed. */
static void
check_segment_refusal(void)
{
	switch ((GlRefusal) atomic_load(&gl_shared->refusal))
	{
		case GL_REFUSE_NO_SPACE:
			raise_problem(ERRCODE_DISK_FULL, "the log has no space");
			break;
		case GL_REFUSE_MAX_SIZE:
			raise_problem(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, "the log has reached its limit");
			break;
		default:
			check_open();
			break;
	}
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

/*
 * Fill the rest of a segment.  Called with interrupts held, as we hold a claim.
 */
static void
fill_padding(const GlClaim *claim)
{
	GlSeed		seed = gl_shared_seed();

	gl_ring_publish_padding(gl_ring(), claim, &seed, 0,
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

		check_open();
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
			raise_closed();
		}
		if (status == GL_CLAIM_NO_SEGMENT)
		{
			gl_wakeup_cancel(&gl_shared->room);
			check_segment_refusal();
			seen = gl_wakeup_prepare(&gl_shared->room);
		}
		sleep_for_room(seen, status);
		CHECK_FOR_INTERRUPTS();
		check_writer();
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
		check_writer();
	}
	PG_ENSURE_ERROR_CLEANUP(leave_queue, UInt64GetDatum(ticket));
	{
		claim_in_turn(ticket, span, claim);
	}
	PG_END_ENSURE_ERROR_CLEANUP(leave_queue, UInt64GetDatum(ticket));
	leave_queue(0, UInt64GetDatum(ticket));
}

/* Periodic mode: the oldest record without a sync must not grow too old. */
static void
wait_for_lag(void)
{
	GlRing	   *ring = gl_ring();
	int64		limit_us = gl_config_lag_limit_us();
	bool		counted = false;

	for (;;)
	{
		int64		now_us = gl_now_us();
		int64		oldest_us = gl_ring_oldest_us(ring, now_us);
		uint32		seen;

		if (oldest_us == GL_NEVER || now_us - oldest_us <= limit_us)
			return;
		if (!counted)
			gl_stat_add(&gl_shared->stats.lag_waits, 1);
		counted = true;

		check_open();
		seen = gl_wakeup_prepare(&gl_shared->durable);
		now_us = gl_now_us();
		oldest_us = gl_ring_oldest_us(ring, now_us);
		if (oldest_us == GL_NEVER || now_us - oldest_us <= limit_us)
		{
			gl_wakeup_cancel(&gl_shared->durable);
			return;
		}
		gl_shared_urge(gl_ring_insert_lsn(ring));
		gl_wakeup_sleep(&gl_shared->durable, seen, GL_SLEEP_SLICE_MS,
						gl_wait_event(GL_WAIT_APPEND_DURABLE));
		CHECK_FOR_INTERRUPTS();
		check_writer();
	}
}

/* --- the wait for durability --- */

static void pg_attribute_noreturn()
raise_unknown(uint64 lsn)
{
	GlError		problem;

	gl_stat_add(&gl_shared->stats.outcome_unknown, 1);
	gl_shared_get_error(&gl_shared->last_error, &problem);
	ereport(ERROR,
			(errcode(problem.sqlstate != 0 && problem.sqlstate != ERRCODE_INTERNAL_ERROR ?
					 problem.sqlstate : ERRCODE_IO_ERROR),
			 errmsg("the outcome of the record at LSN %X/%X is unknown", LSN_FORMAT_ARGS(lsn)),
			 problem.message[0] ? errdetail_internal("%s", problem.message) : 0,
			 errhint("The record is in the log's memory and may still become durable; ask with grouplog.wait_durable.")));
}

/* Until the record at lsn is durable, or deadline_us; false then. */
static bool
wait_for(uint64 lsn, int64 deadline_us)
{
	GlRing	   *ring = gl_ring();
	WaitContext context = {.lsn = lsn};
	ErrorContextCallback callback = {
		.previous = error_context_stack,
		.callback = wait_error_context,
		.arg = &context
	};
	bool		durable = true;

	error_context_stack = &callback;
	for (;;)
	{
		uint32		seen = gl_wakeup_prepare(&gl_shared->durable);
		long		slice = GL_SLEEP_SLICE_MS;

		if (gl_ring_durable_lsn(ring) > lsn)
		{
			gl_wakeup_cancel(&gl_shared->durable);
			break;
		}
		if (lsn < atomic_load(&gl_shared->failed_lsn) ||
			atomic_load(&gl_shared->state) == GL_STATE_CLOSED)
		{
			gl_wakeup_cancel(&gl_shared->durable);
			/* The order matters: durable first, failed after it. */
			if (gl_ring_durable_lsn(ring) > lsn)
				break;
			error_context_stack = callback.previous;
			raise_unknown(lsn);
		}
		if (deadline_us != GL_NEVER)
		{
			int64		rest = deadline_us - gl_now_us();

			if (rest <= 0)
			{
				gl_wakeup_cancel(&gl_shared->durable);
				durable = false;
				break;
			}
			slice = Min(slice, (long) (rest / 1000) + 1);
		}
		gl_wakeup_sleep(&gl_shared->durable, seen, slice, gl_wait_event(GL_WAIT_APPEND_DURABLE));
		CHECK_FOR_INTERRUPTS();
		check_writer();
	}
	error_context_stack = callback.previous;
	return durable;
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

	if (waits && mode == GL_SYNC_ADAPTIVE)
		wake = joins >= atomic_load_explicit(&gl_shared->join_target, memory_order_relaxed);
	else
		wake = deadline_us < sleep_until_us;
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
	header.undurable = atomic_load(&gl_shared->fsync_on) ?
		gl_undurable_distance(claim.lsn, claim.durable_lsn) : GL_UNDURABLE_UNKNOWN;
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
		errcontext("%lld records of the batch are in the log, the last one at LSN %X/%X",
				   (long long) context->appended, LSN_FORMAT_ARGS(context->last_lsn));
}

uint64
gl_append(const GlPayload *payloads, int64 count, uint8 flags, GlSyncMode mode, bool wait)
{
	GlRing	   *ring;
	GlStatMode *stat;
	uint64		stream;
	uint64		limit;
	BatchContext context = {0};
	ErrorContextCallback callback;
	uint64		bytes = 0;

	gl_append_check_allowed();
	stream = gl_stream_id();
	ring = gl_ring();
	limit = gl_ring_max_span(ring) - GL_RECORD_HEADER_SIZE;
	for (int64 i = 0; i < count; i++)
	{
		if (payloads[i].size > limit)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("a record of %zu bytes is too large for the log", payloads[i].size),
					 errdetail("The largest record has %llu bytes, a quarter of \"grouplog.buffers\" less the record's header.",
							   (unsigned long long) limit),
					 errhint("Raise \"grouplog.buffers\" and restart the server.")));
	}
	check_open();

	callback.previous = error_context_stack;
	callback.callback = batch_error_context;
	callback.arg = &context;
	if (count > 1)
		error_context_stack = &callback;

	stat = &gl_stats_stripe(&gl_shared->stats)->mode[mode];
	for (int64 i = 0; i < count; i++)
	{
		bool		waits = wait && mode != GL_SYNC_PERIODIC && i == count - 1;

		if (mode == GL_SYNC_PERIODIC)
			wait_for_lag();
		/* What waits for nothing brings no deadline but the period's. */
		context.last_lsn = append_one(&payloads[i], flags, stream,
									  waits ? mode : GL_SYNC_PERIODIC, waits);
		context.appended++;
		bytes += payloads[i].size;
		if (count > 1)
			CHECK_FOR_INTERRUPTS();
	}
	gl_stat_add(&stat->appends, count);
	gl_stat_add(&stat->append_bytes, bytes);

	if (wait && mode != GL_SYNC_PERIODIC)
	{
		int64		start_ns = gl_now_ns();
		int64		wait_ns;

		wait_for(context.last_lsn, GL_NEVER);
		wait_ns = gl_now_ns() - start_ns;
		gl_stat_add(&stat->waits, 1);
		gl_stat_add(&stat->wait_time_ns, wait_ns);
		gl_histogram_record(&gl_shared->stats.append_wait, wait_ns);
	}
	error_context_stack = callback.previous;
	return context.last_lsn;
}

bool
gl_wait_durable(uint64 lsn, int64 timeout_us)
{
	GlRing	   *ring = gl_ring();
	GlState		state;
	uint64		run_start;

	gl_reader_check_open();
	state = (GlState) atomic_load(&gl_shared->state);
	run_start = atomic_load(&gl_shared->run_start);

	if (lsn == 0 || lsn >= gl_ring_insert_lsn(ring))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("LSN %X/%X was never handed out", LSN_FORMAT_ARGS(lsn)),
				 errhint("Use the LSN that an append has returned.")));
	if (lsn < run_start || state == GL_STATE_CORRUPT)
	{
		if (gl_reader_lsn_lost(lsn))
			ereport(ERROR,
					(errcode(ERRCODE_DATA_EXCEPTION),
					 errmsg("the record at LSN %X/%X was lost in a crash", LSN_FORMAT_ARGS(lsn)),
					 errdetail("It was in memory, not on stable storage, when the server went down.")));
		return true;
	}

	if (gl_ring_durable_lsn(ring) > lsn)
		return true;
	gl_shared_urge(lsn + 1);
	return wait_for(lsn, timeout_us < 0 ? GL_NEVER : gl_now_us() + timeout_us);
}

uint64
gl_flush(void)
{
	GlRing	   *ring = gl_ring();
	uint64		end;

	gl_append_check_allowed();
	check_open();
	end = gl_ring_insert_lsn(ring);
	if (gl_ring_durable_lsn(ring) < end)
	{
		gl_shared_urge(end);
		wait_for(end - 1, GL_NEVER);
	}
	return end;
}

/* --- requests to the writer --- */

static void
abandon_request(int code, Datum arg)
{
	GlRequest  *request = &gl_shared->request;

	SpinLockAcquire(&request->mutex);
	if (request->state == GL_REQUEST_TAKEN)
		request->abandoned = true;
	else
		request->state = GL_REQUEST_FREE;
	SpinLockRelease(&request->mutex);
	gl_wakeup_broadcast(&gl_shared->answered);
}

/* Wait until the slot is in this state; take it over if it is free. */
static void
wait_for_request(GlRequestState wanted, int kind, uint64 lsn)
{
	GlRequest  *request = &gl_shared->request;

	for (;;)
	{
		uint32		seen = gl_wakeup_prepare(&gl_shared->answered);
		bool		reached;

		SpinLockAcquire(&request->mutex);
		reached = request->state == wanted;
		if (reached && wanted == GL_REQUEST_FREE)
		{
			request->state = GL_REQUEST_POSTED;
			request->abandoned = false;
			request->kind = (GlRequestKind) kind;
			request->lsn = lsn;
		}
		SpinLockRelease(&request->mutex);
		if (reached)
		{
			gl_wakeup_cancel(&gl_shared->answered);
			return;
		}
		gl_wakeup_sleep(&gl_shared->answered, seen, GL_SLEEP_SLICE_MS,
						gl_wait_event(GL_WAIT_REQUEST));
		CHECK_FOR_INTERRUPTS();
		check_writer();
	}
}

uint64
gl_request(int kind, uint64 lsn)
{
	GlRequest  *request = &gl_shared->request;
	uint64		result;
	GlError		error;

	gl_append_check_allowed();
	wait_until_open();
	wait_for_request(GL_REQUEST_FREE, kind, lsn);
	PG_ENSURE_ERROR_CLEANUP(abandon_request, (Datum) 0);
	{
		gl_shared_wake_writer();
		wait_for_request(GL_REQUEST_DONE, kind, lsn);
	}
	PG_END_ENSURE_ERROR_CLEANUP(abandon_request, (Datum) 0);

	SpinLockAcquire(&request->mutex);
	result = request->result;
	error = request->error;
	request->state = GL_REQUEST_FREE;
	SpinLockRelease(&request->mutex);
	gl_wakeup_broadcast(&gl_shared->answered);
	if (error.sqlstate != 0)
		gl_error_report(ERROR, &error);
	return result;
}
