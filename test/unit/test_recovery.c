/*-------------------------------------------------------------------------
 *
 * test_recovery.c
 *		The end of the log, and the verdict, case by case.
 *
 * sim_recovery.c looks for cases that nobody thought of; here are those that
 * somebody did.  Each test builds a log in memory, damages it, and says what
 * recovery must find: twice, since recovery changes nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "memlog.h"
#include "recovery.h"

static MemLog log_;
static GlRecoveryResult result;
static uint8_t buffer[256 * 1024] __attribute__((aligned(4096)));

static int
teardown(void **state)
{
	(void) state;
	mem_free(&log_);
	return 0;
}

static void
recover_as(bool restored)
{
	GlRecoveryResult again;

	mem_map(&log_);
	gl_recovery_run(&log_.map, &log_.fault, restored, MEM_SEGMENT, mem_read, &log_,
					buffer, sizeof(buffer), NULL, &result);
	gl_recovery_run(&log_.map, &log_.fault, restored, MEM_SEGMENT, mem_read, &log_,
					buffer, sizeof(buffer), NULL, &again);
	assert_memory_equal(&result, &again, sizeof(result));
}

static void
recover(void)
{
	recover_as(false);
}

#define ASSERT_VERDICT(v) \
	assert_string_equal(gl_recovery_verdict_name(result.verdict), gl_recovery_verdict_name(v))

static void
assert_end(GlRecoveryVerdict verdict, uint64_t end, uint64_t next)
{
	ASSERT_VERDICT(verdict);
	assert_int_equal(result.end_lsn, end);
	assert_int_equal(result.valid_end, end);
	assert_int_equal(result.next_lsn, next);
	assert_int_equal(result.bad_lsn, 0);
	assert_int_equal(result.bad_map, GL_MAP_OK);
	assert_int_equal(result.bad_check, GL_RECORD_OK);
}

static void
assert_corrupt(uint64_t lsn, GlRecordCheck check, uint64_t valid_end)
{
	ASSERT_VERDICT(GL_RECOVERY_CORRUPT);
	assert_int_equal(result.bad_lsn, lsn);
	assert_int_equal(result.end_lsn, lsn);
	assert_int_equal(result.bad_map, GL_MAP_OK);
	assert_int_equal(result.bad_check, check);
	assert_int_equal(result.valid_end, valid_end);
}

static void
append_many(int count, uint32_t size)
{
	for (int i = 0; i < count; i++)
		mem_append(&log_, size, 0);
}

static void
damage(uint32_t index, uint64_t lsn)
{
	*mem_at(&log_, index, lsn) ^= 4;
}

static void
test_new(void **state)
{
	(void) state;
	recover();
	assert_end(GL_RECOVERY_NEW, 0, MEM_SEGMENT);
	assert_int_equal(result.last_lsn, 0);
	recover_as(true);
	assert_end(GL_RECOVERY_NEW, 0, MEM_SEGMENT);
}

/* H3: the newest file empty, or garbage. */
static void
test_first_file_without_a_record(void **state)
{
	(void) state;
	mem_start(&log_, MB, 0);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, 0, 3 * MB);

	/* header only */
	log_.file[0].size = GL_BLOCK;
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, 0, 3 * MB);

	log_.file[0].size = GL_BLOCK + MB;
	memset(mem_at(&log_, 0, MB), 0x5A, MB);
	recover();
	assert_end(GL_RECOVERY_TORN, 0, 3 * MB);
	assert_int_equal(result.bytes_behind, MB);
}

static void
test_unclean(void **state)
{
	uint64_t	last;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(10, 100);
	last = mem_append(&log_, 55, 0);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, log_.lsn, 3 * MB);
	assert_int_equal(result.records, 11);
	assert_int_equal(result.last_lsn, last);
	assert_int_equal(result.last_time, 11);

	/* the file may end right there */
	mem_truncate(&log_, 0, log_.lsn);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, log_.lsn, 3 * MB);
}

