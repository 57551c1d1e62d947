/*-------------------------------------------------------------------------
 *
 * group.c
 *		A group: what its write covers, and how it is acknowledged.
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
#include "group.h"

#include "miscadmin.h"
#include "shared.h"
#include "utils/memutils.h"

bool
gl_token_take(void)
{
	int			nobody = 0;

	return atomic_compare_exchange_strong(&gl_shared->flush_token, &nobody, MyProcPid);
}

bool
gl_token_held(void)
{
	return atomic_load_explicit(&gl_shared->flush_token, memory_order_relaxed) == MyProcPid;
}

void
gl_token_release(void)
{
	int			me = MyProcPid;

	atomic_compare_exchange_strong(&gl_shared->flush_token, &me, 0);
}

char *
gl_group_block(void)
{
	static char *block = NULL;

	if (block == NULL)
	{
		char	   *memory = MemoryContextAllocExtended(TopMemoryContext, 2 * GL_BLOCK,
														MCXT_ALLOC_NO_OOM);

		if (memory != NULL)
			block = (char *) TYPEALIGN(GL_BLOCK, memory);
	}
	return block;
}

static void
add_piece(GlIoOp *op, uint64 from, uint64 to)
{
	while (from < to)
	{
		uint64		contiguous;
		void	   *at = gl_ring_address(gl_ring(), from, &contiguous);
		uint64		size = Min(to - from, contiguous);

		op->iov[op->iovcnt].iov_base = at;
		op->iov[op->iovcnt].iov_len = size;
		op->iovcnt++;
		from += size;
	}
}

void
gl_group_write(GlIoOp *op, const GlGroup *group, uint64 file_lsn, char *block)
{
	uint64		from = gl_block_floor(group->start);
	uint64		whole = gl_block_floor(group->cut);

	Assert(group->cut > group->start);
	memset(op, 0, sizeof(*op));
	op->kind = GL_IO_WRITE;
	op->offset = gl_segment_offset(file_lsn, from);
	add_piece(op, from, whole);
	if (group->cut > whole)
	{
		gl_ring_read(gl_ring(), whole, block, group->cut - whole);
		memset(block + (group->cut - whole), 0, GL_BLOCK - (group->cut - whole));
		op->iov[op->iovcnt].iov_base = block;
		op->iov[op->iovcnt].iov_len = GL_BLOCK;
		op->iovcnt++;
	}
}

static void
count(const GlGroup *group, int64 now_ns, bool synced)
{
	GlStats    *stats = &gl_shared->stats;
	uint64		bytes = group->cut - group->start;
	uint64		written = gl_block_ceil(group->cut) - gl_block_floor(group->start);
	int64		write_ns = (group->sync_ns ? group->sync_ns : now_ns) - group->start_ns;
	int64		sync_ns = now_ns - (group->sync_ns ? group->sync_ns : group->start_ns);

	gl_stat_add(&stats->groups, 1);
	gl_stat_add(&stats->records, group->data_records);
	gl_stat_add(&stats->log_bytes, bytes);
	gl_stat_add(&stats->writes, 1);
	gl_stat_add(&stats->write_bytes, written);
	gl_stat_add(&stats->write_time_ns, write_ns);
	gl_histogram_record(&stats->write, write_ns);
	if (synced)
	{
		gl_stat_add(&stats->syncs, 1);
		gl_stat_add(&stats->sync_time_ns, sync_ns);
		gl_histogram_record(&stats->sync, sync_ns);
	}
	gl_histogram_record(&stats->group_records, group->data_records);
	gl_histogram_record(&stats->group_bytes, bytes);
}

void
gl_group_acknowledge(const GlGroup *group, int64 now_us, bool synced)
{
	GlRing	   *ring = gl_ring();

	/*
	 * First the LSN, with release semantics for those who will overwrite what
	 * we have just written from, then everybody who waits.
	 */
	atomic_store_explicit(&ring->durable_us, now_us, memory_order_relaxed);
	atomic_store_explicit(&gl_shared->last_lsn, group->last_lsn, memory_order_relaxed);
	atomic_store(&ring->durable_lsn, group->cut);
	gl_wakeup_broadcast(&gl_shared->durable, gl_durable_topics(group->start, group->cut));
	gl_wakeup_broadcast(&gl_shared->room, GL_WAKE_ALL);
	count(group, gl_now_ns(), synced);
}
