/*-------------------------------------------------------------------------
 *
 * flush.c
 *		One group: cut, write and sync, acknowledge.
 *
 * The write covers whole blocks, from the one that holds the durable LSN on.
 * Full blocks go from the ring as they are (in two pieces where the ring
 * wraps); the last, partial one goes through a private copy, zero-filled after
 * the group's last record, so that no byte that a session is still writing
 * reaches the disk:
 *
 *	   durable                                   cut
 *	 ....|======|========|========|========|=====|
 *	 ^ block floor                         ^ private copy, zeros after the cut
 *
 * The next group writes that block again, longer; the bytes already
 * acknowledged are the same.
 *
 *-------------------------------------------------------------------------
 */
#include "flush.h"

#include "files.h"
#include "io_wait.h"
#include "miscadmin.h"
#include "shared.h"
#include "utils/memutils.h"

static GlIoOp op;
static bool in_flight = false;
static bool syncing;			/* fdatasync after the write */
static char *last_block = NULL; /* private copy, block-aligned */

static uint64 scan_lsn;
static uint64 last_lsn;			/* of the last record scanned */
static GlPending pending;
static GlPolicy policy;
static uint64 waiters_cut;

/* The group in flight. */
static uint64 group_cut;
static uint64 group_last_lsn;	/* of its last record */
static uint32 group_waiters;
static uint64 group_data_records;
static int64 group_start_ns;
static int64 group_sync_ns;

/* Data records in pending (padding and close records are none). */
static uint64 pending_data_records;

bool
gl_flush_take_token(void)
{
	int			nobody = 0;

	return atomic_compare_exchange_strong(&gl_shared->flush_token, &nobody, MyProcPid) ||
		nobody == MyProcPid;
}

void
gl_flush_release_token(void)
{
	int			me = MyProcPid;

	atomic_compare_exchange_strong(&gl_shared->flush_token, &me, 0);
}

/* No group spans two files, so the scan stops where the file ends. */
static uint64
scan_limit(void)
{
	GlRing	   *ring = gl_ring();
	uint64		full_end = gl_segment_full_end(gl_ring_durable_lsn(ring), ring->segment_size);

	return Min(gl_ring_insert_lsn(ring), full_end);
}

bool
gl_flush_scan(int64 now_us)
{
	GlRing	   *ring = gl_ring();
	uint64		limit = scan_limit();
	uint64		start = scan_lsn;

	while (scan_lsn < limit)
	{
		uint32		hint;
		const GlRecordHeader *header = gl_ring_published(ring, scan_lsn, &hint);
		uint64		span;

		if (header == NULL)
			break;
		span = gl_record_span(header->length - GL_RECORD_HEADER_SIZE);
		gl_pending_add(&pending, gl_hint_mode(hint), gl_hint_waits(hint),
					   gl_hint_time(hint, now_us), span);
		if (header->kind == GL_RECORD_DATA)
			pending_data_records++;
		last_lsn = scan_lsn;
		scan_lsn += span;
	}
	return scan_lsn != start;
}

void
gl_flush_start(void)
{
	if (last_block == NULL)
		last_block = (char *) TYPEALIGN(GL_BLOCK,
										MemoryContextAllocZero(TopMemoryContext, 2 * GL_BLOCK));
	scan_lsn = gl_ring_durable_lsn(gl_ring());
	in_flight = false;
	gl_pending_reset(&pending);
	pending_data_records = 0;
	gl_policy_init(&policy);

	/* Whoever waits now is in joins already, and is no group's yet. */
	waiters_cut = atomic_load(&gl_shared->joins);
	gl_flush_scan(gl_now_us());
	waiters_cut -= Min(waiters_cut, pending.waiters);
}

const GlPending *
gl_flush_pending(void)
{
	return &pending;
}

bool
gl_flush_fills_file(void)
{
	GlRing	   *ring = gl_ring();

	return pending.bytes > 0 &&
		scan_lsn == gl_segment_full_end(gl_ring_durable_lsn(ring), ring->segment_size);
}

bool
gl_flush_unpublished(void)
{
	return scan_lsn < scan_limit();
}

uint64
gl_flush_waiters_cut(void)
{
	return waiters_cut;
}

GlPolicy *
gl_flush_policy(void)
{
	return &policy;
}

static void
add_piece(uint64 from, uint64 to)
{
	while (from < to)
	{
		uint64		contiguous;
		void	   *at = gl_ring_address(gl_ring(), from, &contiguous);
		uint64		size = Min(to - from, contiguous);

		op.iov[op.iovcnt].iov_base = at;
		op.iov[op.iovcnt].iov_len = size;
		op.iovcnt++;
		from += size;
	}
}