static void
test_clean(void **state)
{
	(void) state;
	mem_start(&log_, MB, 0);
	append_many(10, 100);
	mem_append_kind(&log_, GL_RECORD_CLOSE, NULL, 0, 0);
	recover();
	assert_end(GL_RECOVERY_CLEAN, log_.lsn, 2 * MB);
	assert_int_equal(result.records, 11);

	/* what follows it an earlier use of the file has left there */
	damage(0, log_.lsn + 1000);
	recover();
	assert_end(GL_RECOVERY_CLEAN, log_.lsn, 2 * MB);
	assert_int_equal(result.bytes_behind, 0);
}

/* A log that ends where its last file does. */
static void
test_full_file(void **state)
{
	(void) state;
	mem_start(&log_, MB, 0);
	mem_next(&log_);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, 2 * MB, 4 * MB);
	/* the last record's time is known even though its file was left */
	assert_int_equal(result.last_time, log_.time);
	assert_true(result.last_lsn < 2 * MB && result.last_lsn > 2 * MB - 60000);

	mem_remove(&log_, 1);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, 2 * MB, 3 * MB);
}

/* next_lsn is beyond all that may have been handed out. */
static void
test_next_lsn(void **state)
{
	(void) state;
	mem_start(&log_, MB, 0);
	while (log_.lsn < 2 * MB - MEM_RING - 32)
		mem_append_kind(&log_, GL_RECORD_DATA, NULL, 0, 0);

	/* closed: the ring */
	mem_append_kind(&log_, GL_RECORD_CLOSE, NULL, 0, 0);
	recover();
	assert_end(GL_RECOVERY_CLEAN, 2 * MB - MEM_RING, 2 * MB);
	mem_append_kind(&log_, GL_RECORD_CLOSE, NULL, 0, 0);
	recover();
	assert_end(GL_RECOVERY_CLEAN, 2 * MB - MEM_RING + 32, 3 * MB);

	/*
	 * Else the file may have been full: what a device has lost without a word may
	 * have been far more than the ring, with nothing left that shows it.
	 */
	mem_append_kind(&log_, GL_RECORD_DATA, NULL, 0, 0);
	memset(mem_at(&log_, 0, MB + 32), 0, MB - 32);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, MB + 32, 3 * MB);
	memset(mem_at(&log_, 0, MB + 32), 0x5A, MB - 32);
	recover();
	assert_end(GL_RECOVERY_TORN, MB + 32, 3 * MB);

	/* the coming run's segments are larger */
	gl_recovery_run(&log_.map, &log_.fault, false, 16 * MB, mem_read, &log_,
					buffer, sizeof(buffer), NULL, &result);
	assert_int_equal(result.next_lsn, 16 * MB);
}

/* H4: the last group torn at every 512-byte boundary, in each way. */
static void
test_torn_at_every_sector(void **state)
{
	static uint8_t before[128 * 1024];
	static uint8_t after[128 * 1024];
	uint64_t	durable;
	uint64_t	end;
	uint64_t	lsn[200];
	uint32_t	count = 0;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(20, 333);
	durable = log_.lsn;
	memcpy(before, mem_at(&log_, 0, MB), sizeof(before));
	while (count < 100)
	{
		lsn[count] = log_.lsn;
		mem_append(&log_, count * 17 % 900, (uint32_t) ((log_.lsn - durable) / GL_GRANULE));
		count++;
	}
	end = log_.lsn;
	memcpy(after, mem_at(&log_, 0, MB), sizeof(after));

	for (int way = 0; way < 3; way++)
	{
		for (uint64_t sector = gl_block_floor(durable); sector <= gl_block_ceil(end); sector += 512)
		{
			uint8_t    *at = mem_at(&log_, 0, MB);
			uint64_t	expected = durable;

			/* what is before it landed; what is behind it; all but itself */
			if (way == 0)
			{
				memcpy(at, after, sizeof(after));
				memcpy(at + (sector - MB), before + (sector - MB), sizeof(after) - (sector - MB));
			}
			else if (way == 1)
			{
				memcpy(at, before, sizeof(before));
				memcpy(at + (sector - MB), after + (sector - MB), sizeof(after) - (sector - MB));
			}
			else
			{
				memcpy(at, after, sizeof(after));
				memcpy(at + (sector - MB), before + (sector - MB), 512);
			}
			/* the last record before the first byte that is not what was written */
			for (uint32_t i = 0; i < count; i++)
			{
				uint64_t	next = i + 1 < count ? lsn[i + 1] : end;

				if (memcmp(at + (lsn[i] - MB), after + (lsn[i] - MB), next - lsn[i]) != 0)
					break;
				expected = next;
			}
			recover();
			if (result.verdict != GL_RECOVERY_TORN && result.verdict != GL_RECOVERY_UNCLEAN)
				fail_msg("way %d, sector %llx: %s", way, (unsigned long long) sector,
						 gl_recovery_verdict_name(result.verdict));
			assert_int_equal(result.end_lsn, expected);
			assert_int_equal(result.valid_end, expected);
		}
	}
}

