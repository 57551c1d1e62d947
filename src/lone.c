/*-------------------------------------------------------------------------
 *
 * lone.c
 *		A lone appender flushes its record by itself.
 *
 * To hand a record to the writer and to be woken by it costs two context
 * switches.  Where sessions share a sync that is little; for one session alone
 * on a fast disk it is a third of the append.  So a writer that has seen only
 * groups of one waiter for a while offers the flush token before it sleeps:
 *
 *	writer		nothing claimed that is not durable, no trouble, a file with room
 *				-> lone_offered = 1, token free, sleep
 *	appender	publishes its record; it is the only one that is not durable
 *				-> takes the token, writes and syncs, moves the durable LSN
 *	anything else (a second appender, group mode, the end of the file, an error)
 *				-> wakes the writer, which takes the token back: it waits until
 *				an appender that holds it is done
 *
 * The token's holder is the only one that writes to the file, and changes it, so
 * whether the file that we have open is still the one is looked at under it.  A
 * failed write is the writer's to deal with: the appender leaves errno in
 * lone_error, and the file is not written again.  What an appender has flushed it
 * leaves in lone_flushes and the two times beside it, for the writer's sync policy.
 *
 * Where a sync is slow two context switches are nothing, and a wait that can be
 * cancelled is worth more: there the token is not offered, and who finds it slow
 * takes the offer back.
 *
 * A session keeps the file open until it needs the next one.  A file that is
 * removed meanwhile is cut to nothing, so that its space is not held.
 *
 *-------------------------------------------------------------------------
 */
#include "lone.h"

#include <fcntl.h>
#include <unistd.h>

#include "compat.h"
#include "config.h"
#include "group.h"
#include "io_engine.h"
#include "miscadmin.h"
#include "segment.h"
#include "shared.h"
#include "storage/fd.h"
#include "utils/wait_event.h"

/* More than this is the writer's: it works on while we wait. */
#define LONE_BYTES		((uint64) 64 * 1024)

#define WRITER_LOOKS_US	INT64CONST(1000000)

/* The file being written, opened by this process; fd < 0: none. */
static int	file_fd = -1;
static uint32 file_number;
static int	file_flags;

static bool
open_file(uint32 number, uint64 first_lsn, int flags)
{
	char		path[MAXPGPATH];

	if (file_fd >= 0 && file_number == number && file_flags == flags)
		return true;
	if (file_fd >= 0)
		close(file_fd);
	else if (!AcquireExternalFD())
		return false;

	gl_segment_path(path, number, first_lsn);
	file_fd = gl_open_file(path, O_RDWR | flags);
	file_number = number;
	file_flags = flags;
	if (file_fd < 0)
		ReleaseExternalFD();
	return file_fd >= 0;
}

/* Is everything up to end published?  Then the group is filled in. */
static bool
scan(GlGroup *group, uint64 end)
{
	GlRing	   *ring = gl_ring();

	*group = (GlGroup)
	{
		.start = gl_ring_durable_lsn(ring),.cut = end
	};
	for (uint64 lsn = group->start; lsn < end;)
	{
		uint32		hint;
		const GlRecordHeader *header = gl_ring_published(ring, lsn, &hint);

		if (header == NULL)
			return false;
		if (header->kind == GL_RECORD_DATA)
			group->data_records++;
		if (gl_hint_waits(hint))
			group->waiters++;
		group->last_lsn = lsn;
		lsn += gl_record_span(header->length - GL_RECORD_HEADER_SIZE);
	}
	return true;
}

