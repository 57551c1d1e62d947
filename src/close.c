/*-------------------------------------------------------------------------
 *
 * close.c
 *		Close the log at shutdown.
 *
 *-------------------------------------------------------------------------
 */
#include "close.h"

#include "compat.h"
#include "config.h"
#include "failure.h"
#include "files.h"
#include "flush.h"
#include "io_wait.h"
#include "miscadmin.h"
#include "shared.h"
#include "storage/fd.h"
#include "utils/pidfile.h"
#include "utils/timestamp.h"

#define CLOSE_PATIENCE_US	INT64CONST(60000000)

bool
gl_server_is_stopping(void)
{
	char		line[MAXPGPATH];
	FILE	   *file = AllocateFile("postmaster.pid", "r");
	bool		stopping = false;

	/* Not to be had: better to be started again than to be gone for good. */
	if (file == NULL)
		return false;
	for (int i = 1; fgets(line, sizeof(line), file) != NULL; i++)
	{
		if (i == LOCK_FILE_LINE_PM_STATUS)
			stopping = strncmp(line, PM_STATUS_STOPPING, strlen(PM_STATUS_STOPPING)) == 0;
	}
	FreeFile(file);
	return stopping;
}

bool
gl_sessions_remain(void)
{
	bool		remain = false;

	pgstat_clear_backend_activity_snapshot();
	for (int i = pgstat_fetch_stat_numbackends(); i > 0 && !remain; i--)
	{
		LocalPgBackendStatus *status = pgstat_get_local_beentry_by_index(i);

		remain = status != NULL && status->backendStatus.st_backendType == B_BACKEND;
	}
	return remain;
}

/*
 * Make everything claimed so far durable.  Sessions that hold a claim publish
 * before they look at their own interrupts.
 */
static bool
drain(int64 deadline_us)
{
	GlRing	   *ring = gl_ring();
	GlError		error;

	for (;;)
	{
		int64		now_us = gl_now_us();

		CHECK_FOR_INTERRUPTS();
		gl_io_reap(gl_io_engine());
		switch (gl_flush_poll(now_us, &error))
		{
			case GL_FLUSH_IN_FLIGHT:
				gl_io_wait_sleep(now_us + GL_SLEEP_SLICE_MS * 1000, gl_wait_event(GL_WAIT_WRITER_IO));
				break;
			case GL_FLUSH_FAILED:
				gl_failure_write(&error);
				if (!gl_failure_retrying())
					return false;
				break;
			case GL_FLUSH_ACKNOWLEDGED:
				gl_failure_over();
				break;
			case GL_FLUSH_IDLE:
				gl_flush_scan(now_us);
				if (gl_flush_pending()->bytes > 0)
				{
					if (!gl_group_file(&error))
					{
						gl_failure_give_up(&error);
						return false;
					}
					gl_flush_begin(GL_FLUSH_REQUEST, now_us);
				}
				else if (gl_ring_durable_lsn(ring) == gl_ring_insert_lsn(ring))
					return true;
				else
					gl_io_wait_sleep(now_us + 1000, gl_wait_event(GL_WAIT_WRITER_MAIN));
				break;
		}
		if (now_us > deadline_us)
			return false;
	}
}

/*
 * Seal the log with a close record, in a group of its own.  Where the log ends
 * with its file, and there is no room for another one, it is sealed without.
 * False: not all is durable.
 */
static bool
seal(int64 deadline_us, bool *recorded)
{
	GlRing	   *ring = gl_ring();
	GlSeed		seed = gl_shared_seed();

	*recorded = true;

	for (;;)
	{
		GlRecordHeader header = {0};
		GlClaim		claim;
		uint64		position;
		GlError		error;

		if (!drain(deadline_us))
			return false;

		/* A run that never had a file has nothing to close. */
		if (atomic_load(&gl_shared->segment_number) == 0)
		{
			atomic_fetch_or(&ring->insert_lsn, GL_SEALED);
			return true;
		}

		if (!gl_group_file(&error))
		{
			gl_error_report(LOG, &error);
			*recorded = false;
			atomic_fetch_or(&ring->insert_lsn, GL_SEALED);
			return gl_ring_insert_lsn(ring) == gl_ring_durable_lsn(ring);
		}
		position = gl_ring_durable_lsn(ring);
		if (gl_ring_try_claim(ring, position, GL_RECORD_HEADER_SIZE, GetCurrentTimestamp(),
							  true, &claim) != GL_CLAIM_OK)
			continue;

		header.length = GL_RECORD_HEADER_SIZE;
		header.time = claim.time;
		header.kind = GL_RECORD_CLOSE;
		header.undurable = atomic_load(&gl_shared->fsync_on) ?
			gl_undurable_distance(claim.lsn, claim.durable_lsn) : GL_UNDURABLE_UNKNOWN;
		gl_record_seal(&header, &seed, claim.lsn, gl_record_payload_crc(NULL, 0));
		gl_ring_write(ring, claim.lsn, &header, sizeof(header));
		gl_ring_publish(ring, claim.lsn, gl_hint(GL_SYNC_BATCH, false, gl_now_us()));
		return drain(deadline_us);
	}
}

void
gl_log_close(void)
{
	bool		recorded;

	if (atomic_load(&gl_shared->state) != GL_STATE_OPEN)
	{
		gl_shared_wake_everybody();
		return;
	}
	if (!seal(gl_now_us() + CLOSE_PATIENCE_US, &recorded))
	{
		atomic_fetch_or(&gl_ring()->insert_lsn, GL_SEALED);
		ereport(LOG, (errmsg("grouplog could not make the last records durable before shutdown")));
	}
	atomic_store(&gl_shared->state, GL_STATE_CLOSED);
	gl_files_close();
	gl_shared_wake_everybody();
	ereport(LOG,
			(errmsg(recorded ? "grouplog closed at LSN " GL_LSN :
					"grouplog closed at LSN " GL_LSN ", without a close record",
					LSN_FORMAT_ARGS(gl_ring_durable_lsn(gl_ring())))));
}
