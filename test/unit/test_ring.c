/*-------------------------------------------------------------------------
 *
 * test_ring.c
 *		The ring: claim, publish, scan, seal, queue; single-threaded rules first,
 *		then many producers against one consumer.
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

#include "crc32c.h"
#include "ring.h"

#define RING_SIZE		(UINT64_C(1) << 17)
#define SEGMENT_SIZE	(UINT64_C(1) << 20)
#define QUEUE_SIZE		16

static const GlSeed seed = {.log_id = 11,.epoch = 2,.nonce = 333};

static GlRing *
make_ring(void)
{
	GlRing	   *ring = aligned_alloc(GL_BLOCK, gl_block_ceil(gl_ring_shared_size(RING_SIZE, QUEUE_SIZE)));

	assert_non_null(ring);
	gl_ring_init(ring, RING_SIZE, SEGMENT_SIZE, QUEUE_SIZE);
	return ring;
}

static GlRing *
start_ring(uint64_t limit)
{
	GlRing	   *ring = make_ring();

	gl_ring_start(ring, SEGMENT_SIZE, 1000);
	atomic_store(&ring->limit_lsn, limit);
	return ring;
}

static GlClaimStatus
claim(GlRing *ring, uint64_t span, int64_t now, GlClaim *result)
{
	return gl_ring_try_claim(ring, gl_ring_position(ring), span, now, false, result);
}

/* Fill a claim with a record whose payload is a number repeated. */
static void
fill(GlRing *ring, const GlClaim *claim, uint64_t number, uint32_t payload_size)
{
	GlRecordHeader header = {0};
	uint64_t	payload[RING_SIZE / 4 / sizeof(uint64_t)];
	uint32_t	crc;

	for (size_t i = 0; i < sizeof(payload) / sizeof(payload[0]) && i * 8 < payload_size; i++)
		payload[i] = number;
	crc = gl_record_payload_crc(payload, payload_size);
	header.length = GL_RECORD_HEADER_SIZE + payload_size;
	header.time = claim->time;
	header.stream = number;
	header.kind = GL_RECORD_DATA;
	header.undurable = gl_undurable_distance(claim->lsn, claim->durable_lsn);
	gl_record_seal(&header, &seed, claim->lsn, crc);
	gl_ring_write(ring, claim->lsn, &header, sizeof(header));
	gl_ring_write(ring, claim->lsn + sizeof(header), payload, payload_size);
	gl_ring_zero(ring, claim->lsn + header.length, claim->span - header.length);
}

static void
test_nothing_before_start(void **state)
{
	GlRing	   *ring = make_ring();
	GlClaim		result;

	(void) state;
	assert_int_equal(claim(ring, 64, 1, &result), GL_CLAIM_SEALED);
	free(ring);
}

static void
test_room_and_limit(void **state)
{
	GlRing	   *ring = start_ring(SEGMENT_SIZE);
	GlClaim		result;
	uint64_t	end = SEGMENT_SIZE + RING_SIZE;

	(void) state;
	/* no file yet */
	assert_int_equal(claim(ring, 64, 1, &result), GL_CLAIM_NO_SEGMENT);
	atomic_store(&ring->limit_lsn, SEGMENT_SIZE * 3);

	/* until the ring is full to the last granule */
	for (uint64_t lsn = SEGMENT_SIZE; lsn < end; lsn += RING_SIZE / 4)
	{
		assert_int_equal(claim(ring, RING_SIZE / 4, 1, &result), GL_CLAIM_OK);
		assert_int_equal(result.lsn, lsn);
	}
	assert_int_equal(claim(ring, 32, 1, &result), GL_CLAIM_NO_ROOM);

	/* the durable LSN frees whole blocks only: the last block is kept */
	atomic_store(&ring->durable_lsn, SEGMENT_SIZE + GL_BLOCK - 32);
	assert_int_equal(claim(ring, 32, 1, &result), GL_CLAIM_NO_ROOM);
	atomic_store(&ring->durable_lsn, SEGMENT_SIZE + GL_BLOCK + 32);
	assert_int_equal(claim(ring, GL_BLOCK + 32, 1, &result), GL_CLAIM_NO_ROOM);
	assert_int_equal(claim(ring, GL_BLOCK, 1, &result), GL_CLAIM_OK);
	assert_int_equal(claim(ring, 32, 1, &result), GL_CLAIM_NO_ROOM);
	free(ring);
}

