/*-------------------------------------------------------------------------
 *
 * test_logmap.c
 *		Which file answers for what, and what is wrong with the chain.
 *
 * Each case is a table of files: what their headers say, and what is to be
 * derived.  Positions are in units of 64 kB where that makes them readable; a
 * segment has 16 such units (1 MB).
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#include "logmap.h"

#define MB			UINT64_C(0x100000)
#define MAX_FILES	8
#define LOG_ID		UINT64_C(4711)

/* One file of a case; run is epoch and nonce in one. */
typedef struct File
{
	uint32_t	number;
	uint32_t	run;
	uint64_t	first_lsn;
	uint64_t	end_before;
	uint64_t	base;			/* expected */
	uint64_t	end;			/* expected; equal to base if dead */
	int64_t		cut;			/* bytes missing of the file; -1: just what is needed */
	uint64_t	log_id;			/* 0: ours */
	uint32_t	run_before;		/* 0: the one of the file before in the table */
} File;

typedef struct Case
{
	const char *name;
	File		files[MAX_FILES];
	GlMapProblem problem;
	uint32_t	index;
	uint64_t	lsn;
} Case;

static uint64_t
nonce_of(uint32_t run)
{
	return run * UINT64_C(0x9E3779B97F4A7C15);
}

static uint32_t
build(const Case *c, GlMapEntry *entries)
{
	uint32_t	count = 0;

	while (count < MAX_FILES && c->files[count].number != 0)
	{
		const File *file = &c->files[count];
		GlSegmentHeader header;
		uint64_t	size = GL_BLOCK + MB - (gl_block_floor(file->first_lsn) % MB);

		memset(&header, 0, sizeof(header));
		header.number = file->number;
		header.first_lsn = file->first_lsn;
		header.end_before = file->end_before;
		header.segment_size = MB;
		header.ring_size = MB / 4;
		header.log_id = file->log_id != 0 ? file->log_id : LOG_ID;
		header.epoch = file->run;
		header.nonce = nonce_of(file->run);
		if (file->run_before != 0)
			header.nonce_before = nonce_of(file->run_before);
		else if (count > 0)
			header.nonce_before = nonce_of(c->files[count - 1].run);
		gl_segment_header_seal(&header);
		if (file->cut == -1)
			size = gl_segment_offset(file->first_lsn, file->end);
		else
			size -= (uint64_t) file->cut;
		gl_map_entry_from_header(&entries[count], &header, size);
		count++;
	}
	return count;
}

/* X and Y: somewhere in the middle of a segment, in the middle of a block. */
#define X	(MB + 0x85020)
#define XB	(MB + 0x85000)
#define Y	(MB + 0xA0FE0)
#define YB	(MB + 0xA0000)

#define F(number_, run_, first_, end_before_, base_, end_, ...) \
	{.number = number_, .run = run_, .first_lsn = first_, .end_before = end_before_, \
	.base = base_, .end = end_, __VA_ARGS__}

