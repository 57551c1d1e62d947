/*-------------------------------------------------------------------------
 *
 * test_ring_threads.c
 *		The ring under more producers than there are processors.
 *
 * Meant for ThreadSanitizer (make sanitize), and for the bare machine as well.  A
 * small ring, which wraps and is full all the time; small segments, which end in
 * padding; a limit that moves in front of the claims; sessions that stop between
 * claim and publish, wait in the queue and leave it early; and at the end a seal
 * in the middle of all that.  The flusher copies each group out of the ring, as a
 * write does, before it makes it durable.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

#define RING_SIZE		(UINT64_C(1) << 14)
#define SEGMENT_SIZE	(UINT64_C(1) << 16)
#define QUEUE_SIZE		10		/* fewer than producers: it is full at times */
#define PRODUCERS		16
#define RECORDS			40000	/* before the seal */

typedef struct Producer
{
	GlRing	   *ring;
	uint32_t	id;
	uint32_t	random;
	uint64_t	appended;
	uint64_t	queued;
	uint64_t	paddings;
	uint64_t	no_segment;
	bool		sealed;
} Producer;

static const GlSeed seed = {.log_id = 5,.epoch = 6,.nonce = 7};
static _Atomic int64_t clock_now;

static uint32_t
next_random(Producer *producer)
{
	producer->random = producer->random * 1664525 + 1013904223;
	return producer->random >> 8;
}

static void
publish_record(Producer *producer, const GlClaim *claim, uint32_t size)
{
	GlRing	   *ring = producer->ring;
	GlRecordHeader header = {0};
	uint8_t		payload[RING_SIZE / 4];
	uint64_t	used = sizeof(header) + size;

	memset(payload, (int) (producer->id + producer->appended), size);
	header.length = (uint32_t) used;
	header.kind = GL_RECORD_DATA;
	header.time = claim->time;
	header.stream = ((uint64_t) producer->id << 32) | producer->appended;
	header.undurable = gl_undurable_distance(claim->lsn, claim->durable_lsn);
	gl_record_seal(&header, &seed, claim->lsn, gl_record_payload_crc(payload, size));
	gl_ring_write(ring, claim->lsn, &header, sizeof(header));
	if (next_random(producer) % 50 == 0)
		sched_yield();
	gl_ring_write(ring, claim->lsn + sizeof(header), payload, size);
	gl_ring_zero(ring, claim->lsn + used, claim->span - used);
	if (next_random(producer) % 50 == 0)
		sched_yield();
	gl_ring_publish(ring, claim->lsn, gl_hint(GL_SYNC_BATCH, true, 1000));
}

/* False: the ring is sealed. */
static bool
append(Producer *producer, uint32_t size)
{
	GlRing	   *ring = producer->ring;
	GlClaim		claim;
	uint64_t	ticket = 0;
	bool		queued = false;

	for (;;)
	{
		GlClaimStatus status = GL_CLAIM_NO_ROOM;

		if (queued ? gl_ring_queue_first(ring, ticket) : gl_ring_queue_empty(ring))
			status = gl_ring_try_claim(ring, gl_ring_position(ring), gl_record_span(size),
									   atomic_fetch_add(&clock_now, 1), false, &claim);
		switch (status)
		{
			case GL_CLAIM_OK:
				publish_record(producer, &claim, size);
				producer->appended++;
				if (queued)
					gl_ring_queue_leave(ring, ticket);
				return true;
			case GL_CLAIM_PADDING:
				gl_ring_publish_padding(ring, &claim, &seed, 0, gl_hint(GL_SYNC_PERIODIC, false, 0));
				producer->paddings++;
				continue;
			case GL_CLAIM_RACE:
				continue;
			case GL_CLAIM_SEALED:
				if (queued)
					gl_ring_queue_leave(ring, ticket);
				return false;
			case GL_CLAIM_NO_SEGMENT:
				producer->no_segment++;
				break;
			case GL_CLAIM_NO_ROOM:
				break;
		}
		if (!queued && (gl_ring_position(ring) & GL_SEALED))
			return false;
		if (!queued)
		{
			queued = gl_ring_queue_join(ring, &ticket);
			producer->queued += queued;
		}
		else if (next_random(producer) % 100 == 0)
		{
			gl_ring_queue_leave(ring, ticket);
			queued = false;
		}
		sched_yield();
	}
}

static void *
producer_main(void *arg)
{
	Producer   *producer = arg;

	while (append(producer, next_random(producer) % 40 == 0 ?
				  RING_SIZE / 4 - GL_RECORD_HEADER_SIZE : next_random(producer) % 300))
		;
	producer->sealed = true;
	return NULL;
}

/* Looks on, as a session in periodic mode does. */
static _Atomic bool looking = true;

static void *
onlooker_main(void *arg)
{
	GlRing	   *ring = arg;

	while (atomic_load(&looking))
	{
		int64_t		record_time;
		int64_t		oldest = gl_ring_oldest_us(ring, 2000, &record_time);

		if (oldest != GL_NEVER && oldest > 2000)
			abort();
		sched_yield();
	}
	return NULL;
}