/* H5: a hole, and a ghost behind it. */
static void
test_ghost(void **state)
{
	uint64_t	durable;
	uint64_t	ghost;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(10, 100);
	durable = log_.lsn;
	mem_append(&log_, 5000, 0);
	ghost = mem_append(&log_, 100, 5056 / GL_GRANULE);
	memset(mem_at(&log_, 0, durable), 0, ghost - durable);
	recover();
	assert_end(GL_RECOVERY_TORN, durable, 3 * MB);
	assert_int_equal(result.bytes_behind, log_.lsn - durable);
	assert_int_equal(result.records, 10);

	/* the next run leaves it behind, with or without truncation */
	mem_start(&log_, 2 * MB, durable);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, durable, 4 * MB);
	mem_append(&log_, 10, 0);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, 2 * MB + 64, 4 * MB);
	assert_int_equal(result.records, 1);
}

/* The same ghost proves a loss if it says that more was durable. */
static void
test_distance(void **state)
{
	static const struct
	{
		uint32_t	less;		/* granules short of reaching back to the hole */
		bool		unknown;
		bool		corrupt;
	}			cases[] = {
		{0, false, false}, {1, false, true}, {200, false, true}, {0, true, false}
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		uint64_t	hole;
		uint64_t	ghost;
		uint32_t	distance;

		mem_start(&log_, MB, 0);
		append_many(10, 100);
		hole = log_.lsn;
		mem_append(&log_, 10000, 0);
		distance = (uint32_t) ((log_.lsn - hole) / GL_GRANULE) - cases[i].less;
		if (cases[i].unknown)
			distance = GL_UNDURABLE_UNKNOWN;
		ghost = mem_append(&log_, 100, distance);
		damage(0, hole + 5000);
		recover();
		if (cases[i].corrupt)
		{
			assert_corrupt(hole, GL_RECORD_BAD_CRC, log_.lsn);
			assert_int_equal(result.bad_index, 0);
			assert_int_equal(result.records, 10);
			assert_true(result.last_lsn < hole);
		}
		else
			assert_end(GL_RECOVERY_TORN, hole, 3 * MB);
		assert_int_equal(ghost + 160, log_.lsn);
		mem_free(&log_);
	}
}

/* So does one that lies further behind the hole than the ring is large. */
static void
test_further_than_the_ring(void **state)
{
	(void) state;
	for (int beyond = 0; beyond < 2; beyond++)
	{
		for (int known = 0; known < 2; known++)
		{
			uint64_t	hole;
			uint64_t	last;

			mem_start(&log_, MB, 0);
			append_many(10, 100);
			hole = log_.lsn;
			mem_append(&log_, 0, 0);
			last = hole + MEM_RING - 32 + 32 * beyond;
			/* all in between was lost, too */
			log_.lsn = last;
			mem_append_kind(&log_, GL_RECORD_DATA, NULL, 0,
							known ? (uint32_t) ((last - MB) / GL_GRANULE) : GL_UNDURABLE_UNKNOWN);
			memset(mem_at(&log_, 0, hole), 0, last - hole);
			recover();
			if (beyond && known)
				assert_corrupt(hole, GL_RECORD_EMPTY, log_.lsn);
			else
				assert_end(GL_RECOVERY_TORN, hole, 3 * MB);
			mem_free(&log_);
		}
	}
}