static const Case cases[] = {
	{"one file",
		{F(1, 1, MB, 0, MB, 2 * MB)},
	GL_MAP_OK, 0, 0},
	{"full files in a row",
		{F(1, 1, MB, 0, MB, 2 * MB), F(2, 1, 2 * MB, 2 * MB, 2 * MB, 3 * MB),
	F(3, 1, 3 * MB, 3 * MB, 3 * MB, 4 * MB)}, GL_MAP_OK, 0, 0},
	{"the oldest are gone",
		{F(7, 3, 9 * MB, 9 * MB, 9 * MB, 10 * MB, .run_before = 3),
	F(8, 3, 10 * MB, 10 * MB, 10 * MB, 11 * MB)}, GL_MAP_OK, 0, 0},
	{"a continuation takes over from its block on",
		{F(1, 1, MB, 0, MB, XB, .cut = -1), F(2, 1, X, X, XB, 2 * MB)},
	GL_MAP_OK, 0, 0},
	{"the oldest is a continuation: it answers from its first LSN",
		{F(2, 1, X, X, X, 2 * MB, .run_before = 1), F(3, 1, 2 * MB, 2 * MB, 2 * MB, 3 * MB)},
	GL_MAP_OK, 0, 0},
	{"two in one block: the first is dead",
		{F(1, 1, MB, 0, MB, XB, .cut = -1), F(2, 1, X, X, XB, XB), F(3, 1, X + 32, X + 32, XB, 2 * MB)},
	GL_MAP_OK, 0, 0},
	{"two in a row",
		{F(1, 1, MB, 0, MB, XB, .cut = -1), F(2, 1, X, X, XB, YB, .cut = -1), F(3, 1, Y, Y, YB, 2 * MB)},
	GL_MAP_OK, 0, 0},
	{"a continuation at once kills its predecessor",
		{F(1, 1, MB, 0, MB, MB), F(2, 1, MB, MB, MB, 2 * MB)},
	GL_MAP_OK, 0, 0},
	{"a new run after a torn tail",
		{F(1, 1, MB, 0, MB, X, .cut = -1), F(2, 2, 3 * MB, X, 3 * MB, 4 * MB)},
	GL_MAP_OK, 0, 0},
	{"a run without a record, left behind",
		{F(1, 1, MB, 0, MB, X, .cut = -1), F(2, 2, 3 * MB, X, 3 * MB, 3 * MB, .cut = -1),
	F(3, 3, 4 * MB, X, 4 * MB, 5 * MB)}, GL_MAP_OK, 0, 0},
	{"a next segment without a record, then a new run",
		{F(1, 1, MB, 0, MB, 2 * MB), F(2, 1, 2 * MB, 2 * MB, 2 * MB, 2 * MB, .cut = -1),
	F(3, 2, 4 * MB, 2 * MB, 4 * MB, 5 * MB)}, GL_MAP_OK, 0, 0},
	{"accept_end in an old file kills what lies between",
		{F(1, 1, MB, 0, MB, X, .cut = -1), F(2, 1, 2 * MB, 2 * MB, 2 * MB, 2 * MB),
			F(3, 2, 4 * MB, 2 * MB + 64, 4 * MB, 4 * MB),
	F(4, 3, 6 * MB, X, 6 * MB, 7 * MB)}, GL_MAP_OK, 0, 0},
	{"accept_end at a gap excuses the gap",
		{F(1, 1, MB, 0, MB, 2 * MB), F(3, 1, 3 * MB, 3 * MB, 3 * MB, 3 * MB),
	F(4, 2, 5 * MB, 2 * MB, 5 * MB, 6 * MB)}, GL_MAP_OK, 0, 0},
	{"but one beyond it does not",
		{F(1, 1, MB, 0, MB, 2 * MB), F(3, 1, 3 * MB, 3 * MB, 3 * MB, 3 * MB),
	F(4, 2, 5 * MB, 2 * MB + 64, 5 * MB, 6 * MB)}, GL_MAP_GAP, 1, 2 * MB},
	{"dead files need no contents",
		{F(1, 1, MB, 0, MB, X, .cut = -1), F(2, 1, 2 * MB, 2 * MB, 2 * MB, 2 * MB, .cut = MB),
	F(3, 2, 4 * MB, X, 4 * MB, 5 * MB)}, GL_MAP_OK, 0, 0},
	{"nor a chain",
		{F(1, 1, MB, 0, MB, X, .cut = -1), F(2, 1, 2 * MB, 2 * MB, 2 * MB, 2 * MB, .run_before = 99),
	F(3, 2, 4 * MB, X, 4 * MB, 5 * MB)}, GL_MAP_OK, 0, 0},

	{"a file is missing",
		{F(1, 1, MB, 0, MB, 2 * MB), F(3, 1, 3 * MB, 3 * MB, 3 * MB, 4 * MB)},
	GL_MAP_GAP, 1, 2 * MB},
	{"a continuation is missing",
		{F(1, 1, MB, 0, MB, YB, .cut = -1), F(3, 1, Y, Y, YB, 2 * MB)},
	GL_MAP_GAP, 1, YB},
	{"the first file of a run is missing",
		{F(1, 1, MB, 0, MB, 2 * MB), F(3, 2, 3 * MB + X, 3 * MB + X, 3 * MB + XB, 5 * MB, .run_before = 2)},
	GL_MAP_GAP, 1, 2 * MB},
	{"the last file of a run is missing",
		{F(1, 1, MB, 0, MB, 2 * MB), F(3, 2, 4 * MB, 2 * MB + 4096, 4 * MB, 5 * MB)},
	GL_MAP_GAP, 1, 2 * MB},
	{"the first missing file is what counts",
		{F(1, 1, MB, 0, MB, 2 * MB), F(3, 1, 3 * MB, 3 * MB, 3 * MB, 4 * MB),
	F(5, 1, 5 * MB, 5 * MB, 5 * MB, 6 * MB)}, GL_MAP_GAP, 1, 2 * MB},
	{"a file from another time",
		{F(1, 1, MB, 0, MB, 2 * MB), F(2, 1, 2 * MB, 2 * MB, 2 * MB, 3 * MB, .run_before = 9),
	F(3, 1, 3 * MB, 3 * MB, 3 * MB, 4 * MB)}, GL_MAP_CHAIN, 1, 2 * MB},
	{"space between two files of a run",
		{F(1, 1, MB, 0, MB, 2 * MB), F(2, 1, 3 * MB, 3 * MB, 3 * MB, 4 * MB)},
	GL_MAP_ORDER, 1, 2 * MB},
	{"a run ended beyond the file it ended in",
		{F(1, 1, MB, 0, MB, 2 * MB), F(2, 2, 4 * MB, 3 * MB, 4 * MB, 5 * MB)},
	GL_MAP_ORDER, 1, 2 * MB},
	{"a run begins within a segment",
		{F(1, 1, MB, 0, MB, X, .cut = -1), F(2, 2, 3 * MB + 32, X, 3 * MB + 32, 4 * MB)},
	GL_MAP_ORDER, 1, X},
	{"an older epoch later",
		{F(1, 2, MB, 0, MB, X, .cut = -1), F(2, 1, 3 * MB, X, 3 * MB, 4 * MB)},
	GL_MAP_ORDER, 1, X},
	{"one number twice",
		{F(1, 1, MB, 0, MB, 2 * MB), F(1, 1, 2 * MB, 2 * MB, 2 * MB, 3 * MB)},
	GL_MAP_ORDER, 1, 2 * MB},
	{"another log's file",
		{F(1, 1, MB, 0, MB, 2 * MB), F(2, 1, 2 * MB, 2 * MB, 2 * MB, 2 * MB, .log_id = 1),
	F(3, 1, 2 * MB, 2 * MB, 2 * MB, 3 * MB)}, GL_MAP_OTHER_LOG, 1, 2 * MB},
	{"another log's file at the end",
		{F(1, 1, MB, 0, MB, 2 * MB), F(2, 1, 2 * MB, 0, 2 * MB, 2 * MB, .log_id = 1)},
	GL_MAP_OTHER_LOG, 1, 2 * MB},
	{"cut at a block",
		{F(1, 1, MB, 0, MB, 2 * MB, .cut = 4096), F(2, 1, 2 * MB, 2 * MB, 2 * MB, 3 * MB)},
	GL_MAP_SHORT, 0, 2 * MB - 4096},
	{"cut anywhere",
		{F(1, 1, MB, 0, MB, 2 * MB, .cut = 33), F(2, 1, 2 * MB, 2 * MB, 2 * MB, 3 * MB)},
	GL_MAP_SHORT, 0, 2 * MB - 64},
	{"cut in the header",
		{F(1, 1, MB, 0, MB, 2 * MB, .cut = MB + 4096), F(2, 1, 2 * MB, 2 * MB, 2 * MB, 3 * MB)},
	GL_MAP_SHORT, 0, MB},
	{"the newest may be short",
		{F(1, 1, MB, 0, MB, 2 * MB), F(2, 1, 2 * MB, 2 * MB, 2 * MB, 3 * MB, .cut = MB)},
	GL_MAP_OK, 0, 0},
	{"a left-behind file cut into its end",
		{F(1, 1, MB, 0, MB, X, .cut = 2 * MB - X + 32), F(2, 2, 3 * MB, X, 3 * MB, 4 * MB)},
	GL_MAP_SHORT, 0, X - 32}
};

