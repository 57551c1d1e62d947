/*-------------------------------------------------------------------------
 *
 * serve.c
 *		The writer does what sessions have asked for: truncate, accept_end.
 *
 * The sessions' side is request.c.
 *
 *-------------------------------------------------------------------------
 */
#include "serve.h"

#include "access/xlogdefs.h"
#include "compat.h"
#include "files.h"
#include "flush.h"
#include "miscadmin.h"
#include "open.h"
#include "request.h"
#include "shared.h"
#include "spares.h"

/* A truncate in progress: one file a turn of the loop. */
static bool truncating = false;
static uint64 truncate_before;
static uint64 truncate_freed;

static void
answer_request(uint64 result, const GlError *error)
{
	GlRequest  *request = &gl_shared->request;

	SpinLockAcquire(&request->mutex);
	request->result = result;
	request->error = *error;
	request->state = request->abandoned ? GL_REQUEST_FREE : GL_REQUEST_DONE;
	SpinLockRelease(&request->mutex);
	gl_wakeup_broadcast(&gl_shared->answered, GL_WAKE_ALL);
}

/* A predecessor took a request and died: whoever asked must not wait for it. */
void
gl_serve_orphan(void)
{
	GlRequest  *request = &gl_shared->request;
	bool		orphan;
	GlError		error;

	SpinLockAcquire(&request->mutex);
	orphan = request->state == GL_REQUEST_TAKEN;
	SpinLockRelease(&request->mutex);
	if (!orphan)
		return;
	gl_error_set(&error, ERRCODE_OPERATOR_INTERVENTION, 0, "Look at grouplog.status, and ask again.",
				 "the grouplog writer ended while it worked on the request");
	answer_request(0, &error);
}

static void
continue_truncate(void)
{
	GlError		error;
	uint64		freed;
	bool		removed;

	if (!truncating)
		return;
	gl_error_clear(&error);
	if (gl_files_truncate_one(truncate_before, &removed, &freed, &error))
	{
		truncate_freed += freed;
		if (removed)
		{
			SetLatch(MyLatch);	/* the next one, in the next turn */
			return;
		}
		ereport(LOG,
				(errmsg("grouplog removed %llu bytes before LSN " GL_LSN " by request",
						(unsigned long long) truncate_freed, LSN_FORMAT_ARGS(truncate_before))));
	}
	truncating = false;
	gl_spares_retry();
	answer_request(truncate_freed, &error);
}

void
gl_serve(void)
{
	GlRequest  *request = &gl_shared->request;
	GlRequestKind kind;
	uint64		lsn;
	GlError		error;
	GlState		state = (GlState) atomic_load(&gl_shared->state);

	continue_truncate();
	SpinLockAcquire(&request->mutex);
	if (request->state != GL_REQUEST_POSTED)
	{
		SpinLockRelease(&request->mutex);
		return;
	}
	request->state = GL_REQUEST_TAKEN;
	kind = request->kind;
	lsn = request->lsn;
	SpinLockRelease(&request->mutex);

	gl_error_clear(&error);
	switch (kind)
	{
		case GL_REQUEST_TRUNCATE:
			if (state != GL_STATE_OPEN && state != GL_STATE_CORRUPT)
				gl_error_set(&error, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, 0, NULL,
							 "the log is not open");
			else if (lsn > gl_ring_durable_lsn(gl_ring()))
				gl_error_set(&error, ERRCODE_INVALID_PARAMETER_VALUE, 0,
							 "The LSN must not be beyond the last durable record.",
							 "LSN " GL_LSN " is past the end of the log", LSN_FORMAT_ARGS(lsn));
			else
			{
				truncating = true;
				truncate_before = lsn;
				truncate_freed = 0;
				SetLatch(MyLatch);
				return;
			}
			break;
		case GL_REQUEST_ACCEPT_END:
			if (state != GL_STATE_CORRUPT)
				gl_error_set(&error, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, 0,
							 "Only a log that was found corrupt needs this.",
							 "the log is not corrupt");
			else
			{
				(void) gl_log_accept_end(lsn, &error);
				if (atomic_load(&gl_shared->state) == GL_STATE_OPEN)
					gl_flush_start();
			}
			break;
	}
	answer_request(0, &error);
}

bool
gl_serve_wanted(void)
{
	GlRequest  *request = &gl_shared->request;
	bool		posted;

	SpinLockAcquire(&request->mutex);
	posted = request->state == GL_REQUEST_POSTED;
	SpinLockRelease(&request->mutex);
	return posted;
}