/* A distance that goes back beyond the beginning of all logs. */
static void
test_absurd_distance(void **state)
{
	uint64_t	hole;

	(void) state;
	mem_start(&log_, MB, 0);
	hole = mem_append(&log_, 100, 0);
	mem_append(&log_, 100, GL_UNDURABLE_UNKNOWN - 1);
	damage(0, hole);
	recover();
	assert_end(GL_RECOVERY_TORN, 0, 3 * MB);
}

/* H6: a file full of an older use's records, of this run and of others. */
static void
test_recycled(void **state)
{
	static uint8_t old[MB];
	uint64_t	durable;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(3000, 200);
	memcpy(old, mem_at(&log_, 0, MB), MB);
	for (int run = 0; run < 2; run++)
	{
		for (uint32_t records = 0; records < 12; records++)
		{
			mem_free(&log_);
			mem_start(&log_, MB, 0);
			mem_next(&log_);
			if (run == 1)
				mem_start(&log_, 3 * MB, 2 * MB);
			memcpy(mem_newest(&log_)->data + GL_BLOCK, old, MB);
			durable = records > 0 || run == 0 ? log_.lsn : 2 * MB;
			for (uint32_t i = 0; i < records; i++)
				mem_append(&log_, 97 * i, 0);
			if (records > 0)
				durable = log_.lsn;
			recover();
			assert_end(GL_RECOVERY_TORN, durable, run == 1 ? 5 * MB : 4 * MB);
			/* the same with the rest of the last block zero-filled */
			memset(mem_at(&log_, log_.count - 1, log_.lsn), 0,
				   gl_block_ceil(log_.lsn) - log_.lsn);
			recover();
			assert_end(GL_RECOVERY_TORN, durable, run == 1 ? 5 * MB : 4 * MB);
		}
	}
}

/* The same bytes under the same LSN and epoch, but of a clone of the log. */
static void
test_nonce_of_a_clone(void **state)
{
	uint64_t	end;
	uint64_t	tail;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(10, 100);
	end = log_.lsn;
	append_many(10, 100);
	tail = log_.lsn;
	mem_newest(&log_)->header.nonce ^= 1;
	log_.lsn = MB;
	log_.time = 0;
	append_many(10, 100);
	assert_int_equal(log_.lsn, end);
	recover();
	assert_end(GL_RECOVERY_TORN, end, 3 * MB);
	assert_true(result.bytes_behind <= tail - end && result.bytes_behind > tail - end - 32);
}

/* H7: each record of an acknowledged log damaged in turn. */
static void
test_flipped_bit(void **state)
{
	uint64_t	lsn[50];

	(void) state;
	mem_start(&log_, MB, 0);
	for (int i = 0; i < 50; i++)
		lsn[i] = mem_append(&log_, (uint32_t) i * 31 % 1500, 0);
	for (int i = 0; i < 49; i++)
	{
		damage(0, lsn[i] + 2);
		recover();
		assert_corrupt(lsn[i], GL_RECORD_BAD_HEADER, log_.lsn);
		assert_int_equal(result.records, i);
		damage(0, lsn[i] + 2);
	}
	/* nothing shows that the last one was acknowledged */
	damage(0, lsn[49] + 2);
	recover();
	assert_end(GL_RECOVERY_TORN, lsn[49], 3 * MB);
}