#define CASES	(sizeof(cases) / sizeof(cases[0]))

static void
test_cases(void **state)
{
	(void) state;
	for (size_t i = 0; i < CASES; i++)
	{
		const Case *c = &cases[i];
		GlMapEntry	entries[MAX_FILES];
		GlLogMap	map = {entries, build(c, entries)};
		GlMapFault	fault;
		bool		ok = gl_map_finish(&map, &fault);

		for (uint32_t f = 0; f < map.count; f++)
		{
			if (c->files[f].base == c->files[f].end)
			{
				if (gl_map_is_live(&entries[f]))
					fail_msg("%s: file %u is alive", c->name, f);
				continue;
			}
			if (entries[f].base != c->files[f].base || entries[f].end != c->files[f].end)
				fail_msg("%s: file %u answers for [%llx, %llx)", c->name, f,
						 (unsigned long long) entries[f].base,
						 (unsigned long long) entries[f].end);
		}
		if (fault.problem != c->problem || fault.index != c->index || fault.lsn != c->lsn)
			fail_msg("%s: %s in file %u at %llx", c->name, gl_map_problem_name(fault.problem),
					 fault.index, (unsigned long long) fault.lsn);
		assert_int_equal(ok, c->problem == GL_MAP_OK);

		/* beyond the fault the rest is fine, or has a fault of its own */
		if (!ok)
		{
			GlMapFault	later;

			if (!gl_map_check(&map, c->lsn + 1, &later))
				assert_true(later.lsn > c->lsn);
		}
	}
}

