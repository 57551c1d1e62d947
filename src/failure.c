/*-------------------------------------------------------------------------
 *
 * failure.c
 *		What the writer does when the device fails.
 *
 * See failure.h.
 *
 *-------------------------------------------------------------------------
 */
#include "failure.h"

#include "access/xlogdefs.h"
#include "compat.h"
#include "files.h"
#include "shared.h"

#define BACKOFF_MIN_US		INT64CONST(1000000)
#define BACKOFF_MAX_US		INT64CONST(30000000)

static bool retrying = false;	/* the next group is the first try */
static int64 retry_at_us = 0;	/* refused: not before */
static int64 backoff_us = BACKOFF_MIN_US;

void
gl_failure_note(const GlError *error)
{
	gl_shared_set_error(&gl_shared->last_error, error);
}

void
gl_failure_give_up(const GlError *error)
{
	GlError		told = *error;

	gl_failure_note(error);
	if (atomic_load(&gl_shared->refusal) != GL_REFUSE_DEVICE)
	{
		strlcpy(told.hint, "Appends are refused until a write succeeds; grouplog tries again by itself.",
				sizeof(told.hint));
		gl_error_report(LOG, &told);
		gl_shared_set_error(&gl_shared->problem, &told);
		atomic_store(&gl_shared->refusal, GL_REFUSE_DEVICE);
	}
	retrying = false;
	atomic_store(&gl_shared->failed_lsn, gl_ring_insert_lsn(gl_ring()));
	retry_at_us = gl_now_us() + backoff_us;
	backoff_us = Min(backoff_us * 2, BACKOFF_MAX_US);
	gl_shared_wake_everybody();
}

void
gl_failure_no_file(const GlError *error)
{
	uint32		refusal = atomic_load(&gl_shared->refusal);

	if (refusal == GL_REFUSE_NO_SPACE || refusal == GL_REFUSE_MAX_SIZE)
		gl_failure_note(error);
	else if (error->sqlstate == ERRCODE_DISK_FULL)
	{
		gl_failure_note(error);
		gl_error_report(LOG, error);
		gl_shared_set_error(&gl_shared->problem, error);
		atomic_store(&gl_shared->refusal, GL_REFUSE_NO_SPACE);
		gl_shared_wake_everybody();
	}
	else
		gl_failure_give_up(error);
}

void
gl_failure_over(void)
{
	retrying = false;
	backoff_us = BACKOFF_MIN_US;
	retry_at_us = 0;
	if (atomic_load(&gl_shared->refusal) == GL_REFUSE_DEVICE)
	{
		atomic_store(&gl_shared->refusal, GL_REFUSE_NOTHING);
		/* Whoever still waits has an outcome to wait for again. */
		atomic_store(&gl_shared->failed_lsn, 0);
		ereport(LOG, (errmsg("grouplog can write again")));
		gl_wakeup_broadcast(&gl_shared->room, GL_WAKE_ALL);
	}
}

bool
gl_group_file(GlError *error)
{
	uint64		durable = gl_ring_durable_lsn(gl_ring());
	bool		first = atomic_load(&gl_shared->segment_number) == 0;
	bool		continuation;

	if (gl_current.fd >= 0 && durable < gl_current.full_end)
		return true;

	/* A file that failed its first write is left as empty as it was begun. */
	continuation = !first && !gl_files_newest_full_at(durable);
	atomic_store(&gl_shared->need_segment, 0);
	if (!gl_files_activate(durable, first ? atomic_load(&gl_shared->end_before) : durable, error))
		return false;
	if (continuation)
		gl_stat_add(&gl_shared->stats.continuations, 1);
	return true;
}

void
gl_failure_write(const GlError *error)
{
	/* The bytes are still in the ring; the file is not to be trusted again. */
	gl_files_abandon();
	gl_failure_note(error);
	if (retrying || atomic_load(&gl_shared->refusal) == GL_REFUSE_DEVICE)
	{
		gl_failure_give_up(error);
		return;
	}
	gl_error_report(LOG, error);
	ereport(LOG,
			(errmsg("grouplog leaves the file and writes the unacknowledged records, from LSN " GL_LSN " on, to another",
					LSN_FORMAT_ARGS(gl_ring_durable_lsn(gl_ring())))));
	retrying = true;
}

bool
gl_failure_retrying(void)
{
	return retrying;
}

bool
gl_failure_refusing(int64 *when_us)
{
	*when_us = retry_at_us;
	return atomic_load(&gl_shared->refusal) == GL_REFUSE_DEVICE;
}