static void
test_race_is_told(void **state)
{
	GlRing	   *ring = start_ring(SEGMENT_SIZE * 3);
	uint64_t	position = gl_ring_position(ring);
	GlClaim		result;

	(void) state;
	assert_int_equal(claim(ring, 64, 1, &result), GL_CLAIM_OK);
	assert_int_equal(gl_ring_try_claim(ring, position, 64, 1, false, &result), GL_CLAIM_RACE);
	free(ring);
}

static void
test_time_never_goes_back(void **state)
{
	GlRing	   *ring = start_ring(SEGMENT_SIZE * 3);
	GlClaim		result;

	(void) state;
	assert_int_equal(claim(ring, 64, 5000, &result), GL_CLAIM_OK);
	assert_int_equal(result.time, 5000);
	assert_int_equal(claim(ring, 64, 10, &result), GL_CLAIM_OK);
	assert_int_equal(result.time, 5000);
	assert_int_equal(claim(ring, 64, 5001, &result), GL_CLAIM_OK);
	assert_int_equal(result.time, 5001);
	free(ring);

	/* nor behind the run before */
	ring = start_ring(SEGMENT_SIZE * 3);
	assert_int_equal(claim(ring, 64, 1, &result), GL_CLAIM_OK);
	assert_int_equal(result.time, 1000);
	free(ring);
}

static void
test_padding_at_segment_end(void **state)
{
	GlRing	   *ring = start_ring(SEGMENT_SIZE * 3);
	GlClaim		result;
	uint32_t	hint;
	const GlRecordHeader *header;
	uint8_t		payload[RING_SIZE / 4];

	(void) state;
	/* go near the end of the segment */
	gl_ring_start(ring, SEGMENT_SIZE * 2 - 96, 1000);
	atomic_store(&ring->limit_lsn, SEGMENT_SIZE * 3);
	assert_int_equal(claim(ring, 128, 1, &result), GL_CLAIM_PADDING);
	assert_int_equal(result.lsn, SEGMENT_SIZE * 2 - 96);
	assert_int_equal(result.span, 96);
	assert_null(gl_ring_published(ring, result.lsn, &hint));
	gl_ring_publish_padding(ring, &result, &seed, 0, gl_hint(GL_SYNC_PERIODIC, false, 1));
	header = gl_ring_published(ring, result.lsn, &hint);
	assert_non_null(header);
	assert_int_equal(header->kind, GL_RECORD_PADDING);
	assert_int_equal(gl_record_check_header(header, &seed, result.lsn, RING_SIZE / 4), GL_RECORD_OK);
	gl_ring_read(ring, result.lsn + GL_RECORD_HEADER_SIZE, payload, 64);
	assert_true(gl_record_check_crc(header, &seed, result.lsn, gl_record_payload_crc(payload, 64)));
	for (int i = 0; i < 64; i++)
		assert_int_equal(payload[i], 0);

	/* the record itself begins the next segment */
	assert_int_equal(claim(ring, 128, 1, &result), GL_CLAIM_OK);
	assert_int_equal(result.lsn, SEGMENT_SIZE * 2);

	/* exactly to the end needs none, and the smallest padding is a header */
	gl_ring_start(ring, SEGMENT_SIZE * 2 - 96, 1000);
	atomic_store(&ring->limit_lsn, SEGMENT_SIZE * 3);
	assert_int_equal(claim(ring, 64, 1, &result), GL_CLAIM_OK);
	assert_int_equal(claim(ring, 64, 1, &result), GL_CLAIM_PADDING);
	assert_int_equal(result.span, 32);
	free(ring);
}