/* Look up every 32nd LSN, and compare with a search through all files. */
static void
test_find_agrees_with_the_definition(void **state)
{
	(void) state;
	for (size_t i = 0; i < CASES; i++)
	{
		GlMapEntry	entries[MAX_FILES];
		GlLogMap	map = {entries, build(&cases[i], entries)};
		GlMapFault	fault;

		gl_map_finish(&map, &fault);
		for (uint64_t lsn = 0; lsn < 12 * MB; lsn += 0x7E0)
		{
			uint64_t	found = lsn;
			uint32_t	index = UINT32_MAX;
			uint64_t	best = UINT64_MAX;
			uint32_t	best_index = UINT32_MAX;

			for (uint32_t f = 0; f < map.count; f++)
			{
				uint64_t	at = lsn > entries[f].base ? lsn : entries[f].base;

				if (entries[f].base < entries[f].end && at < entries[f].end && at < best)
				{
					best = at;
					best_index = f;
				}
			}
			if (best_index == UINT32_MAX)
				assert_false(gl_map_find(&map, &found, &index));
			else
			{
				assert_true(gl_map_find(&map, &found, &index));
				assert_int_equal(found, best);
				assert_int_equal(index, best_index);
			}
			assert_int_equal(gl_map_lost(&map, lsn),
							 best != lsn && lsn >= entries[0].first_lsn &&
							 lsn < entries[map.count - 1].end);
		}
	}
}

static void
test_lost(void **state)
{
	static const Case c = {"", {F(1, 1, MB, 0, MB, X, .cut = -1), F(2, 2, 3 * MB, X, 3 * MB, 4 * MB)},
	GL_MAP_OK, 0, 0};
	GlMapEntry	entries[MAX_FILES];
	GlLogMap	map = {entries, build(&c, entries)};
	GlLogMap	empty = {NULL, 0};
	GlMapFault	fault;

	(void) state;
	assert_true(gl_map_finish(&map, &fault));
	assert_false(gl_map_lost(&map, MB - 32));
	assert_false(gl_map_lost(&map, MB));
	assert_false(gl_map_lost(&map, X - 32));
	assert_true(gl_map_lost(&map, X));
	assert_true(gl_map_lost(&map, 3 * MB - 32));
	assert_false(gl_map_lost(&map, 3 * MB));
	assert_false(gl_map_lost(&map, 4 * MB - 32));
	assert_false(gl_map_lost(&map, 4 * MB));

	assert_true(gl_map_finish(&empty, &fault));
	assert_int_equal(fault.problem, GL_MAP_OK);
	assert_false(gl_map_lost(&empty, 0));
}

/* What a header cannot say must not hurt either. */
static void
test_nonsense_entries(void **state)
{
	uint64_t	random = 88172645463325252;

	(void) state;
	for (int round = 0; round < 20000; round++)
	{
		GlMapEntry	entries[MAX_FILES];
		GlLogMap	map = {entries, MAX_FILES};
		GlMapFault	fault;

		for (int i = 0; i < MAX_FILES; i++)
		{
			uint64_t	word[sizeof(GlMapEntry) / sizeof(uint64_t)];

			for (size_t w = 0; w < sizeof(word) / sizeof(word[0]); w++)
			{
				random ^= random << 13;
				random ^= random >> 7;
				random ^= random << 17;
				word[w] = (random & 0x300) == 0 ? random : random % (8 * MB);
			}
			memcpy(&entries[i], word, sizeof(word));
			entries[i].starts_run = false;
			entries[i].seed.log_id = (random & 0xC00) == 0;
			entries[i].seed.epoch = random % 3;
			if ((random & 0x1000) == 0)
				entries[i].segment_size = MB;
		}
		gl_map_finish(&map, &fault);
		for (int i = 0; i + 1 < MAX_FILES; i++)
		{
			assert_true(entries[i].end <= entries[i + 1].end);
			if (gl_map_is_live(&entries[i + 1]))
				assert_true(entries[i].end <= entries[i + 1].base);
		}
		for (uint64_t lsn = 0; lsn < 8 * MB; lsn += MB / 3)
		{
			uint64_t	found = lsn;
			uint32_t	index;

			if (gl_map_find(&map, &found, &index))
				assert_true(found >= entries[index].base && found < entries[index].end &&
							found >= lsn);
			gl_map_lost(&map, lsn);
		}
	}
}

