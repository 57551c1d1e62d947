/*-------------------------------------------------------------------------
 *
 * ring.c
 *		The ring in shared memory: claim, publish, scan.
 *
 * See ring.h for the picture and the rules.  Memory order: a publisher's bytes
 * are released by its slot store and acquired by the scan; the durable LSN is
 * released by the flusher after the sync, and an appender that has acquired it
 * may overwrite what lies before it.
 *
 *-------------------------------------------------------------------------
 */
#include "ring.h"

#include "crc32c.h"

#include <string.h>

#define HINT_TIME_BITS	29
#define HINT_TIME_MASK	((UINT32_C(1) << HINT_TIME_BITS) - 1)

/* State of a ticket that its holder has left. */
#define TICKET_LEFT(t)	(((t) + 1) | (UINT64_C(1) << 63))
#define TICKET_HELD(t)	((t) + 1)

static inline uint8_t *
ring_bytes(const GlRing *ring)
{
	return (uint8_t *) ring + ring->bytes_offset;
}

static inline _Atomic uint64_t *
ring_slot(const GlRing *ring, uint64_t lsn)
{
	_Atomic uint64_t *slots = (_Atomic uint64_t *) ((uint8_t *) ring + ring->slots_offset);

	return &slots[(lsn & (ring->size - 1)) / GL_GRANULE];
}

static inline _Atomic uint64_t *
ring_ticket(const GlRing *ring, uint64_t ticket)
{
	_Atomic uint64_t *tickets = (_Atomic uint64_t *) ((uint8_t *) ring + ring->queue_offset);

	return &tickets[ticket % ring->queue_size];
}

static inline uint32_t
ring_lap(const GlRing *ring, uint64_t lsn)
{
	return (uint32_t) (lsn / ring->size) + 1;
}

static uint64_t
ring_layout(uint64_t size, uint32_t queue_size, uint64_t *slots, uint64_t *queue)
{
	uint64_t	offset = gl_block_ceil(sizeof(GlRing)) + size;

	*slots = offset;
	offset += size / GL_GRANULE * sizeof(uint64_t);
	*queue = offset;
	offset += (uint64_t) queue_size * sizeof(uint64_t);
	return offset;
}

size_t
gl_ring_shared_size(uint64_t size, uint32_t queue_size)
{
	uint64_t	slots,
				queue;

	return ring_layout(size, queue_size, &slots, &queue);
}

void
gl_ring_init(GlRing *ring, uint64_t size, uint64_t segment_size, uint32_t queue_size)
{
	memset(ring, 0, sizeof(GlRing));
	ring->size = size;
	ring->segment_size = segment_size;
	ring->bytes_offset = gl_block_ceil(sizeof(GlRing));
	ring->queue_size = queue_size;
	ring_layout(size, queue_size, &ring->slots_offset, &ring->queue_offset);

	/* Bytes need no clearing: nothing is read that was not written first. */
	memset((uint8_t *) ring + ring->slots_offset, 0, size / GL_GRANULE * sizeof(uint64_t));
	memset((uint8_t *) ring + ring->queue_offset, 0, queue_size * sizeof(uint64_t));
	atomic_store(&ring->insert_lsn, GL_SEALED);
}

void
gl_ring_start(GlRing *ring, uint64_t lsn, int64_t last_time)
{
	atomic_store(&ring->limit_lsn, lsn);
	atomic_store(&ring->last_time, last_time);
	atomic_store(&ring->durable_lsn, lsn);
	atomic_store(&ring->insert_lsn, lsn);
}