static void
test_seal(void **state)
{
	GlRing	   *ring = start_ring(SEGMENT_SIZE * 3);
	GlClaim		result;
	uint64_t	stale = gl_ring_position(ring);

	(void) state;
	assert_int_equal(gl_ring_try_claim(ring, stale, 32, 1, true, &result), GL_CLAIM_OK);
	assert_int_equal(claim(ring, 32, 1, &result), GL_CLAIM_SEALED);
	assert_int_equal(gl_ring_try_claim(ring, stale, 32, 1, false, &result), GL_CLAIM_RACE);
	assert_int_equal(gl_ring_insert_lsn(ring), SEGMENT_SIZE + 32);
	free(ring);
}

static void
test_stale_lap_is_not_published(void **state)
{
	GlRing	   *ring = start_ring(SEGMENT_SIZE * 3);
	GlClaim		result;
	uint32_t	hint;

	(void) state;
	assert_int_equal(claim(ring, 64, 1, &result), GL_CLAIM_OK);
	fill(ring, &result, 7, 8);
	gl_ring_publish(ring, result.lsn, gl_hint(GL_SYNC_BATCH, true, 123));
	assert_non_null(gl_ring_published(ring, result.lsn, &hint));
	assert_int_equal(gl_hint_mode(hint), GL_SYNC_BATCH);
	assert_true(gl_hint_waits(hint));
	/* the same slot one lap later */
	assert_null(gl_ring_published(ring, result.lsn + RING_SIZE, &hint));
	free(ring);
}

static void
test_wrap(void **state)
{
	GlRing	   *ring = start_ring(SEGMENT_SIZE * 3);
	uint8_t		out[200];
	uint8_t		in[200];
	uint64_t	lsn = SEGMENT_SIZE + RING_SIZE - 64;

	(void) state;
	for (int i = 0; i < 200; i++)
		out[i] = (uint8_t) (i + 1);
	gl_ring_write(ring, lsn, out, 200);
	gl_ring_read(ring, lsn, in, 200);
	assert_memory_equal(in, out, 200);
	gl_ring_zero(ring, lsn + 10, 180);
	gl_ring_read(ring, lsn, in, 200);
	assert_int_equal(in[9], 10);
	assert_int_equal(in[10], 0);
	assert_int_equal(in[189], 0);
	assert_int_equal(in[190], 191);
	free(ring);
}

static void
test_hints(void **state)
{
	int64_t		now = INT64_C(987654321012);

	(void) state;
	for (int64_t offset = -200000000; offset <= 200000000; offset += 12345678)
	{
		uint32_t	hint = gl_hint(GL_SYNC_GROUP, true, now + offset);

		assert_true(gl_hint_time(hint, now) == now + offset);
		assert_int_equal(gl_hint_mode(hint), GL_SYNC_GROUP);
		assert_true(gl_hint_waits(hint));
	}
	assert_false(gl_hint_waits(gl_hint(GL_SYNC_ADAPTIVE, false, now)));
}

static void
test_oldest(void **state)
{
	GlRing	   *ring = start_ring(SEGMENT_SIZE * 3);
	GlClaim		result;
	int64_t		now = 50000000;
	int64_t		record_time;

	(void) state;
	assert_true(gl_ring_oldest_us(ring, now, &record_time) == GL_NEVER);
	atomic_store(&ring->durable_us, 777);
	assert_int_equal(claim(ring, 64, 1, &result), GL_CLAIM_OK);
	/* claimed, not published: too old rather than too young */
	assert_int_equal(gl_ring_oldest_us(ring, now, &record_time), 777);
	fill(ring, &result, 1, 8);
	gl_ring_publish(ring, result.lsn, gl_hint(GL_SYNC_PERIODIC, false, now - 42));
	assert_int_equal(gl_ring_oldest_us(ring, now, &record_time), now - 42);
	assert_int_equal(record_time, result.time);
	atomic_store(&ring->durable_lsn, gl_ring_insert_lsn(ring));
	assert_true(gl_ring_oldest_us(ring, now, &record_time) == GL_NEVER);
	free(ring);
}