/* Copy what is published out, check it, make it durable.  Returns data records. */
static uint64_t
flush(GlRing *ring, uint64_t *appended_by)
{
	static uint8_t group[RING_SIZE];
	uint64_t	begin = gl_ring_durable_lsn(ring);
	uint64_t	lsn = begin;
	uint64_t	records = 0;
	uint32_t	hint;
	const GlRecordHeader *published;

	while ((published = gl_ring_published(ring, lsn, &hint)) != NULL)
		lsn += gl_record_span(published->length - GL_RECORD_HEADER_SIZE);
	if (lsn == begin)
		return 0;
	assert_true(lsn - begin <= RING_SIZE);
	gl_ring_read(ring, begin, group, lsn - begin);
	for (uint64_t at = 0; at < lsn - begin;)
	{
		GlRecordHeader header;
		uint32_t	size;

		memcpy(&header, group + at, sizeof(header));
		assert_int_equal(gl_record_check_header(&header, &seed, begin + at, RING_SIZE / 4), GL_RECORD_OK);
		size = header.length - GL_RECORD_HEADER_SIZE;
		assert_true(gl_record_check_crc(&header, &seed, begin + at,
										gl_record_payload_crc(group + at + sizeof(header), size)));
		assert_int_equal((begin + at) / SEGMENT_SIZE, (begin + at + header.length - 1) / SEGMENT_SIZE);
		if (header.kind == GL_RECORD_DATA)
		{
			uint32_t	id = (uint32_t) (header.stream >> 32);

			/* of each producer: all, in order, once */
			assert_true(id < PRODUCERS);
			assert_int_equal((uint32_t) header.stream, appended_by[id]);
			appended_by[id]++;
			records++;
		}
		at += gl_record_span(size);
	}
	/* "written and synced" */
	atomic_store_explicit(&ring->durable_us, 1000, memory_order_relaxed);
	atomic_store(&ring->durable_lsn, lsn);
	return records;
}

static void
test_many_producers_and_a_seal(void **state)
{
	GlRing	   *ring = aligned_alloc(GL_BLOCK, gl_block_ceil(gl_ring_shared_size(RING_SIZE, QUEUE_SIZE)));
	pthread_t	threads[PRODUCERS];
	pthread_t	onlooker;
	Producer	producers[PRODUCERS];
	uint64_t	appended_by[PRODUCERS] = {0};
	uint64_t	seen = 0;
	uint64_t	end;
	Producer	sum = {0};

	(void) state;
	gl_ring_init(ring, RING_SIZE, SEGMENT_SIZE, QUEUE_SIZE);
	gl_ring_start(ring, SEGMENT_SIZE, 1);
	for (uint32_t i = 0; i < PRODUCERS; i++)
	{
		producers[i] = (Producer) {.ring = ring,.id = i,.random = i * 7919 + 1};
		assert_int_equal(pthread_create(&threads[i], NULL, producer_main, &producers[i]), 0);
	}
	assert_int_equal(pthread_create(&onlooker, NULL, onlooker_main, ring), 0);

	for (;;)
	{
		uint64_t	durable;
		uint64_t	got = flush(ring, appended_by);
		GlClaim		claim;

		seen += got;
		durable = gl_ring_durable_lsn(ring);

		/* a file is ready a moment after it is needed */
		if (got == 0 && durable >= atomic_load(&ring->limit_lsn) - SEGMENT_SIZE / 64)
			atomic_store(&ring->limit_lsn, gl_segment_full_end(durable, SEGMENT_SIZE) + SEGMENT_SIZE);
		if (seen >= RECORDS && gl_ring_insert_lsn(ring) == durable &&
			gl_ring_try_claim(ring, gl_ring_position(ring), GL_RECORD_HEADER_SIZE, 0, true, &claim) == GL_CLAIM_OK)
		{
			GlRecordHeader header = {.length = GL_RECORD_HEADER_SIZE,.kind = GL_RECORD_CLOSE,.time = claim.time};

			gl_record_seal(&header, &seed, claim.lsn, gl_record_payload_crc(NULL, 0));
			gl_ring_write(ring, claim.lsn, &header, sizeof(header));
			gl_ring_publish(ring, claim.lsn, 0);
			end = claim.lsn + claim.span;
			break;
		}
		if (got == 0)
			sched_yield();
	}
	while (gl_ring_durable_lsn(ring) < end)
		seen += flush(ring, appended_by);

	for (int i = 0; i < PRODUCERS; i++)
	{
		pthread_join(threads[i], NULL);
		assert_true(producers[i].sealed);
		assert_int_equal(producers[i].appended, appended_by[i]);
		sum.queued += producers[i].queued;
		sum.paddings += producers[i].paddings;
		sum.no_segment += producers[i].no_segment;
	}
	atomic_store(&looking, false);
	pthread_join(onlooker, NULL);

	/* nothing after the close record; and the hard cases were met */
	assert_int_equal(gl_ring_insert_lsn(ring), end);
	assert_int_equal(flush(ring, appended_by), 0);
	assert_true(gl_ring_queue_empty(ring));
	assert_true(sum.queued > 0 && sum.paddings > 0 && sum.no_segment > 0);
	free(ring);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_producers_and_a_seal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