GlClaimStatus
gl_ring_try_claim(GlRing *ring, uint64_t position, uint64_t span,
				  int64_t now, bool seal, GlClaim *claim)
{
	uint64_t	durable;
	uint64_t	segment_rest;
	uint64_t	end;
	int64_t		last;
	GlClaimStatus status = GL_CLAIM_OK;

	if (position & GL_SEALED)
		return GL_CLAIM_SEALED;

	segment_rest = ring->segment_size - (position & (ring->segment_size - 1));
	if (span > segment_rest)
	{
		span = segment_rest;
		seal = false;
		status = GL_CLAIM_PADDING;
	}
	end = position + span;

	/*
	 * Room first.  The durable LSN only grows, so a stale value errs on the
	 * safe side; acquire pairs with the flusher's release, so that our writes
	 * into the freed bytes come after its reads of them.
	 */
	durable = atomic_load_explicit(&ring->durable_lsn, memory_order_acquire);
	if (end > gl_block_floor(durable) + ring->size)
		return GL_CLAIM_NO_ROOM;
	if (end > atomic_load_explicit(&ring->limit_lsn, memory_order_acquire))
		return GL_CLAIM_NO_SEGMENT;

	/*
	 * The time goes up before the position does: whoever loads the position
	 * that we are about to set also sees a last_time of at least ours.
	 */
	last = atomic_load_explicit(&ring->last_time, memory_order_acquire);
	while (last < now)
	{
		if (atomic_compare_exchange_weak_explicit(&ring->last_time, &last, now,
												  memory_order_acq_rel, memory_order_acquire))
			break;
	}
	if (last > now)
		now = last;

	if (!atomic_compare_exchange_strong_explicit(&ring->insert_lsn, &position,
												 end | (seal ? GL_SEALED : 0),
												 memory_order_seq_cst, memory_order_relaxed))
		return GL_CLAIM_RACE;

	claim->lsn = end - span;
	claim->span = span;
	claim->durable_lsn = durable;
	claim->time = now;
	return status;
}

void *
gl_ring_address(const GlRing *ring, uint64_t lsn, uint64_t *contiguous)
{
	uint64_t	at = lsn & (ring->size - 1);

	*contiguous = ring->size - at;
	return ring_bytes(ring) + at;
}

void
gl_ring_write(GlRing *ring, uint64_t lsn, const void *data, uint64_t size)
{
	uint64_t	first;
	void	   *at = gl_ring_address(ring, lsn, &first);

	if (size <= first)
		memcpy(at, data, size);
	else
	{
		memcpy(at, data, first);
		memcpy(ring_bytes(ring), (const uint8_t *) data + first, size - first);
	}
}

void
gl_ring_zero(GlRing *ring, uint64_t lsn, uint64_t size)
{
	uint64_t	first;
	void	   *at = gl_ring_address(ring, lsn, &first);

	if (size <= first)
		memset(at, 0, size);
	else
	{
		memset(at, 0, first);
		memset(ring_bytes(ring), 0, size - first);
	}
}

void
gl_ring_read(const GlRing *ring, uint64_t lsn, void *data, uint64_t size)
{
	uint64_t	first;
	const void *at = gl_ring_address(ring, lsn, &first);

	if (size <= first)
		memcpy(data, at, size);
	else
	{
		memcpy(data, at, first);
		memcpy((uint8_t *) data + first, ring_bytes(ring), size - first);
	}
}

void
gl_ring_publish(GlRing *ring, uint64_t lsn, uint32_t hint)
{
	uint64_t	slot = ((uint64_t) ring_lap(ring, lsn) << 32) | hint;

	atomic_store_explicit(ring_slot(ring, lsn), slot, memory_order_release);
}

uint32_t
gl_undurable_distance(uint64_t lsn, uint64_t durable_lsn)
{
	uint64_t	granules = (lsn - durable_lsn) / GL_GRANULE;

	return granules < GL_UNDURABLE_UNKNOWN ? (uint32_t) granules : GL_UNDURABLE_UNKNOWN;
}

void
gl_ring_publish_padding(GlRing *ring, const GlClaim *claim, const GlSeed *seed,
						uint32_t undurable, uint32_t hint)
{
	static const uint8_t zeros[GL_BLOCK];
	GlRecordHeader header = {0};
	uint64_t	rest = claim->span - GL_RECORD_HEADER_SIZE;
	uint32_t	crc = gl_record_payload_crc(NULL, 0);

	gl_ring_zero(ring, claim->lsn + GL_RECORD_HEADER_SIZE, rest);
	while (rest > 0)
	{
		uint64_t	part = rest < sizeof(zeros) ? rest : sizeof(zeros);

		crc = gl_crc32c(crc, zeros, part);
		rest -= part;
	}

	header.length = (uint32_t) claim->span;
	header.time = claim->time;
	header.undurable = undurable;
	header.kind = GL_RECORD_PADDING;
	gl_record_seal(&header, seed, claim->lsn, crc);
	gl_ring_write(ring, claim->lsn, &header, sizeof(header));
	gl_ring_publish(ring, claim->lsn, hint);
}