static void
test_undurable_distance(void **state)
{
	(void) state;
	assert_int_equal(gl_undurable_distance(4096, 4096), 0);
	assert_int_equal(gl_undurable_distance(4096, 4000), 3);
	assert_int_equal(gl_undurable_distance(UINT64_C(1) << 62, 0), GL_UNDURABLE_UNKNOWN);
}

static void
test_queue_order(void **state)
{
	GlRing	   *ring = start_ring(SEGMENT_SIZE * 3);
	uint64_t	ticket[QUEUE_SIZE + 1];

	(void) state;
	assert_true(gl_ring_queue_empty(ring));
	for (int i = 0; i < QUEUE_SIZE; i++)
		assert_true(gl_ring_queue_join(ring, &ticket[i]));
	assert_false(gl_ring_queue_join(ring, &ticket[QUEUE_SIZE]));
	assert_true(gl_ring_queue_first(ring, ticket[0]));

	/* those in the middle give up: nothing moves until the first leaves */
	gl_ring_queue_leave(ring, ticket[1]);
	gl_ring_queue_leave(ring, ticket[3]);
	assert_true(gl_ring_queue_first(ring, ticket[0]));
	assert_false(gl_ring_queue_join(ring, &ticket[QUEUE_SIZE]));
	gl_ring_queue_leave(ring, ticket[0]);
	assert_true(gl_ring_queue_first(ring, ticket[2]));
	gl_ring_queue_leave(ring, ticket[2]);
	assert_true(gl_ring_queue_first(ring, ticket[4]));
	for (int i = QUEUE_SIZE - 1; i >= 4; i--)
		gl_ring_queue_leave(ring, ticket[i]);
	assert_true(gl_ring_queue_empty(ring));

	/* slots are used again, marks of earlier rounds do not count */
	for (int round = 0; round < 100; round++)
	{
		uint64_t	mine;

		assert_true(gl_ring_queue_join(ring, &mine));
		assert_true(gl_ring_queue_first(ring, mine));
		gl_ring_queue_leave(ring, mine);
		assert_true(gl_ring_queue_empty(ring));
	}
	free(ring);
}

/* --- many producers, one consumer --- */

#define PRODUCERS	8
#define PER_PRODUCER 20000

typedef struct Producer
{
	GlRing	   *ring;
	uint32_t	id;
	uint32_t	seed;
	uint64_t	queued;
} Producer;

static _Atomic int64_t fake_clock;

static uint32_t
next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Claim as an appender does: fast path, then the queue. */
static void
produce(Producer *producer, uint64_t number, uint32_t size)
{
	GlRing	   *ring = producer->ring;
	GlClaim		result;
	GlClaimStatus status = GL_CLAIM_NO_ROOM;
	uint64_t	ticket = 0;
	bool		queued = false;

	for (;;)
	{
		/* a clock that sometimes steps back */
		int64_t		now = atomic_fetch_add(&fake_clock, 1) - (number % 7 == 0 ? 50 : 0);

		if (!queued && !gl_ring_queue_empty(ring))
			status = GL_CLAIM_NO_ROOM;
		else if (!queued || gl_ring_queue_first(ring, ticket))
			status = claim(ring, gl_record_span(size), now, &result);
		else
			status = GL_CLAIM_NO_ROOM;
		if (status == GL_CLAIM_OK)
			break;
		if (status == GL_CLAIM_PADDING)
		{
			gl_ring_publish_padding(ring, &result, &seed, 0, gl_hint(GL_SYNC_PERIODIC, false, 0));
			continue;
		}
		if (status == GL_CLAIM_RACE)
			continue;
		if (!queued && gl_ring_queue_join(ring, &ticket))
		{
			queued = true;
			producer->queued++;
		}
		else if (queued && !gl_ring_queue_first(ring, ticket) && next_random(&producer->seed) % 64 == 0)
		{
			/* give up, as a cancelled session does, and come again */
			gl_ring_queue_leave(ring, ticket);
			queued = false;
		}
		sched_yield();
	}
	fill(ring, &result, number, size);
	if (number % 97 == 0)
		sched_yield();			/* stop between claim and publish */
	gl_ring_publish(ring, result.lsn, gl_hint(GL_SYNC_BATCH, true, 0));
	if (queued)
		gl_ring_queue_leave(ring, ticket);
}

