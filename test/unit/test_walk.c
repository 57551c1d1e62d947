/*-------------------------------------------------------------------------
 *
 * test_walk.c
 *		The walk: every record once and whole, whatever lies around it.
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

static MemLog log_;
static uint8_t buffer[1 << 20] __attribute__((aligned(4096)));

static int
teardown(void **state)
{
	(void) state;
	mem_free(&log_);
	return 0;
}

static void
begin(GlWalk *walk, uint32_t buf_size, uint64_t lsn, uint64_t limit)
{
	gl_walk_init(walk, &log_.map, mem_read, &log_, buffer, buf_size, lsn, limit);
}

static void
assert_record(const GlWalkRecord *record, uint64_t lsn)
{
	static uint8_t expected[MEM_RING];

	assert_int_equal(record->lsn, lsn);
	assert_int_equal(record->next_lsn, lsn + gl_record_span(record->payload_size));
	assert_int_equal(record->header->length, record->payload_size + GL_RECORD_HEADER_SIZE);
	if (record->header->kind == GL_RECORD_DATA)
	{
		mem_payload(expected, lsn, record->payload_size);
		assert_memory_equal(record->payload, expected, record->payload_size);
	}
}

/* Walk from an LSN on; how many records until the walk ends, and how? */
static uint32_t
count_records(GlWalk *walk, GlWalkStatus *status)
{
	GlWalkRecord record;
	uint64_t	expected = walk->lsn;
	uint32_t	count = 0;

	while ((*status = gl_walk_next(walk, &record)) == GL_WALK_RECORD)
	{
		if (record.lsn != expected)
			assert_int_equal(record.lsn % MEM_SEGMENT, 0);
		assert_record(&record, record.lsn);
		expected = record.next_lsn;
		count++;
	}
	return count;
}

/* All sizes around the block and the buffer, with every buffer size. */
static void
test_sizes_and_buffers(void **state)
{
	static const uint32_t sizes[] = {
		0, 1, 31, 32, 33, 4031, 4032, 4063, 4064, 4065, 8128, 8192, 12256, 100, 65504, 0, 3
	};
	uint32_t	records = 0;

	(void) state;
	mem_start(&log_, MB, 0);
	for (int round = 0; round < 4; round++)
	{
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++, records++)
			mem_append(&log_, sizes[i], 0);
	}
	assert_true(mem_map(&log_));

	for (uint32_t blocks = 17; blocks <= 64; blocks++)
	{
		GlWalk		walk;
		GlWalkStatus status;

		begin(&walk, blocks * GL_BLOCK, MB, log_.lsn);
		assert_int_equal(count_records(&walk, &status), records);
		assert_int_equal(status, GL_WALK_END);
		assert_int_equal(walk.lsn, log_.lsn);
	}
}

static void
test_reads_each_byte_once(void **state)
{
	GlWalk		walk;
	GlWalkStatus status;

	(void) state;
	mem_start(&log_, MB, 0);
	for (int i = 0; i < 3000; i++)
		mem_append(&log_, 200, 0);
	assert_true(mem_map(&log_));
	begin(&walk, 64 * 1024, MB, log_.lsn);
	assert_int_equal(count_records(&walk, &status), 3000);
	assert_int_equal(log_.bytes_read, gl_block_ceil(log_.lsn) - MB);
}

static void
test_buffer_too_small(void **state)
{
	GlWalk		walk;
	GlWalkRecord record;
	uint64_t	first;
	uint64_t	second;

	(void) state;
	mem_start(&log_, MB, 0);
	first = mem_append(&log_, 100, 0);
	second = mem_append(&log_, 20000, 0);
	assert_true(mem_map(&log_));
	begin(&walk, 2 * GL_BLOCK, MB, log_.lsn);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_RECORD);
	assert_record(&record, first);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_BUFFER_TOO_SMALL);
	assert_int_equal(walk.lsn, second);
	assert_int_equal(walk.buf_needed, gl_block_ceil(160 + 20032));
	gl_walk_set_buffer(&walk, buffer, walk.buf_needed);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_RECORD);
	assert_record(&record, second);

	/* the same from a search */
	begin(&walk, 2 * GL_BLOCK, first, log_.lsn);
	assert_int_equal(gl_walk_resync(&walk, &record), GL_WALK_BUFFER_TOO_SMALL);
	gl_walk_set_buffer(&walk, buffer, walk.buf_needed);
	assert_int_equal(gl_walk_resync(&walk, &record), GL_WALK_RECORD);
	assert_record(&record, second);
}