/* With the token: all up to end, into the file that open_file has open. */
static bool
flush(uint64 end, uint64 first_lsn, char *block, uint32 wait_event)
{
	int64		cut_us;
	int64		now_us;
	GlGroup		group;
	GlIoOp		op;

	if (!atomic_load(&gl_shared->lone_offered) || !atomic_load(&gl_shared->fsync_on) ||
		atomic_load(&gl_shared->lone_error) != 0)
		return false;

	/*
	 * Another one may have appended and flushed, ours too, while we were on our
	 * way to the token.  It has counted us among those who wait.
	 */
	if (gl_ring_durable_lsn(gl_ring()) >= end)
	{
		atomic_fetch_add(&gl_shared->joins, 1);
		return true;
	}

	/* The last bytes of a file are the writer's, which then makes the next. */
	if (end >= gl_segment_full_end(first_lsn, gl_shared->segment_size))
		return false;
	if (!scan(&group, end))
		return false;

	cut_us = gl_now_us();
	atomic_store(&gl_shared->lone_began_us, cut_us);
	group.start_ns = gl_now_ns();
	gl_group_write(&op, &group, first_lsn, block);
	op.fd = file_fd;
	op.direct = (file_flags & O_DIRECT) != 0;
	op.sync_after = false;
	pgstat_report_wait_start(wait_event);
	gl_io_run(&op, gl_io_begin(&op));
	if (op.error == 0 && !(file_flags & O_DSYNC))
	{
		group.sync_ns = gl_now_ns();
		op.kind = GL_IO_FDATASYNC;
		gl_io_run(&op, gl_io_begin(&op));
	}
	pgstat_report_wait_end();
	atomic_store(&gl_shared->lone_began_us, 0);
	if (op.error != 0)
	{
		/* Nobody writes to this file again. */
		atomic_store(&gl_shared->lone_offered, 0);
		atomic_store(&gl_shared->lone_syncing, op.syncing);
		atomic_store(&gl_shared->lone_error, op.error);
		return false;
	}

	now_us = gl_now_us();
	gl_group_acknowledge(&group, now_us, true);
	gl_stat_add(&gl_shared->stats.flushes[GL_FLUSH_LONE], 1);
	atomic_store_explicit(&gl_shared->lone_cut_us, cut_us, memory_order_relaxed);
	atomic_store_explicit(&gl_shared->lone_done_us, now_us, memory_order_relaxed);
	atomic_fetch_add(&gl_shared->lone_others, group.waiters - 1);
	atomic_store_explicit(&gl_shared->lone_flushes,
						  atomic_load_explicit(&gl_shared->lone_flushes, memory_order_relaxed) + 1,
						  memory_order_relaxed);
	if (gl_log_sync_min_duration >= 0 &&
		now_us - cut_us >= (int64) gl_log_sync_min_duration * 1000)
		atomic_store(&gl_shared->lone_slow, 1);

	/* No other flush before the writer has seen this one, and has said so. */
	if (atomic_load(&gl_shared->lone_slow) || now_us - cut_us > GL_LONE_SYNC_US)
		atomic_store(&gl_shared->lone_offered, 0);
	return true;
}

/*
 * The writer sleeps while we do its work: it is to look at the rest once a
 * second, and at a slow sync at once.
 */
static bool
writer_is_due(void)
{
	return atomic_load(&gl_shared->token_wanted) || !atomic_load(&gl_shared->lone_offered) ||
		gl_now_us() - atomic_load(&gl_shared->writer_looked_us) > WRITER_LOOKS_US;
}

bool
gl_lone_flush(const GlClaim *claim)
{
	uint64		end = claim->lsn + claim->span;
	uint32		number = (uint32) atomic_load(&gl_shared->segment_number);
	uint64		first_lsn = atomic_load(&gl_shared->segment_first_lsn);
	int			flags = atomic_load(&gl_shared->segment_flags);
	char	   *block;
	uint32		wait_event;
	bool		done;

	if (!atomic_load_explicit(&gl_shared->lone_offered, memory_order_relaxed) ||
		atomic_load_explicit(&gl_shared->token_wanted, memory_order_relaxed) ||
		gl_ring_insert_lsn(gl_ring()) != end || end - claim->durable_lsn > LONE_BYTES)
		return false;
	block = gl_group_block();
	if (block == NULL || !open_file(number, first_lsn, flags))
		return false;

	/* Nobody but us gives the token back: no error from here on. */
	wait_event = gl_wait_event(GL_WAIT_APPEND_DURABLE);
	HOLD_INTERRUPTS();
	if (!gl_token_take())
	{
		RESUME_INTERRUPTS();
		return false;
	}
	done = number == atomic_load(&gl_shared->segment_number) &&
		flags == atomic_load(&gl_shared->segment_flags) &&
		flush(end, first_lsn, block, wait_event);
	gl_token_release();
	atomic_thread_fence(memory_order_seq_cst);
	if (writer_is_due())
		gl_shared_wake_writer();
	RESUME_INTERRUPTS();
	return done;
}
