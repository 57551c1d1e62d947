/*-------------------------------------------------------------------------
 *
 * ring.h
 *		The ring in shared memory: claim, publish, scan.
 *
 * The log is one byte address space; the ring holds the part from the block of
 * the durable LSN up to the insert LSN, byte lsn at lsn % size.
 *
 *	        block floor                                    claims may not
 *	        of durable    durable       scan     insert    end beyond this
 *	            |            |           |          |             |
 *	 -----------+------------+===========+~~~~~~~~~~+.............+
 *	   durable,  kept for the  published, claimed, some    free
 *	   reusable  last block    not yet    published,
 *	                           durable    some not
 *
 * Claim		compare-and-swap on insert_lsn, after checking that the claim's end
 *				is at most  block_floor(durable) + size  (room) and at most
 *				limit_lsn (a file is ready for every byte).  A claim never crosses
 *				a multiple of segment_size: what is left before it is claimed as
 *				padding.  Nobody waits while holding a claim.
 * Publish		one release store of {lap, hint} into the slot of the record's
 *				first granule.  The lap, lsn / size + 1, differs from whatever an
 *				earlier use of the slot left there; it never derives from payload
 *				bytes, which the user controls.
 * Scan			the flusher walks the published prefix, record by record, by slot
 *				and record length.
 * Seal			the top bit of insert_lsn, set in the same compare-and-swap as the
 *				claim of the close record: nobody claims after it.
 * Queue		once somebody had to wait for room, room is granted in order of
 *				arrival, so that a large record is not starved by small ones.
 *				Tickets are taken and left without a lock; see ring.c.
 *
 * Slot: 64 bits, written at once.
 *
 *	 63            32 31    30..29   28..0
 *	+----------------+------+-------+----------------------------------+
 *	| lap            | waits| mode  | time: microseconds modulo 2^29   |
 *	+----------------+------+-------+----------------------------------+
 *
 * waits: the session waits for this record; mode: GlSyncMode; time: monotonic
 * clock at the append (group mode: the end of its window).
 *
 * Pure core: C11 atomics only.  No function pointers, and no pointers at all:
 * the arrays lie at offsets from the struct.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_RING_H
#define GROUPLOG_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"
#include "segment_format.h"
#include "sync_policy.h"

#define GL_CACHE_LINE	64
#define GL_SEALED		(UINT64_C(1) << 63)

typedef struct GlRing
{
	/* Constant after gl_ring_init. */
	uint64_t	size;			/* bytes, a power of two */
	uint64_t	segment_size;	/* bytes, a power of two, >= size */
	uint64_t	bytes_offset;	/* of the ring's bytes; block-aligned */
	uint64_t	slots_offset;	/* of size / GL_GRANULE slots */
	uint64_t	queue_offset;	/* of queue_size tickets' states */
	uint32_t	queue_size;

	/* Appenders compete for this line. */
	alignas(GL_CACHE_LINE) _Atomic uint64_t insert_lsn; /* next byte to claim, and
														 * GL_SEALED */
	_Atomic int64_t last_time;	/* record time of the newest claim */

	/* Written by the flusher after each group; read by every appender. */
	alignas(GL_CACHE_LINE) _Atomic uint64_t durable_lsn;	/* all before it is durable */
	_Atomic uint64_t limit_lsn; /* claims end at or before it */
	_Atomic int64_t durable_us; /* monotonic time when durable_lsn last moved */

	/* Tickets of those who wait for room. */
	alignas(GL_CACHE_LINE) _Atomic uint64_t queue_next; /* the next ticket */
	_Atomic uint64_t queue_serving; /* the ticket whose turn it is */
	alignas(GL_CACHE_LINE) char end_of_struct[GL_CACHE_LINE];
} GlRing;

typedef enum GlClaimStatus
{
	GL_CLAIM_OK,				/* span bytes at claim->lsn are ours to fill */
	GL_CLAIM_PADDING,			/* the rest of the segment is: fill it with
								 * gl_ring_publish_padding, then claim again */
	GL_CLAIM_RACE,				/* somebody was faster: load the position again */
	GL_CLAIM_NO_ROOM,			/* the ring is full */
	GL_CLAIM_NO_SEGMENT,		/* no file is ready for these bytes */
	GL_CLAIM_SEALED				/* the log is closed */
} GlClaimStatus;

typedef struct GlClaim
{
	uint64_t	lsn;
	uint64_t	span;			/* bytes, a multiple of GL_GRANULE */
	uint64_t	durable_lsn;	/* durable when it was claimed, at least */
	int64_t		time;			/* record time: never behind the claim before */
} GlClaim;

/* Bytes of shared memory, for a ring at a block-aligned address. */
extern size_t gl_ring_shared_size(uint64_t size, uint32_t queue_size);
extern void gl_ring_init(GlRing *ring, uint64_t size, uint64_t segment_size, uint32_t queue_size);