/* Records across files: continuations at many places, over two runs. */
static void
test_files(void **state)
{
	uint32_t	records = 0;
	uint64_t	end;

	(void) state;
	mem_start(&log_, MB, 0);
	for (int file = 0; file < 6; file++)
	{
		for (int i = 0; i < 37; i++, records++)
			mem_append(&log_, (uint32_t) (i * 97 % 3000), 0);
		if (file < 5)
		{
			/* what the failed write left in the old file must not be read */
			uint64_t	lsn = log_.lsn;

			memset(mem_at(&log_, log_.count - 1, lsn), 0xAA, 9000);
			mem_continue(&log_, lsn);
			mem_truncate(&log_, log_.count - 2, file % 2 ? lsn : gl_block_floor(lsn));
		}
	}
	end = log_.lsn;
	mem_start(&log_, 4 * MB, end);
	for (int i = 0; i < 10; i++, records++)
		mem_append(&log_, 1000, 0);
	assert_true(mem_map(&log_));

	for (uint32_t blocks = 2; blocks <= 40; blocks++)
	{
		GlWalk		walk;
		GlWalkStatus status;

		begin(&walk, blocks * GL_BLOCK, MB, log_.lsn);
		assert_int_equal(count_records(&walk, &status), records);
		assert_int_equal(status, GL_WALK_END);
	}
}

/* Every record of the same log is found by a search, from anywhere before it. */
static void
test_resync_finds_every_record(void **state)
{
	uint64_t	lsn[100];
	uint32_t	count = 0;

	(void) state;
	mem_start(&log_, MB, 0);
	for (; count < 60; count++)
		lsn[count] = mem_append(&log_, count * 131 % 5000, 0);
	mem_continue(&log_, log_.lsn);
	for (; count < 80; count++)
		lsn[count] = mem_append(&log_, count * 131 % 5000, 0);
	mem_start(&log_, 3 * MB, log_.lsn);
	for (; count < 100; count++)
		lsn[count] = mem_append(&log_, count * 131 % 5000, 0);
	assert_true(mem_map(&log_));

	for (uint32_t i = 0; i + 1 < count; i++)
	{
		GlWalk		walk;
		GlWalkRecord record;

		begin(&walk, 2 * 4 * GL_BLOCK, lsn[i], log_.lsn);
		assert_int_equal(gl_walk_resync(&walk, &record), GL_WALK_RECORD);
		assert_record(&record, lsn[i + 1]);
		assert_int_equal(walk.lsn, record.next_lsn);
		/* and the walk goes on from there */
		if (i + 2 < count)
		{
			assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_RECORD);
			assert_record(&record, lsn[i + 2]);
		}
	}
}

/* A search goes on beyond what a short file lacks, and through later files. */
static void
test_resync_over_a_short_file(void **state)
{
	GlWalk		walk;
	GlWalkRecord record;
	uint64_t	last;

	(void) state;
	mem_start(&log_, MB, 0);
	mem_next(&log_);
	mem_next(&log_);
	last = mem_append(&log_, 100, 0);
	mem_truncate(&log_, 0, MB + 20032);
	mem_truncate(&log_, 1, 2 * MB);
	assert_false(mem_map(&log_));
	begin(&walk, 16 * GL_BLOCK, MB, log_.lsn);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_RECORD);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
	assert_int_equal(walk.check, GL_RECORD_EMPTY);
	assert_int_equal(gl_walk_resync(&walk, &record), GL_WALK_RECORD);
	assert_record(&record, last);
}