void
gl_flush_begin(GlFlushReason reason, int64 now_us)
{
	uint64		durable = gl_ring_durable_lsn(gl_ring());
	uint64		from = gl_block_floor(durable);
	uint64		whole;

	Assert(!in_flight && gl_current.fd >= 0 && scan_lsn > durable);

	group_cut = scan_lsn;
	group_last_lsn = last_lsn;
	group_waiters = pending.waiters;
	group_data_records = pending_data_records;
	whole = gl_block_floor(group_cut);

	memset(&op, 0, sizeof(op));
	op.kind = GL_IO_WRITE;
	op.fd = gl_current.fd;
	op.direct = gl_current.direct;
	op.offset = gl_segment_offset(gl_current.first_lsn, from);
	add_piece(from, whole);
	if (group_cut > whole)
	{
		gl_ring_read(gl_ring(), whole, last_block, group_cut - whole);
		memset(last_block + (group_cut - whole), 0, GL_BLOCK - (group_cut - whole));
		op.iov[op.iovcnt].iov_base = last_block;
		op.iov[op.iovcnt].iov_len = GL_BLOCK;
		op.iovcnt++;
	}

	gl_policy_cut(&policy, &pending, now_us);
	waiters_cut += pending.waiters;
	gl_pending_reset(&pending);
	pending_data_records = 0;
	gl_stat_add(&gl_shared->stats.flushes[reason], 1);

	in_flight = true;
	syncing = false;
	group_start_ns = gl_now_ns();
	gl_io_submit(gl_io_engine(), &op);
}

static void
count_group(uint64 start_lsn, int64 now_ns)
{
	GlStats    *stats = &gl_shared->stats;
	uint64		bytes = group_cut - start_lsn;
	uint64		written = gl_block_ceil(group_cut) - gl_block_floor(start_lsn);
	bool		apart = !gl_current.dsync && enableFsync;
	int64		write_ns = (apart ? group_sync_ns : now_ns) - group_start_ns;
	int64		sync_ns = now_ns - (apart ? group_sync_ns : group_start_ns);

	gl_stat_add(&stats->groups, 1);
	gl_stat_add(&stats->records, group_data_records);
	gl_stat_add(&stats->log_bytes, bytes);
	gl_stat_add(&stats->writes, 1);
	gl_stat_add(&stats->write_bytes, written);
	gl_stat_add(&stats->write_time_ns, write_ns);
	gl_histogram_record(&stats->write, write_ns);
	if (enableFsync)
	{
		gl_stat_add(&stats->syncs, 1);
		gl_stat_add(&stats->sync_time_ns, sync_ns);
		gl_histogram_record(&stats->sync, sync_ns);
	}
	gl_histogram_record(&stats->group_records, group_data_records);
	gl_histogram_record(&stats->group_bytes, bytes);
}

GlFlushStatus
gl_flush_poll(int64 now_us, GlError *error)
{
	GlRing	   *ring = gl_ring();
	uint64		durable;

	if (!in_flight)
		return GL_FLUSH_IDLE;
	if (op.state != GL_IO_DONE)
		return GL_FLUSH_IN_FLIGHT;

	if (op.error != 0)
	{
		char		path[MAXPGPATH];

		/* All of it is pending again. */
		op.state = GL_IO_IDLE;
		in_flight = false;
		gl_policy_failed(&policy);
		scan_lsn = gl_ring_durable_lsn(ring);
		gl_pending_reset(&pending);
		pending_data_records = 0;
		waiters_cut -= group_waiters;
		gl_stat_add(syncing ? &gl_shared->stats.sync_errors : &gl_shared->stats.write_errors, 1);
		gl_segment_path(path, gl_current.number, gl_current.first_lsn);
		gl_error_set(error, gl_error_sqlstate(op.error), op.error, NULL,
					 "could not %s file \"%s\": %s", syncing ? "fdatasync" : "write to",
					 path, strerror(op.error));
		return GL_FLUSH_FAILED;
	}

	if (!syncing && !gl_current.dsync && enableFsync)
	{
		syncing = true;
		group_sync_ns = gl_now_ns();
		memset(&op, 0, sizeof(op));
		op.kind = GL_IO_FDATASYNC;
		op.fd = gl_current.fd;
		gl_io_submit(gl_io_engine(), &op);
		if (op.state != GL_IO_DONE)
			return GL_FLUSH_IN_FLIGHT;
		return gl_flush_poll(now_us, error);
	}

	/*
	 * Durable.  First the LSN, with release semantics for those who will
	 * overwrite what we have just written from, then everybody who waits.
	 */
	op.state = GL_IO_IDLE;
	in_flight = false;
	durable = gl_ring_durable_lsn(ring);
	atomic_store_explicit(&ring->durable_us, now_us, memory_order_relaxed);
	atomic_store_explicit(&gl_shared->last_lsn, group_last_lsn, memory_order_relaxed);
	atomic_store(&ring->durable_lsn, group_cut);
	gl_wakeup_broadcast(&gl_shared->durable, gl_durable_topics(durable, group_cut));
	gl_wakeup_broadcast(&gl_shared->room, GL_WAKE_ALL);
	gl_policy_done(&policy, now_us);
	count_group(durable, gl_now_ns());
	return GL_FLUSH_ACKNOWLEDGED;
}