/* Begin at this LSN (a multiple of segment_size); claims stay impossible until
 * limit_lsn is raised.  Nobody else uses the ring yet. */
extern void gl_ring_start(GlRing *ring, uint64_t lsn, int64_t last_time);

/* The largest span of a record. */
static inline uint64_t
gl_ring_max_span(const GlRing *ring)
{
	return ring->size / 4;
}

static inline uint64_t
gl_ring_insert_lsn(const GlRing *ring)
{
	return atomic_load_explicit(&((GlRing *) ring)->insert_lsn, memory_order_seq_cst) & ~GL_SEALED;
}

static inline uint64_t
gl_ring_durable_lsn(const GlRing *ring)
{
	return atomic_load_explicit(&((GlRing *) ring)->durable_lsn, memory_order_acquire);
}

/*
 * Claim in two steps, so that the clock is read between loading the position
 * and the compare-and-swap: LSN order is time order.
 *
 *		do {
 *			position = gl_ring_position(ring);
 *			now = clock;
 *			status = gl_ring_try_claim(ring, position, span, now, false, &claim);
 *		} while (status == GL_CLAIM_RACE);
 */
static inline uint64_t
gl_ring_position(const GlRing *ring)
{
	return atomic_load_explicit(&((GlRing *) ring)->insert_lsn, memory_order_acquire);
}

/* span: a multiple of GL_GRANULE, at most gl_ring_max_span.  seal: see above. */
extern GlClaimStatus gl_ring_try_claim(GlRing *ring, uint64_t position, uint64_t span,
									   int64_t now, bool seal, GlClaim *claim);

/* Copy into claimed bytes, or out of bytes that stay; wraps by itself. */
extern void gl_ring_write(GlRing *ring, uint64_t lsn, const void *data, uint64_t size);
extern void gl_ring_zero(GlRing *ring, uint64_t lsn, uint64_t size);
extern void gl_ring_read(const GlRing *ring, uint64_t lsn, void *data, uint64_t size);

/* Address of a byte, and how many follow it before the ring wraps. */
extern void *gl_ring_address(const GlRing *ring, uint64_t lsn, uint64_t *contiguous);

/* Everything is in place; all granules of the record become visible. */
extern void gl_ring_publish(GlRing *ring, uint64_t lsn, uint32_t hint);

/* Fill claimed bytes with a sealed padding record, of no stream, and publish it. */
extern void gl_ring_publish_padding(GlRing *ring, const GlClaim *claim, const GlSeed *seed,
									uint32_t undurable, uint32_t hint);

/* How many granules before lsn were not durable yet; saturates. */
extern uint32_t gl_undurable_distance(uint64_t lsn, uint64_t durable_lsn);

/* The record at this LSN, with its hint, or NULL if none is published yet. */
extern const GlRecordHeader *gl_ring_published(const GlRing *ring, uint64_t lsn, uint32_t *hint);

/* hints; a time is right if it is no further from now than this */
#define GL_HINT_RANGE_US	INT64_C(268000000)

extern uint32_t gl_hint(GlSyncMode mode, bool waits, int64_t time_us);
extern int64_t gl_hint_time(uint32_t hint, int64_t now_us);

static inline GlSyncMode
gl_hint_mode(uint32_t hint)
{
	return (GlSyncMode) ((hint >> 29) & 3);
}

static inline bool
gl_hint_waits(uint32_t hint)
{
	return (hint >> 31) != 0;
}

/*
 * Monotonic time of the oldest record that is not durable, or GL_NEVER when
 * all is.  Where that record is claimed but not published, the answer is the
 * time at which the durable LSN last moved: too old rather than too young.
 *
 * A hint holds no more than GL_HINT_RANGE_US; beyond it, record_time helps: the
 * record's own time by the wall clock, INT64_MAX if it is not known.
 */
extern int64_t gl_ring_oldest_us(const GlRing *ring, int64_t now_us, int64_t *record_time);

/* The queue for room. */
static inline bool
gl_ring_queue_empty(const GlRing *ring)
{
	GlRing	   *r = (GlRing *) ring;

	return atomic_load_explicit(&r->queue_serving, memory_order_acquire) ==
		atomic_load_explicit(&r->queue_next, memory_order_acquire);
}

/* False when the queue is full (tickets of those who left early still stand in
 * it): sleep a moment, try again. */
extern bool gl_ring_queue_join(GlRing *ring, uint64_t *ticket);
extern bool gl_ring_queue_first(const GlRing *ring, uint64_t ticket);
extern void gl_ring_queue_leave(GlRing *ring, uint64_t ticket);

#endif							/* GROUPLOG_RING_H */