/* Damage each byte of a record in turn: it is refused, its neighbours are not. */
static void
test_each_byte_of_a_record(void **state)
{
	uint64_t	a;
	uint64_t	b;
	uint64_t	c;

	(void) state;
	mem_start(&log_, MB, 0);
	a = mem_append(&log_, 50, 0);
	b = mem_append(&log_, 100, 0);
	c = mem_append(&log_, 60, 0);
	assert_true(mem_map(&log_));
	for (uint64_t at = b; at < b + GL_RECORD_HEADER_SIZE + 100; at++)
	{
		GlWalk		walk;
		GlWalkRecord record;

		*mem_at(&log_, 0, at) ^= 0x40;
		begin(&walk, 2 * GL_BLOCK, a, log_.lsn);
		assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_RECORD);
		assert_record(&record, a);
		assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
		assert_int_equal(walk.lsn, b);
		assert_int_not_equal(walk.check, GL_RECORD_OK);
		assert_int_equal(gl_walk_resync(&walk, &record), GL_WALK_RECORD);
		assert_record(&record, c);
		*mem_at(&log_, 0, at) ^= 0x40;
	}
}

static void
test_reasons(void **state)
{
	GlWalk		walk;
	GlWalkRecord record;
	uint64_t	last;

	(void) state;
	mem_start(&log_, MB, 0);
	mem_append(&log_, 50, 0);
	last = mem_append(&log_, 4000, 0);
	assert_true(mem_map(&log_));

	begin(&walk, 2 * GL_BLOCK, log_.lsn, 2 * MB);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
	assert_int_equal(walk.check, GL_RECORD_EMPTY);

	/* a record that crosses the limit */
	begin(&walk, 2 * GL_BLOCK, last, log_.lsn - GL_GRANULE);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
	assert_int_equal(walk.check, GL_RECORD_BAD_LENGTH);
	/* or whose header does */
	begin(&walk, 2 * GL_BLOCK, last, last + 16);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
	assert_int_equal(walk.check, GL_RECORD_EMPTY);

	/* not at a granule */
	begin(&walk, 2 * GL_BLOCK, last + 1, log_.lsn);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
	assert_int_equal(walk.check, GL_RECORD_BAD_HEADER);

	/* the file ends in the record: zeros after that do not count as bytes */
	memset(mem_at(&log_, 0, last + 32), 0, 4000);
	mem_truncate(&log_, 0, last + 2000);
	assert_true(mem_map(&log_));
	begin(&walk, 2 * GL_BLOCK, last, log_.lsn);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
	assert_int_equal(walk.check, GL_RECORD_EMPTY);
	assert_int_equal(gl_walk_resync(&walk, &record), GL_WALK_END);
}

/* Lengths with a right check field that go where no record can (H9). */
static void
test_wild_lengths(void **state)
{
	static const uint32_t lengths[] = {
		0, 31, MEM_RING / 4 + 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFE0
	};

	(void) state;
	mem_start(&log_, MB, 0);
	assert_true(mem_map(&log_));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
	{
		GlRecordHeader header;
		GlWalk		walk;
		GlWalkRecord record;

		memset(&header, 0, sizeof(header));
		header.length = lengths[i];
		header.kind = GL_RECORD_DATA;
		gl_record_seal(&header, &log_.entries[0].seed, MB, gl_record_payload_crc(NULL, 0));
		memcpy(mem_at(&log_, 0, MB), &header, sizeof(header));
		begin(&walk, 2 * GL_BLOCK, MB, 2 * MB);
		assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
		assert_int_equal(walk.check, GL_RECORD_BAD_LENGTH);
	}
}

/* A record never crosses a segment's end, though the next file would answer. */
static void
test_no_record_crosses_a_segment(void **state)
{
	uint64_t	lsn = 2 * MB - 64;
	GlWalk		walk;
	GlWalkRecord record;

	(void) state;
	mem_start(&log_, MB, 0);
	mem_next(&log_);
	log_.count--;				/* write into the first file's end and beyond ... */
	log_.lsn = lsn;
	log_.file[0].data = realloc(log_.file[0].data, log_.file[0].size + 4096);
	mem_append(&log_, 64, 0);
	/* ... and carry what is beyond over to the next */
	memcpy(log_.file[1].data + GL_BLOCK, mem_at(&log_, 0, 2 * MB), 32);
	log_.count++;
	assert_true(mem_map(&log_));
	begin(&walk, 4 * GL_BLOCK, lsn, 3 * MB);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
	assert_int_equal(walk.check, GL_RECORD_BAD_LENGTH);
}

