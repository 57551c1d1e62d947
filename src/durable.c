/*-------------------------------------------------------------------------
 *
 * durable.c
 *		Wait until records are durable.
 *
 * Waits sleep in slices of at most 100 ms and look at interrupts, the
 * postmaster and the writer in between.
 *
 *-------------------------------------------------------------------------
 */
#include "durable.h"

#include "compat.h"
#include "gate.h"
#include "miscadmin.h"
#include "reader.h"
#include "shared.h"

/* What an error during a wait must say. */
typedef struct WaitContext
{
	uint64		lsn;
	bool		durable;
} WaitContext;

static void
wait_error_context(void *arg)
{
	WaitContext *context = arg;

	if (context->durable)
		errcontext("the record at LSN " GL_LSN " is in the log, and durable", LSN_FORMAT_ARGS(context->lsn));
	else
		errcontext("waiting for the record at LSN " GL_LSN ", which is in the log and may still become durable",
			   LSN_FORMAT_ARGS(context->lsn));
}

/*
 * One SQLSTATE for this alone, so that an application can tell it from a refusal,
 * after which a retry makes no duplicate.
 */
pg_noreturn static void
raise_unknown(uint64 lsn, bool device_failed)
{
	GlError		cause;

	gl_error_clear(&cause);
	if (device_failed)
		gl_shared_get_error(&gl_shared->last_error, &cause);
	gl_stat_add(&gl_shared->stats.outcome_unknown, 1);
	ereport(ERROR,
			(errcode(ERRCODE_IO_ERROR),
			 errmsg("the outcome of the record at LSN " GL_LSN " is unknown", LSN_FORMAT_ARGS(lsn)),
			 cause.message[0] ? errdetail_internal("%s", cause.message) :
			 errdetail("The server is shutting down."),
			 errhint("The record may still become durable, or be found after the next start; ask with grouplog.wait_durable.")));
}

bool
gl_wait_until(uint64 lsn, int64 deadline_us)
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
		bool		device_failed;

		if (gl_ring_durable_lsn(ring) > lsn)
		{
			gl_wakeup_cancel(&gl_shared->durable);
			break;
		}
		device_failed = lsn < atomic_load(&gl_shared->failed_lsn);
		if (device_failed || atomic_load(&gl_shared->state) == GL_STATE_CLOSED)
		{
			gl_wakeup_cancel(&gl_shared->durable);
			/* The order matters: durable first, failed after it. */
			if (gl_ring_durable_lsn(ring) > lsn)
				break;
			error_context_stack = callback.previous;
			raise_unknown(lsn, device_failed);
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
		gl_wakeup_sleep(&gl_shared->durable, gl_durable_topics(lsn, lsn + 1), seen, slice,
						gl_wait_event(GL_WAIT_APPEND_DURABLE));
		CHECK_FOR_INTERRUPTS();
		gl_gate_check_writer();

		/*
		 * A whole slice without an answer: whoever took it upon himself to wake
		 * the writer may have been stopped before he did.
		 */
		if (atomic_load(&gl_shared->durable.generation) == seen)
			gl_shared_wake_writer();
	}

	/* A cancel that has come meanwhile is to say what became of the record. */
	context.durable = durable;
	CHECK_FOR_INTERRUPTS();
	error_context_stack = callback.previous;
	return durable;
}

bool
gl_wait_durable(uint64 lsn, int64 timeout_us)
{
	GlRing	   *ring = gl_ring();
	GlState		state;
	uint64		run_start;

	gl_gate_check_readable("wait for");
	state = (GlState) atomic_load(&gl_shared->state);
	run_start = atomic_load(&gl_shared->run_start);

	if (lsn == 0 || lsn >= gl_ring_insert_lsn(ring) ||
		(lsn < run_start && gl_reader_lsn_before_log(lsn)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("LSN " GL_LSN " was never handed out", LSN_FORMAT_ARGS(lsn)),
				 errhint("Use the LSN that an append has returned.")));
	if (lsn < run_start || state == GL_STATE_CORRUPT)
	{
		if (gl_reader_lsn_lost(lsn))
			ereport(ERROR,
					(errcode(ERRCODE_DATA_EXCEPTION),
					 errmsg("the record at LSN " GL_LSN " was lost", LSN_FORMAT_ARGS(lsn)),
					 errdetail("It was not on stable storage when the server went down, or has been given up with grouplog.accept_end.")));
		return true;
	}

	if (gl_ring_durable_lsn(ring) > lsn)
		return true;
	gl_shared_urge(lsn + 1);
	return gl_wait_until(lsn, timeout_us < 0 ? GL_NEVER : gl_now_us() + timeout_us);
}

uint64
gl_flush(void)
{
	GlRing	   *ring = gl_ring();
	uint64		end;

	gl_gate_check_readable("wait for");
	gl_gate_check_state();
	end = gl_ring_insert_lsn(ring);
	if (gl_ring_durable_lsn(ring) < end)
	{
		gl_shared_urge(end);
		gl_wait_until(end - 1, GL_NEVER);
	}
	return atomic_load(&gl_shared->last_lsn);
}