/* A continuation proves all before it, its predecessor's bytes included. */
static void
test_continuation(void **state)
{
	uint64_t	in_first;
	uint64_t	turn;
	uint64_t	first_of_second;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(20, 1000);
	in_first = mem_append(&log_, 1000, 0);
	append_many(3, 1000);
	turn = log_.lsn;
	assert_int_not_equal(turn % GL_BLOCK, 0);

	/* a write that failed, and landed nevertheless */
	append_many(5, 1000);
	mem_continue(&log_, turn);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, turn, 3 * MB);
	assert_int_equal(result.records, 24);

	first_of_second = mem_append(&log_, 1000, 0);
	mem_append(&log_, 1000, 0);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, log_.lsn, 3 * MB);
	assert_int_equal(result.records, 26);

	/* the whole last group lost: back to the turn, never to the old file */
	memset(mem_at(&log_, 1, turn), 0, log_.lsn - turn);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, turn, 3 * MB);
	assert_int_equal(first_of_second, turn);

	damage(0, in_first + 40);
	recover();
	assert_corrupt(in_first, GL_RECORD_BAD_CRC, turn);
	assert_int_equal(result.bad_index, 0);
	damage(0, in_first + 40);

	/* the bytes that the second file repeats */
	damage(1, turn - 40);
	recover();
	ASSERT_VERDICT(GL_RECOVERY_CORRUPT);
	assert_true(result.bad_lsn < turn);
	damage(1, turn - 40);

	/* those under them do not matter */
	damage(0, turn - 40);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, turn, 3 * MB);
}

static void
test_continuations_and_a_missing_start(void **state)
{
	uint64_t	turn;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(20, 1000);
	turn = log_.lsn;
	mem_continue(&log_, turn);
	append_many(20, 1000);
	/* the oldest file was given back: the walk begins at the first LSN */
	mem_remove(&log_, 0);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, log_.lsn, 3 * MB);
	assert_int_equal(result.records, 20);
}

static void
test_runs_without_a_record(void **state)
{
	uint64_t	end;
	int64_t		time;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(100, 1000);
	end = log_.lsn;
	time = log_.time;
	mem_truncate(&log_, 0, end);
	for (int run = 1; run < 6; run++)
	{
		/* each start goes beyond what the last run may have handed out */
		recover();
		assert_end(GL_RECOVERY_UNCLEAN, end, (uint64_t) (2 * run + 1) * MB);
		assert_int_equal(result.last_time, time);
		assert_int_equal(result.last_lsn, end - 1056);
		assert_int_equal(result.records, 100);
		mem_start(&log_, result.next_lsn, result.end_lsn);
		if (run % 2)
			mem_newest(&log_)->size = GL_BLOCK;
	}
	mem_newest(&log_)->size = GL_BLOCK + MB;
	mem_append(&log_, 10, 0);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, 11 * MB + 64, 13 * MB);
	assert_int_equal(result.records, 1);
}

/* A run whose first write failed, and the next one too. */
static void
test_run_continued_before_its_first_record(void **state)
{
	uint64_t	end;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(100, 1000);
	end = log_.lsn;
	mem_start(&log_, 2 * MB, end);
	mem_continue(&log_, 2 * MB);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, end, 4 * MB);
	assert_int_equal(result.last_lsn, end - 1056);
	mem_continue(&log_, 2 * MB);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, end, 4 * MB);
	mem_append(&log_, 100, 0);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, 2 * MB + 160, 4 * MB);

	/* but a file that continues a run with records ends where it begins */
	mem_continue(&log_, log_.lsn);
	mem_continue(&log_, log_.lsn);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, 2 * MB + 160, 4 * MB);
}

/* The first record of a run is lost, but not the second. */
static void
test_lost_first_record(void **state)
{
	uint64_t	end;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(3, 100);
	end = log_.lsn;
	mem_start(&log_, 2 * MB, end);
	mem_append(&log_, 100, 0);
	mem_append(&log_, 100, 160 / GL_GRANULE);
	damage(1, 2 * MB + 50);
	recover();
	assert_end(GL_RECOVERY_TORN, end, 4 * MB);
	assert_int_equal(result.bytes_behind, 320);
	mem_append(&log_, 100, 0);
	recover();
	assert_corrupt(2 * MB, GL_RECORD_BAD_CRC, log_.lsn);
}