/* Nor the end of a run. */
static void
test_no_record_crosses_the_end_of_a_run(void **state)
{
	GlWalk		walk;
	GlWalkRecord record;
	uint64_t	last;

	(void) state;
	mem_start(&log_, MB, 0);
	mem_append(&log_, 64, 0);
	last = mem_append(&log_, 64, 0);
	mem_start(&log_, 3 * MB, last + 32);
	mem_append(&log_, 64, 0);
	assert_true(mem_map(&log_));
	begin(&walk, 4 * GL_BLOCK, last, 4 * MB);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
	assert_int_equal(walk.check, GL_RECORD_BAD_LENGTH);
	assert_int_equal(gl_walk_resync(&walk, &record), GL_WALK_RECORD);
	assert_record(&record, 3 * MB);
}

static void
test_gap_between_runs(void **state)
{
	GlWalk		walk;
	GlWalkRecord record;
	uint64_t	end;

	(void) state;
	mem_start(&log_, MB, 0);
	mem_append(&log_, 64, 0);
	end = log_.lsn;
	mem_append(&log_, 64, 0);	/* a ghost: valid, but beyond the run's end */
	mem_start(&log_, 3 * MB, end);
	mem_append(&log_, 64, 0);
	assert_true(mem_map(&log_));
	for (uint64_t lsn = end; lsn <= 3 * MB; lsn += 0x10000 - 32)
	{
		begin(&walk, 2 * GL_BLOCK, lsn, 4 * MB);
		assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_RECORD);
		assert_record(&record, 3 * MB);
	}
	/* a limit in the gap ends the walk */
	begin(&walk, 2 * GL_BLOCK, end, 2 * MB);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_END);
}

/* A reader at the end: the last block grows behind its back. */
static void
test_raising_the_limit(void **state)
{
	GlWalk		walk;
	GlWalkRecord record;

	(void) state;
	mem_start(&log_, MB, 0);
	assert_true(mem_map(&log_));
	begin(&walk, 4 * GL_BLOCK, MB, MB);
	for (int i = 0; i < 300; i++)
	{
		uint64_t	lsn = mem_append(&log_, (uint32_t) (i * 37 % 700), 0);

		assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_END);
		walk.limit = log_.lsn;
		assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_RECORD);
		assert_record(&record, lsn);
	}
}

static void
test_read_errors(void **state)
{
	GlWalk		walk;
	GlWalkRecord record;
	GlWalkStatus status;

	(void) state;
	mem_start(&log_, MB, 0);
	for (int i = 0; i < 100; i++)
		mem_append(&log_, 1000, 0);
	assert_true(mem_map(&log_));
	log_.error_file = 0;
	log_.error_offset = 10 * GL_BLOCK;

	begin(&walk, 4 * GL_BLOCK, MB, log_.lsn);
	/* all that can be read without the ninth block, although more is asked for */
	assert_int_equal(count_records(&walk, &status), 9 * GL_BLOCK / 1056);
	assert_int_equal(status, GL_WALK_READ_ERROR);
	assert_int_equal(walk.error, EIO);
	assert_int_equal(walk.lsn, MB + 34 * 1056);

	assert_int_equal(gl_walk_resync(&walk, &record), GL_WALK_READ_ERROR);
	assert_int_equal(walk.lsn, MB + 9 * GL_BLOCK);

	/* it passes */
	log_.error_offset = 0;
	gl_walk_seek(&walk, MB + 34 * 1056);
	assert_int_equal(count_records(&walk, &status), 100 - 34);
	assert_int_equal(status, GL_WALK_END);
}

