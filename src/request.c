/*-------------------------------------------------------------------------
 *
 * request.c
 *		Ask the writer for something that only it may do.
 *
 * There is one slot in shared memory; who finds it taken waits.  Whoever stops
 * waiting leaves the slot to the writer, which frees it when it is done.
 *
 *-------------------------------------------------------------------------
 */
#include "request.h"

#include "compat.h"
#include "gate.h"
#include "miscadmin.h"
#include "shared.h"
#include "storage/ipc.h"

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
	gl_wakeup_broadcast(&gl_shared->answered, GL_WAKE_ALL);
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
		gl_wakeup_sleep(&gl_shared->answered, GL_WAKE_ALL, seen, GL_SLEEP_SLICE_MS,
						gl_wait_event(GL_WAIT_REQUEST));
		CHECK_FOR_INTERRUPTS();
		gl_gate_check_writer();
	}
}

uint64
gl_request(int kind, uint64 lsn)
{
	GlRequest  *request = &gl_shared->request;
	uint64		result;
	GlError		error;

	gl_gate_check_allowed("change");
	gl_gate_wait_started();
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
	gl_wakeup_broadcast(&gl_shared->answered, GL_WAKE_ALL);
	if (error.sqlstate != 0)
		gl_error_report(ERROR, &error);
	return result;
}