/* H8 and the other faults of the map. */
static void
test_map_faults(void **state)
{
	(void) state;
	mem_start(&log_, MB, 0);
	for (int i = 0; i < 4; i++)
		mem_next(&log_);
	append_many(10, 100);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, log_.lsn, 7 * MB);

	/* cut at a record, with both its neighbours whole */
	mem_truncate(&log_, 1, 2 * MB + 20032);
	recover();
	ASSERT_VERDICT(GL_RECOVERY_CORRUPT);
	assert_int_equal(result.bad_map, GL_MAP_SHORT);
	assert_int_equal(result.bad_lsn, 2 * MB + 20032);
	assert_int_equal(result.end_lsn, 2 * MB + 20032);
	assert_int_equal(result.bad_index, 1);
	assert_int_equal(result.valid_end, log_.lsn);
	/* the newest file may have held more than can be seen: been full, and the ring */
	assert_int_equal(result.next_lsn, 7 * MB);
	assert_int_equal(result.last_lsn, 2 * MB);
	assert_int_equal(result.records, 1);

	/* cut within a record: the log ends before it */
	mem_truncate(&log_, 1, 2 * MB + 3 * 20032 - 500);
	recover();
	assert_int_equal(result.bad_map, GL_MAP_SHORT);
	assert_int_equal(result.bad_lsn, 2 * MB + 2 * 20032);
	assert_int_equal(result.end_lsn, 2 * MB + 2 * 20032);
	assert_int_equal(result.records, 2);

	/* within the first one: before the file */
	mem_truncate(&log_, 1, 2 * MB + 500);
	recover();
	assert_int_equal(result.bad_lsn, 2 * MB);

	mem_remove(&log_, 1);
	recover();
	ASSERT_VERDICT(GL_RECOVERY_CORRUPT);
	assert_int_equal(result.bad_map, GL_MAP_GAP);
	assert_int_equal(result.bad_lsn, 2 * MB);
	assert_int_equal(result.bad_index, 1);

	/* accept_end at the fault: a new run that ends the log there */
	{
		uint64_t	next = result.next_lsn;

		mem_start(&log_, next, 2 * MB);
		/* mem_add counts files; the log counts numbers */
		mem_newest(&log_)->header.number = 6;
		recover();
		assert_end(GL_RECOVERY_UNCLEAN, 2 * MB, next + 2 * MB);
		mem_append(&log_, 10, 0);
		recover();
		assert_end(GL_RECOVERY_UNCLEAN, next + 64, next + 2 * MB);
	}
}

static void
test_lowest_fault_wins(void **state)
{
	uint64_t	hole;

	(void) state;
	mem_start(&log_, MB, 0);
	mem_next(&log_);
	mem_next(&log_);
	append_many(10, 100);
	hole = mem_append(&log_, 100, 0);
	mem_append(&log_, 100, 0);
	damage(2, hole);
	recover();
	assert_corrupt(hole, GL_RECORD_BAD_HEADER, log_.lsn);
	mem_truncate(&log_, 1, 2 * MB + 4096);
	recover();
	assert_int_equal(result.bad_map, GL_MAP_SHORT);
	assert_int_equal(result.bad_lsn, 2 * MB);
}

static void
test_accept_end_within_a_file(void **state)
{
	uint64_t	hole;
	uint64_t	next;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(10, 100);
	hole = mem_append(&log_, 100, 0);
	mem_next(&log_);
	append_many(10, 100);
	damage(0, hole);
	/* recovery does not read old files; but once told, it holds to it */
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, log_.lsn, 4 * MB);
	next = result.next_lsn;
	mem_start(&log_, next, hole);
	recover();
	assert_end(GL_RECOVERY_UNCLEAN, hole, next + 2 * MB);
	assert_int_equal(result.records, 10);
	assert_int_equal(result.last_lsn, hole - 160);
}

static void
test_read_error(void **state)
{
	(void) state;
	mem_start(&log_, MB, 0);
	append_many(400, 1000);
	log_.error_file = 0;
	log_.error_offset = GL_BLOCK + 0x20000;
	recover();
	ASSERT_VERDICT(GL_RECOVERY_READ_ERROR);
	assert_int_equal(result.error, EIO);
	assert_int_equal(result.bad_index, 0);
	assert_true(result.bad_lsn <= MB + 0x20000 && result.bad_lsn > MB + 0x20000 - 1056);

	/* in the zeros behind the end: it might have been a record */
	log_.error_offset = GL_BLOCK + 0xF0000;
	recover();
	ASSERT_VERDICT(GL_RECOVERY_READ_ERROR);
	assert_int_equal(result.bad_lsn, MB + 0xF0000);
}