/* A search over zeros and over random bytes takes time in proportion. */
static void
test_resync_is_linear(void **state)
{
	GlWalk		walk;
	GlWalkRecord record;
	uint64_t	random = 88172645463325252;
	clock_t		before;

	(void) state;
	mem_start(&log_, MB, 0);
	mem_append(&log_, 100, 0);
	assert_true(mem_map(&log_));

	/* 64 MB of zeros in all */
	before = clock();
	for (int i = 0; i < 64; i++)
	{
		begin(&walk, sizeof(buffer), log_.lsn, 2 * MB);
		assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
		assert_int_equal(gl_walk_resync(&walk, &record), GL_WALK_END);
		assert_int_equal(walk.lsn, log_.lsn);
		assert_int_equal(walk.nonzero_end, 0);
	}
	print_message("64 MB of zeros: %.1f ms\n", 1e3 * (double) (clock() - before) / CLOCKS_PER_SEC);

	for (uint64_t lsn = log_.lsn; lsn < 2 * MB; lsn += 8)
	{
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		memcpy(mem_at(&log_, 0, lsn), &random, 8);
	}
	before = clock();
	for (int i = 0; i < 64; i++)
	{
		begin(&walk, sizeof(buffer), log_.lsn, 2 * MB);
		assert_int_equal(gl_walk_resync(&walk, &record), GL_WALK_END);
	}
	print_message("64 MB of garbage: %.1f ms\n", 1e3 * (double) (clock() - before) / CLOCKS_PER_SEC);
	assert_true(walk.nonzero_end > 2 * MB - 8);
	assert_true((double) (clock() - before) / CLOCKS_PER_SEC < 10.0);
}

/* The last byte that is not zero, to the byte. */
static void
test_nonzero_end(void **state)
{
	GlWalk		walk;
	GlWalkRecord record;

	(void) state;
	mem_start(&log_, MB, 0);
	mem_append(&log_, 100, 0);
	assert_true(mem_map(&log_));
	for (uint64_t at = log_.lsn; at < log_.lsn + 3000; at += 61)
	{
		*mem_at(&log_, 0, at) = 1;
		begin(&walk, 2 * GL_BLOCK, log_.lsn, 2 * MB);
		assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
		assert_int_equal(gl_walk_resync(&walk, &record), GL_WALK_END);
		assert_int_equal(walk.nonzero_end, at + 1);
		*mem_at(&log_, 0, at) = 0;
	}
}

/* Payloads that are whole records of this very run, elsewhere (H22). */
static void
test_payloads_like_records(void **state)
{
	GlWalk		walk;
	GlWalkRecord record;
	GlWalkStatus status;
	uint8_t		image[8 * 160];
	uint64_t	last;

	(void) state;
	mem_start(&log_, MB, 0);
	for (int i = 0; i < 8; i++)
		mem_append(&log_, 100, 0);
	memcpy(image, mem_at(&log_, 0, MB), sizeof(image));
	for (int i = 0; i < 50; i++)
		mem_append_kind(&log_, GL_RECORD_CONTROL, image, sizeof(image), 0);
	last = mem_append(&log_, 10, 0);
	assert_true(mem_map(&log_));
	begin(&walk, 4 * GL_BLOCK, MB, log_.lsn);
	assert_int_equal(count_records(&walk, &status), 59);

	/* destroy the headers of those: a search finds none of their contents */
	for (int i = 0; i < 50; i++)
		*mem_at(&log_, 0, MB + sizeof(image) + (uint64_t) i * (sizeof(image) + 32)) ^= 1;
	begin(&walk, 4 * GL_BLOCK, MB + sizeof(image), log_.lsn);
	assert_int_equal(gl_walk_next(&walk, &record), GL_WALK_INVALID);
	assert_int_equal(gl_walk_resync(&walk, &record), GL_WALK_RECORD);
	assert_record(&record, last);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_teardown(f, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_sizes_and_buffers),
		TEST(test_reads_each_byte_once),
		TEST(test_buffer_too_small),
		TEST(test_files),
		TEST(test_resync_finds_every_record),
		TEST(test_resync_over_a_short_file),
		TEST(test_each_byte_of_a_record),
		TEST(test_reasons),
		TEST(test_wild_lengths),
		TEST(test_no_record_crosses_a_segment),
		TEST(test_no_record_crosses_the_end_of_a_run),
		TEST(test_gap_between_runs),
		TEST(test_raising_the_limit),
		TEST(test_read_errors),
		TEST(test_resync_is_linear),
		TEST(test_nonzero_end),
		TEST(test_payloads_like_records)
	};

	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
