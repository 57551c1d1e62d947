/*-------------------------------------------------------------------------
 *
 * flush.c
 *		One group: cut, write and sync, acknowledge.
 *
 * The writer's side: it scans what is published, cuts groups from it when the
 * sync policy says so, and acknowledges them.  See group.c for what a write
 * covers, and lone.c for the flushes that appenders do by themselves meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "flush.h"

#include "files.h"
#include "group.h"
#include "io_wait.h"
#include "miscadmin.h"
#include "shared.h"
#include "slow_sync.h"

static GlIoOp op;
static bool in_flight = false;
static bool syncing;			/* fdatasync after the write */
static char *block = NULL;		/* private copy of a group's last block */
static uint64 scan_lsn;
static uint64 last_lsn;			/* of the last record scanned */
static GlPending pending;
static GlPolicy policy;
static uint64 waiters_cut;

static GlGroup group;			/* in flight */

/*
 * Groups in a row that had one waiter, with nobody else about: from so many on
 * the token is offered.
 */
#ifndef GL_LONE_GROUPS
#define GL_LONE_GROUPS	4
#endif
/* Below 0, after a slow sync: so many more fast ones first. */
static int	lone_groups;
static bool lone_at_work;		/* somebody flushed while we slept the last time */
static uint64 lone_flushes_seen;
static uint64 lone_others_seen;

/* A device that stalls now and then is slow, though its usual sync is not. */
#define LONE_FAST_GROUPS	100

/* Data records in pending (padding and close records are none). */
static uint64 pending_data_records;

/*
 * No group spans two files, so the scan stops where the file ends.  Both are looked at
 * once: Min evaluates what it returns a second time, when more may be claimed.
 */