static void
test_buffer_too_small(void **state)
{
	(void) state;
	mem_start(&log_, MB, 0);
	mem_append(&log_, 100, 0);
	mem_append(&log_, 50000, 0);
	mem_map(&log_);
	gl_recovery_run(&log_.map, &log_.fault, false, MEM_SEGMENT, mem_read, &log_,
					buffer, 2 * GL_BLOCK, NULL, &result);
	ASSERT_VERDICT(GL_RECOVERY_BUFFER_TOO_SMALL);
	gl_recovery_run(&log_.map, &log_.fault, false, MEM_SEGMENT, mem_read, &log_,
					buffer, result.buf_needed, NULL, &result);
	assert_end(GL_RECOVERY_UNCLEAN, log_.lsn, 3 * MB);
}

static uint64_t progress_done;
static uint64_t progress_total;

static void
progress(void *arg, uint64_t done, uint64_t total)
{
	(void) arg;
	assert_true(done >= progress_done);
	assert_true(done <= total);
	progress_done = done;
	progress_total = total;
}

static void
test_progress(void **state)
{
	(void) state;
	mem_start(&log_, MB, 0);
	append_many(10, 100);
	mem_map(&log_);
	gl_recovery_run(&log_.map, &log_.fault, false, MEM_SEGMENT, mem_read, &log_,
					buffer, sizeof(buffer), progress, &result);
	assert_int_equal(progress_done, MB);
	assert_int_equal(progress_total, MB);
}

/* A base backup: files missing, cut, and with holes; nothing is refused. */
static void
test_restored(void **state)
{
	uint64_t	hole;
	uint64_t	after_hole;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(10, 100);
	hole = mem_append(&log_, 100, 0);
	after_hole = mem_append(&log_, 100, 0);
	damage(0, hole);
	recover_as(true);
	assert_end(GL_RECOVERY_UNCLEAN, log_.lsn, 3 * MB);
	assert_int_equal(result.holes, 1);
	assert_int_equal(result.holes_end, after_hole);
	assert_int_equal(result.records, 11);
	damage(0, hole);

	/* a whole log has no holes, over files, continuations and runs */
	mem_next(&log_);
	append_many(50, 100);
	mem_continue(&log_, log_.lsn);
	append_many(10, 100);
	mem_start(&log_, 4 * MB, log_.lsn);
	append_many(10, 100);
	mem_start(&log_, 6 * MB, log_.lsn);
	mem_start(&log_, 8 * MB, log_.file[4].header.end_before);
	append_many(10, 100);
	recover_as(true);
	assert_end(GL_RECOVERY_UNCLEAN, log_.lsn, 10 * MB);
	assert_int_equal(result.holes, 0);
	assert_int_equal(result.holes_end, 0);

	/* the run in the middle was copied short, the newest one not at all */
	mem_truncate(&log_, 3, 4 * MB + 160);
	mem_truncate(&log_, 5, 8 * MB);
	recover_as(true);
	assert_end(GL_RECOVERY_UNCLEAN, 4 * MB + 160, 10 * MB);
	assert_int_equal(result.holes, 0);

	/* a missing file with records on both sides */
	mem_remove(&log_, 1);
	recover_as(true);
	assert_int_equal(result.holes, 1);
	assert_true(result.holes_end > 2 * MB && result.holes_end < 3 * MB);
	assert_end(GL_RECOVERY_UNCLEAN, 4 * MB + 160, 10 * MB);
	assert_int_equal(log_.fault.problem, GL_MAP_GAP);
	/* whoever noted holes_end is not told again */
	mem_start(&log_, result.next_lsn, result.end_lsn);
	mem_newest(&log_)->header.number = 7;
	assert_false(mem_map(&log_));
	assert_true(gl_map_check(&log_.map, result.holes_end, &log_.fault));

	/* a file of another log is no hole */
	log_.file[1].header.log_id ^= 1;
	recover_as(true);
	ASSERT_VERDICT(GL_RECOVERY_CORRUPT);
	assert_int_equal(result.bad_map, GL_MAP_OTHER_LOG);
}