const GlRecordHeader *
gl_ring_published(const GlRing *ring, uint64_t lsn, uint32_t *hint)
{
	uint64_t	slot = atomic_load_explicit(ring_slot(ring, lsn), memory_order_acquire);
	uint64_t	contiguous;

	if ((uint32_t) (slot >> 32) != ring_lap(ring, lsn))
		return NULL;
	*hint = (uint32_t) slot;

	/* A header never wraps: both it and the ring's end are granule-aligned. */
	return gl_ring_address(ring, lsn, &contiguous);
}

uint32_t
gl_hint(GlSyncMode mode, bool waits, int64_t time_us)
{
	return ((uint32_t) waits << 31) | ((uint32_t) mode << HINT_TIME_BITS) |
		((uint32_t) time_us & HINT_TIME_MASK);
}

int64_t
gl_hint_time(uint32_t hint, int64_t now_us)
{
	uint32_t	ahead = (hint - (uint32_t) now_us) & HINT_TIME_MASK;
	int64_t		distance = ahead;

	/* The nearer of the two readings: within 268 s before or after now. */
	if (ahead > HINT_TIME_MASK / 2)
		distance -= (int64_t) HINT_TIME_MASK + 1;
	return now_us + distance;
}

int64_t
gl_ring_oldest_us(const GlRing *ring, int64_t now_us, int64_t *record_time)
{
	GlRing	   *r = (GlRing *) ring;

	for (;;)
	{
		uint64_t	durable = atomic_load_explicit(&r->durable_lsn, memory_order_acquire);
		uint64_t	insert = gl_ring_insert_lsn(ring);
		uint64_t	slot;
		int64_t		moved_us;
		uint64_t	contiguous;
		const GlRecordHeader *header;

		*record_time = INT64_MAX;
		if (durable >= insert)
			return GL_NEVER;
		slot = atomic_load_explicit(ring_slot(ring, durable), memory_order_acquire);
		moved_us = atomic_load_explicit(&r->durable_us, memory_order_acquire);
		if ((uint32_t) (slot >> 32) == ring_lap(ring, durable))
		{
			/* Not overwritten before the durable LSN has moved, see below. */
			header = gl_ring_address(ring, durable, &contiguous);
			*record_time = header->time;
			atomic_thread_fence(memory_order_acquire);
		}
		if (atomic_load_explicit(&r->durable_lsn, memory_order_acquire) != durable)
			continue;
		if ((uint32_t) (slot >> 32) == ring_lap(ring, durable))
		{
			int64_t		time_us = gl_hint_time((uint32_t) slot, now_us);

			return time_us < now_us ? time_us : now_us;
		}
		return moved_us;
	}
}

/*
 * The queue.  A ticket is a number; queue_serving is the lowest that nobody has
 * left, or queue_next.  Whoever leaves marks its ticket, then moves
 * queue_serving over every marked one.  Marking and looking are sequentially
 * consistent, so of two neighbours who leave at once at least one sees the
 * other's mark.  A ticket that is taken but not yet entered in the array counts
 * as held.
 */
bool
gl_ring_queue_join(GlRing *ring, uint64_t *ticket)
{
	uint64_t	next = atomic_load(&ring->queue_next);

	for (;;)
	{
		if (next - atomic_load(&ring->queue_serving) >= ring->queue_size)
			return false;
		if (atomic_compare_exchange_weak(&ring->queue_next, &next, next + 1))
			break;
	}
	atomic_store(ring_ticket(ring, next), TICKET_HELD(next));
	*ticket = next;
	return true;
}

bool
gl_ring_queue_first(const GlRing *ring, uint64_t ticket)
{
	return atomic_load(&((GlRing *) ring)->queue_serving) == ticket;
}

void
gl_ring_queue_leave(GlRing *ring, uint64_t ticket)
{
	uint64_t	serving;

	atomic_store(ring_ticket(ring, ticket), TICKET_LEFT(ticket));

	serving = atomic_load(&ring->queue_serving);
	while (atomic_load(ring_ticket(ring, serving)) == TICKET_LEFT(serving))
	{
		/* On failure serving is the value that somebody else moved it to. */
		if (atomic_compare_exchange_strong(&ring->queue_serving, &serving, serving + 1))
			serving++;
	}
}