static uint64
scan_limit(void)
{
	GlRing	   *ring = gl_ring();
	uint64		insert = gl_ring_insert_lsn(ring);
	uint64		full_end = gl_segment_full_end(gl_ring_durable_lsn(ring), ring->segment_size);

	return Min(insert, full_end);
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

/* A write failed: its records are to be scanned again. */
static void
forget_pending(void)
{
	gl_policy_failed(&policy);
	scan_lsn = gl_ring_durable_lsn(gl_ring());
	gl_pending_reset(&pending);
	pending_data_records = 0;
	lone_groups = 0;
}

static void
failed(int os_error, bool at_sync, GlError *error)
{
	char		path[MAXPGPATH];

	gl_stat_add(at_sync ? &gl_shared->stats.sync_errors : &gl_shared->stats.write_errors, 1);
	gl_segment_path(path, gl_current.number, gl_current.first_lsn);
	gl_error_set(error, gl_error_sqlstate(os_error), os_error, NULL,
				 "could not %s file \"%s\": %s", at_sync ? "fdatasync" : "write to",
				 path, strerror(os_error));
}

void
gl_flush_start(void)
{
	block = gl_group_block();
	if (block == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	scan_lsn = gl_ring_durable_lsn(gl_ring());
	in_flight = false;
	gl_pending_reset(&pending);
	pending_data_records = 0;
	gl_policy_init(&policy);
	lone_groups = 0;
	lone_flushes_seen = atomic_load(&gl_shared->lone_flushes);
	lone_others_seen = atomic_load(&gl_shared->lone_others);

	/* A lone flush that failed while there was no writer: its file is left anyway. */
	if (atomic_exchange(&gl_shared->lone_error, 0) != 0)
		gl_stat_add(atomic_load(&gl_shared->lone_syncing) ? &gl_shared->stats.sync_errors :
					&gl_shared->stats.write_errors, 1);

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

void
gl_flush_begin(GlFlushReason reason, int64 now_us)
{
	Assert(!in_flight && gl_current.fd >= 0 && gl_token_held());

	group = (GlGroup)
	{
		.start = gl_ring_durable_lsn(gl_ring()),
		.cut = scan_lsn,
		.last_lsn = last_lsn,
		.waiters = pending.waiters,
		.data_records = pending_data_records
	};
	Assert(group.cut > group.start);
	gl_group_write(&op, &group, gl_current.first_lsn, block);
	op.fd = gl_current.fd;
	op.direct = gl_current.direct;

	gl_policy_cut(&policy, &pending, now_us);
	waiters_cut += pending.waiters;
	gl_pending_reset(&pending);
	pending_data_records = 0;
	gl_stat_add(&gl_shared->stats.flushes[reason], 1);

	in_flight = true;
	syncing = false;
	group.start_ns = gl_now_ns();
	gl_io_submit(gl_io_engine(), &op);
}

/* A group is durable: what does it say of lone sessions? */
static void
count_lone(int64 took_us, uint32 waiters)
{
	if (took_us > GL_LONE_SYNC_US)
		lone_groups = -LONE_FAST_GROUPS;
	else if (lone_groups < 0)
		lone_groups++;
	else if (waiters > 1)
		lone_groups = 0;
	else if (waiters == 1)
		lone_groups++;
}

GlFlushStatus
gl_flush_poll(int64 now_us, GlError *error)
{
	if (!in_flight)
		return GL_FLUSH_IDLE;
	if (op.state != GL_IO_DONE)
	{
		gl_slow_sync_in_progress(group.start_ns);
		return GL_FLUSH_IN_FLIGHT;
	}

	if (op.error != 0)
	{
		/* All of it is pending again. */
		op.state = GL_IO_IDLE;
		in_flight = false;
		forget_pending();
		waiters_cut -= group.waiters;
		failed(op.error, syncing, error);
		return GL_FLUSH_FAILED;
	}

	if (!syncing && !gl_current.dsync && enableFsync)
	{
		syncing = true;
		group.sync_ns = gl_now_ns();
		memset(&op, 0, sizeof(op));
		op.kind = GL_IO_FDATASYNC;
		op.fd = gl_current.fd;
		gl_io_submit(gl_io_engine(), &op);
		if (op.state != GL_IO_DONE)
			return GL_FLUSH_IN_FLIGHT;
		return gl_flush_poll(now_us, error);
	}

	op.state = GL_IO_IDLE;
	in_flight = false;
	gl_group_acknowledge(&group, now_us, enableFsync);
	gl_policy_done(&policy, &pending, now_us);
	gl_slow_sync_done(group.start_ns);
	count_lone(now_us - policy.cut_us, group.waiters);
	return GL_FLUSH_ACKNOWLEDGED;
}

bool
gl_flush_lone_at_work(void)
{
	return lone_at_work;
}

/*
 * May a lone appender flush by itself while we sleep?  Nothing may be pending,
 * in flight or scanned then: the ring's durable LSN is all that we take back.
 */
bool
gl_flush_may_offer(void)
{
	GlRing	   *ring = gl_ring();

	return lone_groups >= GL_LONE_GROUPS && policy.sync_us <= GL_LONE_SYNC_US &&
		!in_flight && gl_current.fd >= 0 &&
		scan_lsn == gl_ring_durable_lsn(ring) && scan_lsn == gl_ring_insert_lsn(ring);
}

void
gl_flush_offer(void)
{
	Assert(!in_flight && pending.records == 0 && gl_current.fd >= 0);
	atomic_store(&gl_shared->token_wanted, 0);
	atomic_store(&gl_shared->lone_offered, 1);
	gl_token_release();
}

/* The token is ours again: what has an appender done meanwhile? */
GlFlushStatus
gl_flush_take_back(int64 now_us, GlError *error)
{
	uint64		flushes = atomic_load(&gl_shared->lone_flushes);
	uint64		others = atomic_load(&gl_shared->lone_others);
	int			lone_error = atomic_exchange(&gl_shared->lone_error, 0);

	atomic_store(&gl_shared->lone_offered, 0);
	lone_at_work = flushes != lone_flushes_seen;
	if (lone_at_work)
	{
		/*
		 * To the policy the last of them is a group as any other, and the time of
		 * those before it is idle: of a meter it would have to know their stalls.
		 */
		gl_pending_reset(&pending);
		gl_pending_add(&pending, GL_SYNC_ADAPTIVE, true, atomic_load(&gl_shared->lone_cut_us), 0);
		gl_policy_cut(&policy, &pending, atomic_load(&gl_shared->lone_cut_us));
		gl_pending_reset(&pending);
		gl_policy_done(&policy, &pending, atomic_load(&gl_shared->lone_done_us));
		count_lone(atomic_load(&gl_shared->lone_done_us) - atomic_load(&gl_shared->lone_cut_us), 1);
		lone_flushes_seen = flushes;
	}
	waiters_cut += others - lone_others_seen;
	lone_others_seen = others;
	if (atomic_exchange(&gl_shared->lone_slow, 0))
		gl_slow_sync_done(atomic_load(&gl_shared->lone_cut_us) * 1000);
	if (lone_error != 0)
	{
		forget_pending();
		failed(lone_error, atomic_load(&gl_shared->lone_syncing), error);
		return GL_FLUSH_FAILED;
	}
	Assert(pending.records == 0);
	scan_lsn = gl_ring_durable_lsn(gl_ring());
	gl_flush_scan(now_us);

	/* Somebody has come who did not flush by himself. */
	if (pending.waiters > 0)
		lone_groups = Min(lone_groups, 0);
	return GL_FLUSH_IDLE;
}