static void
test_restored_tail(void **state)
{
	uint64_t	end;

	(void) state;
	mem_start(&log_, MB, 0);
	append_many(10, 100);
	end = log_.lsn;
	append_many(1, 5000);
	damage(0, end + 3000);
	recover_as(true);
	assert_end(GL_RECOVERY_TORN, end, 3 * MB);
	assert_int_equal(result.holes, 0);
	assert_true(result.bytes_behind > 4000);

	mem_free(&log_);
	mem_start(&log_, MB, 0);
	append_many(10, 100);
	mem_append_kind(&log_, GL_RECORD_CLOSE, NULL, 0, 0);
	recover_as(true);
	assert_end(GL_RECOVERY_CLEAN, log_.lsn, 2 * MB);
}

/* Random damage of every kind: whatever it says, it says it of true records. */
static void
test_random_damage(void **state)
{
	uint64_t	random = 88172645463325252;

	(void) state;
	for (int round = 0; round < 300; round++)
	{
		mem_start(&log_, MB, 0);
		append_many(200, 500);
		mem_continue(&log_, log_.lsn);
		append_many(100, 900);
		mem_start(&log_, 2 * MB, log_.lsn);
		append_many(100, 700);
		for (int hit = 0; hit < 1 + round % 7; hit++)
		{
			uint32_t	index;
			uint64_t	offset;

			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			index = (uint32_t) (random % log_.count);
			offset = GL_BLOCK + (random >> 8) % (200 * 1024);
			memset(log_.file[index].data + offset, (int) (random >> 40), (random >> 48) % 3000);
		}
		recover();
		assert_true(result.end_lsn <= log_.lsn);
		assert_true(result.next_lsn >= 3 * MB);
		recover_as(true);
		assert_int_not_equal(result.verdict, GL_RECOVERY_CORRUPT);
		mem_free(&log_);
	}
}

/* How fast?  Said, not judged: machines differ. */
static void
test_speed(void **state)
{
	static const uint32_t sizes[] = {96, 1000, 16000};

	(void) state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		clock_t		before;
		double		seconds;

		mem_start(&log_, MB, 0);
		while (log_.lsn + 20000 < 2 * MB)
			mem_append(&log_, sizes[i], 0);
		mem_map(&log_);
		before = clock();
		for (int round = 0; round < 64; round++)
			gl_recovery_run(&log_.map, &log_.fault, false, MEM_SEGMENT, mem_read, &log_,
							buffer, sizeof(buffer), NULL, &result);
		seconds = (double) (clock() - before) / CLOCKS_PER_SEC;
		print_message("payloads of %u bytes: %.2f GB/s\n", sizes[i],
					  64.0 * (double) MB / seconds / 1e9);
		assert_int_equal(result.end_lsn, log_.lsn);
		mem_free(&log_);
	}
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_teardown(f, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_new),
		TEST(test_first_file_without_a_record),
		TEST(test_unclean),
		TEST(test_clean),
		TEST(test_full_file),
		TEST(test_next_lsn),
		TEST(test_torn_at_every_sector),
		TEST(test_ghost),
		TEST(test_distance),
		TEST(test_further_than_the_ring),
		TEST(test_absurd_distance),
		TEST(test_recycled),
		TEST(test_nonce_of_a_clone),
		TEST(test_flipped_bit),
		TEST(test_continuation),
		TEST(test_continuations_and_a_missing_start),
		TEST(test_runs_without_a_record),
		TEST(test_run_continued_before_its_first_record),
		TEST(test_lost_first_record),
		TEST(test_map_faults),
		TEST(test_lowest_fault_wins),
		TEST(test_accept_end_within_a_file),
		TEST(test_read_error),
		TEST(test_buffer_too_small),
		TEST(test_progress),
		TEST(test_restored),
		TEST(test_restored_tail),
		TEST(test_random_damage),
		TEST(test_speed)
	};

	return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
