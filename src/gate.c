/*-------------------------------------------------------------------------
 *
 * gate.c
 *		May this session use the log now?
 *
 * See gate.h.
 *
 *-------------------------------------------------------------------------
 */
#include "gate.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "compat.h"
#include "miscadmin.h"
#include "shared.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"

/* No writer for so long: none will come by itself. */
#define WRITER_PATIENCE_US	INT64CONST(10000000)

void
gl_gate_check_loaded(void)
{
	if (gl_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("grouplog is not loaded"),
				 errhint("Add grouplog to \"shared_preload_libraries\" and restart the server.")));
}

void
gl_gate_check_allowed(const char *what)
{
	gl_gate_check_loaded();
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot %s the log during recovery", what),
				 errhint("Use the primary server, or promote this one.")));
	if (XactReadOnly)
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot %s the log in a read-only transaction", what)));
	if (IsInParallelMode())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot %s the log during a parallel operation", what)));
}

/* A writer that is gone for good must not leave us asleep for ever. */
void
gl_gate_check_writer(void)
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

	/* 58030 is for records whose outcome is unknown; this is a refusal. */
	if (problem.sqlstate == ERRCODE_IO_ERROR)
		problem.sqlstate = ERRCODE_SYSTEM_ERROR;
	gl_error_report(ERROR, &problem);
}

void
gl_gate_raise_closed(void)
{
	gl_stat_add(&gl_shared->stats.refused, 1);
	ereport(ERROR,
			(errcode(ERRCODE_CANNOT_CONNECT_NOW),
			 errmsg("the log is closed, the server is shutting down")));
}

void
gl_gate_wait_started(void)
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
		gl_wakeup_sleep(&gl_shared->durable, GL_WAKE_ALL, seen, GL_SLEEP_SLICE_MS,
						gl_wait_event(GL_WAIT_REQUEST));
		CHECK_FOR_INTERRUPTS();
		gl_gate_check_writer();
	}
}

void
gl_gate_check_state(void)
{
	gl_gate_wait_started();
	switch ((GlState) atomic_load_explicit(&gl_shared->state, memory_order_acquire))
	{
		case GL_STATE_CORRUPT:
			raise_problem(ERRCODE_DATA_CORRUPTED, "the log is corrupt");
			break;
		case GL_STATE_UNAVAILABLE:
			raise_problem(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the log is not available");
			break;
		case GL_STATE_CLOSED:
			gl_gate_raise_closed();
			break;
		case GL_STATE_OPEN:
		case GL_STATE_STARTING:
			break;
	}
}

void
gl_gate_check_open(void)
{
	if (atomic_load_explicit(&gl_shared->state, memory_order_acquire) != GL_STATE_OPEN)
		gl_gate_check_state();
	switch ((GlRefusal) atomic_load_explicit(&gl_shared->refusal, memory_order_relaxed))
	{
		case GL_REFUSE_FREE_SPACE:
			raise_problem(ERRCODE_DISK_FULL, "the log has no space");
			break;
		case GL_REFUSE_DEVICE:
			raise_problem(ERRCODE_SYSTEM_ERROR, "the log cannot be written");
			break;
		default:
			break;
	}
}

void
gl_gate_check_readable(const char *what)
{
	GlError		problem;

	gl_gate_check_loaded();
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot %s the log during recovery", what),
				 errhint("Use the primary server, or promote this one.")));
	gl_gate_wait_started();
	if (atomic_load(&gl_shared->state) == GL_STATE_UNAVAILABLE)
	{
		gl_shared_get_error(&gl_shared->problem, &problem);
		gl_error_report(ERROR, &problem);
	}
}

/* No file, and none to be had: an error before anything is claimed. */
void
gl_gate_check_files(void)
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
			gl_gate_check_open();
			break;
	}
}