/*
 * A number that nobody has is a missing file, unless the file after it says that
 * it follows the one before (accept_end over a file without a header).
 */
static void
test_gap_that_was_given_up(void **state)
{
	const uint64_t size = GL_SEGMENT_SIZE_MIN;

	(void) state;
	for (int says_so = 0; says_so <= 1; says_so++)
	{
		GlMapEntry	entries[2];
		GlLogMap	map = {.entries = entries,.count = 2};
		GlMapFault	fault;

		for (uint32_t i = 0; i < 2; i++)
		{
			GlSegmentHeader header = {0};

			header.segment_size = size;
			header.ring_size = GL_RING_SIZE_MIN;
			header.log_id = 1;
			header.number = i == 0 ? 1 : 3;
			header.first_lsn = i == 0 ? size : 4 * size;
			header.end_before = i == 0 ? 0 : size + 64;
			header.epoch = i + 1;
			header.nonce = i + 100;
			header.nonce_before = i == 0 ? 0 : 100;
			header.follows = i == 1 && says_so ? 1 : 0;
			gl_segment_header_seal(&header);
			gl_map_entry_from_header(&entries[i], &header, GL_BLOCK + size);
		}
		assert_int_equal(gl_map_finish(&map, &fault), says_so);
		if (!says_so)
			assert_int_equal(fault.problem, GL_MAP_GAP);
	}
}

/* Holes are accepted below an LSN: what reaches beyond it is none of them. */
static void
test_check_beyond_accepted_holes(void **state)
{
	static const Case gap = {"gap",
		{F(1, 1, MB, 0, MB, 2 * MB), F(3, 2, 5 * MB, 3 * MB, 5 * MB, 6 * MB, .run_before = 1),
		F(4, 2, 6 * MB, 6 * MB, 6 * MB, 7 * MB)},
	GL_MAP_GAP, 1, 2 * MB};
	static const Case without = {"the file that accepted it has gone",
		{F(1, 1, MB, 0, MB, 2 * MB), F(4, 2, 6 * MB, 6 * MB, 6 * MB, 7 * MB)},
	GL_MAP_GAP, 1, 2 * MB};
	static const Case cut = {"cut",
		{F(1, 1, MB, 0, MB, 2 * MB, .cut = MB / 2), F(2, 1, 2 * MB, 2 * MB, 2 * MB, 3 * MB)},
	GL_MAP_SHORT, 0, MB + MB / 2};
	static const struct
	{
		const Case *files;
		uint64_t	holes_end;
		GlMapProblem problem;
		uint64_t	lsn;
	}			asked[] = {
		{&gap, 0, GL_MAP_GAP, 2 * MB},
		{&gap, 3 * MB, GL_MAP_OK, 0},
		{&without, 0, GL_MAP_GAP, 2 * MB},
		{&without, 3 * MB, GL_MAP_GAP, 3 * MB},
		{&without, 6 * MB, GL_MAP_OK, 0},
		{&cut, MB, GL_MAP_SHORT, MB + MB / 2},
		{&cut, MB + MB / 2 + 32, GL_MAP_SHORT, MB + MB / 2 + 32},
		{&cut, 2 * MB, GL_MAP_OK, 0}
	};

	(void) state;
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
	{
		GlMapEntry	entries[MAX_FILES];
		GlLogMap	map = {entries, build(asked[i].files, entries)};
		GlMapFault	fault;

		gl_map_finish(&map, &fault);
		assert_int_equal(gl_map_check_beyond(&map, asked[i].holes_end, &fault),
						 asked[i].problem == GL_MAP_OK);
		if (fault.problem != asked[i].problem || fault.lsn != asked[i].lsn)
			fail_msg("%s, accepted up to %llx: %s at %llx", asked[i].files->name,
					 (unsigned long long) asked[i].holes_end, gl_map_problem_name(fault.problem),
					 (unsigned long long) fault.lsn);

		/* once told, it is told no more */
		if (fault.problem != GL_MAP_OK)
			assert_true(gl_map_check(&map, fault.lsn + 1, &fault));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gap_that_was_given_up),
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_check_beyond_accepted_holes),
		cmocka_unit_test(test_find_agrees_with_the_definition),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_nonsense_entries)
	};

	return cmocka_run_group_tests_name("log map", tests, NULL, NULL);
}