static void *
producer_main(void *arg)
{
	Producer   *producer = arg;

	for (uint32_t i = 0; i < PER_PRODUCER; i++)
	{
		uint32_t	size = next_random(&producer->seed) % 200;

		if (i % 500 == 0)
			size = RING_SIZE / 4 - GL_RECORD_HEADER_SIZE;	/* the largest */
		produce(producer, ((uint64_t) producer->id << 32) | (i + 1), size);
	}
	return NULL;
}

static void
test_many_producers(void **state)
{
	GlRing	   *ring = start_ring(UINT64_MAX / 2);
	pthread_t	threads[PRODUCERS];
	Producer	producers[PRODUCERS];
	uint64_t	last[PRODUCERS] = {0};
	uint64_t	lsn = SEGMENT_SIZE;
	uint64_t	seen = 0;
	int64_t		last_time = 0;
	uint64_t	queued = 0;
	static uint8_t payload[RING_SIZE / 4];

	(void) state;
	atomic_store(&fake_clock, 10000);
	for (uint32_t i = 0; i < PRODUCERS; i++)
	{
		producers[i] = (Producer) {.ring = ring,.id = i,.seed = i * 7919 + 1};
		assert_int_equal(pthread_create(&threads[i], NULL, producer_main, &producers[i]), 0);
	}

	while (seen < (uint64_t) PRODUCERS * PER_PRODUCER)
	{
		uint32_t	hint;
		const GlRecordHeader *header = gl_ring_published(ring, lsn, &hint);
		GlRecordHeader copy;
		uint32_t	size;

		if (header == NULL)
		{
			/* everything scanned is "durable" */
			atomic_store(&ring->durable_lsn, lsn);
			sched_yield();
			continue;
		}
		copy = *header;
		size = copy.length - GL_RECORD_HEADER_SIZE;
		assert_int_equal(gl_record_check_header(&copy, &seed, lsn, RING_SIZE / 4), GL_RECORD_OK);
		gl_ring_read(ring, lsn + GL_RECORD_HEADER_SIZE, payload, size);
		assert_true(gl_record_check_crc(&copy, &seed, lsn, gl_record_payload_crc(payload, size)));
		assert_true(copy.time >= last_time);
		last_time = copy.time;
		assert_true(lsn / SEGMENT_SIZE == (lsn + gl_record_span(size) - 1) / SEGMENT_SIZE);
		if (copy.kind == GL_RECORD_DATA)
		{
			uint32_t	id = (uint32_t) (copy.stream >> 32);

			assert_true(id < PRODUCERS);
			assert_true((copy.stream & UINT32_MAX) == last[id] + 1);
			last[id]++;
			seen++;
		}
		lsn += gl_record_span(size);
		if (seen % 16 == 0)
			atomic_store(&ring->durable_lsn, lsn);
	}
	for (int i = 0; i < PRODUCERS; i++)
	{
		pthread_join(threads[i], NULL);
		queued += producers[i].queued;
	}
	assert_int_equal(gl_ring_insert_lsn(ring), lsn);
	assert_true(gl_ring_queue_empty(ring));
	assert_true(queued > 0);	/* the ring was full at times */
	free(ring);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_before_start),
		cmocka_unit_test(test_room_and_limit),
		cmocka_unit_test(test_race_is_told),
		cmocka_unit_test(test_time_never_goes_back),
		cmocka_unit_test(test_padding_at_segment_end),
		cmocka_unit_test(test_seal),
		cmocka_unit_test(test_stale_lap_is_not_published),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_oldest),
		cmocka_unit_test(test_undurable_distance),
		cmocka_unit_test(test_queue_order),
		cmocka_unit_test(test_many_producers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
