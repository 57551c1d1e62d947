/*-------------------------------------------------------------------------
 *
 * logmap.c
 *		Which file holds which part of the log.
 *
 * Every file sets a bound to all files with lower numbers: the log before it
 * ends at end_before when it starts a run, at its base when it goes on with
 * one.  A file's end is the smallest of its own full end and of the bounds of
 * all later files.  Two things follow, whatever the headers say:
 *
 *	- ends never fall from one file to the next, so an LSN is found by a binary
 *	  search for the first end beyond it;
 *	- a file's base is never below the end of a file before it, so no two files
 *	  answer for the same LSN.
 *
 * A file of another log bounds nothing and answers for nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "logmap.h"

#include <string.h>

#define LSN_NONE	UINT64_MAX

static inline uint64_t
min_lsn(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline bool
is_foreign(const GlLogMap *map, const GlMapEntry *entry)
{
	return entry->seed.log_id != map->entries[0].seed.log_id;
}

/*
 * Where the file ends if no later one cuts it short.  Headers that were checked
 * have sane sizes; others make a file that answers for nothing.
 */
static inline uint64_t
full_end(const GlMapEntry *entry)
{
	if (entry->segment_size < GL_BLOCK || entry->segment_size > GL_SEGMENT_SIZE_MAX ||
		entry->segment_size % GL_BLOCK != 0 || entry->first_lsn > GL_LSN_MAX)
		return entry->base;
	return gl_segment_full_end(entry->first_lsn, entry->segment_size);
}

/* Where the log before this file ends, as far as this file is concerned. */
static inline uint64_t
bound_of(const GlLogMap *map, const GlMapEntry *entry)
{
	if (is_foreign(map, entry))
		return LSN_NONE;
	return entry->starts_run ? min_lsn(entry->end_before, entry->base) : entry->base;
}

void
gl_map_entry_from_header(GlMapEntry *entry, const GlSegmentHeader *header, uint64_t file_size)
{
	memset(entry, 0, sizeof(*entry));
	entry->number = header->number;
	entry->first_lsn = header->first_lsn;
	entry->end_before = header->end_before;
	entry->segment_size = header->segment_size;
	entry->ring_size = header->ring_size;
	entry->nonce_before = header->nonce_before;
	entry->follows = header->follows != 0 ? header->follows : header->number - 1;
	entry->seed.log_id = header->log_id;
	entry->seed.epoch = header->epoch;
	entry->seed.nonce = header->nonce;
	entry->file_size = file_size;
}

bool
gl_map_finish(GlLogMap *map, GlMapFault *fault)
{
	const GlMapEntry *before = NULL;
	uint64_t	bound = LSN_NONE;

	for (uint32_t i = 0; i < map->count; i++)
	{
		GlMapEntry *entry = &map->entries[i];

		/* where the file before is missing, its nonce tells */
		if (before != NULL && entry->number - before->number == 1)
			entry->starts_run = entry->seed.epoch != before->seed.epoch;
		else
			entry->starts_run = entry->nonce_before != entry->seed.nonce;

		/*
		 * The oldest file may be a continuation whose predecessor is gone.
		 * What its first block repeats may begin in the middle of a record
		 * then, so it answers from its first LSN on, which is a record's.
		 */
		if (before == NULL || entry->starts_run)
			entry->base = entry->first_lsn;
		else
			entry->base = gl_block_floor(entry->first_lsn);

		if (!is_foreign(map, entry))
			before = entry;
	}

	for (uint32_t i = map->count; i-- > 0;)
	{
		GlMapEntry *entry = &map->entries[i];

		if (is_foreign(map, entry))
			continue;
		entry->end = min_lsn(full_end(entry), bound);
		bound = min_lsn(bound, bound_of(map, entry));
	}

	/* dead, with the ends still in order */
	for (uint32_t i = 1; i < map->count; i++)
	{
		GlMapEntry *entry = &map->entries[i];

		if (is_foreign(map, entry))
			entry->base = entry->end = map->entries[i - 1].end;
	}

	return gl_map_check(map, 0, fault);
}

/* Is what a file says about its place at odds with the file before it? */
static bool
is_out_of_order(const GlMapEntry *before, const GlMapEntry *entry)
{
	if (entry->number <= before->number ||
		entry->first_lsn < before->first_lsn ||
		entry->seed.epoch < before->seed.epoch ||
		entry->end_before > entry->first_lsn)
		return true;

	if (entry->starts_run)
		return entry->segment_size == 0 || entry->first_lsn % entry->segment_size != 0;

	/* one run has one nonce, ring and segment size, and leaves no space */
	return entry->seed.nonce != before->seed.nonce ||
		entry->segment_size != before->segment_size ||
		entry->ring_size != before->ring_size ||
		entry->end_before != entry->first_lsn;
}

/* The first LSN that the file is too short to hold; its end if it is not. */
static uint64_t
short_from(const GlMapEntry *entry)
{
	uint64_t	lsn;

	if (entry->file_size >= gl_segment_offset(entry->first_lsn, entry->end))
		return entry->end;
	if (entry->file_size < GL_BLOCK)
		return entry->base;
	lsn = gl_block_floor(entry->first_lsn) + (entry->file_size - GL_BLOCK);
	lsn &= ~(uint64_t) (GL_GRANULE - 1);
	return lsn < entry->base ? entry->base : lsn;
}

/*
 * What is wrong between a file and the next one?  bound: where all files after
 * entry say that the log before them ends.
 */
static GlMapProblem
problem_between(const GlMapEntry *entry, const GlMapEntry *next, uint64_t bound)
{
	bool		entry_live = gl_map_is_live(entry);
	bool		next_live = gl_map_is_live(next);
	bool		is_gap = next->number > entry->number && next->number - entry->number > 1;

	/*
	 * A missing file next to a dead one was dead, too, when this file reaches
	 * as far as anything numbered below the next one has to.
	 */
	if (is_gap)
	{
		/*
		 * Nor is a file missed that had no valid header when the log was ended
		 * before it: the next one says that it follows this one.
		 */
		if (next->starts_run && next->follows == entry->number &&
			next->nonce_before == entry->seed.nonce && bound <= full_end(entry))
			return GL_MAP_OK;
		if ((entry_live && next_live) || bound > full_end(entry))
			return GL_MAP_GAP;
		return GL_MAP_OK;
	}

	if (next_live && is_out_of_order(entry, next))
		return GL_MAP_ORDER;
	if (entry_live && bound > full_end(entry))
		return GL_MAP_ORDER;
	if (entry_live && next_live && next->nonce_before != entry->seed.nonce)
		return GL_MAP_CHAIN;
	return GL_MAP_OK;
}

/*
 * The LSN to report what is wrong from lsn to end at, if it is at or beyond from;
 * else LSN_NONE.  reaching: also if it only ends beyond that, then there.
 */
static uint64_t
report_at(uint64_t lsn, uint64_t end, uint64_t from, bool reaching)
{
	if (lsn >= from)
		return lsn;
	return reaching && end > from && end != LSN_NONE ? from : LSN_NONE;
}

static bool
check(const GlLogMap *map, uint64_t from, bool reaching, GlMapFault *fault)
{
	uint64_t	bound = LSN_NONE;

	fault->problem = GL_MAP_OK;
	fault->index = 0;
	fault->lsn = LSN_NONE;

	/* from the newest on, since bounds come from there; of equals the oldest wins */
	for (uint32_t i = map->count; i-- > 0;)
	{
		const GlMapEntry *entry = &map->entries[i];
		GlMapProblem problem;
		uint64_t	lsn;

		if (is_foreign(map, entry))
		{
			if (entry->end >= from && entry->end <= fault->lsn)
			{
				fault->problem = GL_MAP_OTHER_LOG;
				fault->index = i;
				fault->lsn = entry->end;
			}
			continue;
		}

		if (i + 1 < map->count)
		{
			if (!is_foreign(map, &map->entries[i + 1]))
			{
				problem = problem_between(entry, &map->entries[i + 1], bound);
				lsn = report_at(entry->end, bound, from, reaching);
				if (problem != GL_MAP_OK && lsn != LSN_NONE && lsn <= fault->lsn)
				{
					fault->problem = problem;
					fault->index = i + 1;
					fault->lsn = lsn;
				}
			}

			if (gl_map_is_live(entry))
			{
				lsn = short_from(entry);
				lsn = lsn < entry->end ? report_at(lsn, entry->end, from, reaching) : LSN_NONE;
				if (lsn != LSN_NONE && lsn <= fault->lsn)
				{
					fault->problem = GL_MAP_SHORT;
					fault->index = i;
					fault->lsn = lsn;
				}
			}
		}

		bound = min_lsn(bound, bound_of(map, entry));
	}

	if (fault->problem == GL_MAP_OK)
		fault->lsn = 0;
	return fault->problem == GL_MAP_OK;
}

bool
gl_map_check(const GlLogMap *map, uint64_t from, GlMapFault *fault)
{
	return check(map, from, false, fault);
}

bool
gl_map_check_beyond(const GlLogMap *map, uint64_t holes_end, GlMapFault *fault)
{
	return check(map, holes_end, true, fault);
}

bool
gl_map_find(const GlLogMap *map, uint64_t *lsn, uint32_t *index)
{
	uint32_t	low = 0;
	uint32_t	high = map->count;

	/* the first file that ends beyond the LSN */
	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (map->entries[middle].end > *lsn)
			high = middle;
		else
			low = middle + 1;
	}

	while (low < map->count && !gl_map_is_live(&map->entries[low]))
		low++;
	if (low >= map->count)
		return false;

	if (*lsn < map->entries[low].base)
		*lsn = map->entries[low].base;
	*index = low;
	return true;
}

bool
gl_map_lost(const GlLogMap *map, uint64_t lsn)
{
	uint64_t	found = lsn;
	uint32_t	index;

	if (map->count == 0 ||
		lsn < map->entries[0].first_lsn ||
		lsn >= map->entries[map->count - 1].end)
		return false;
	return !gl_map_find(map, &found, &index) || found != lsn;
}

const char *
gl_map_problem_name(GlMapProblem problem)
{
	switch (problem)
	{
		case GL_MAP_OK:
			return "none";
		case GL_MAP_GAP:
			return "segment missing";
		case GL_MAP_CHAIN:
			return "segment does not follow the one before";
		case GL_MAP_ORDER:
			return "segment out of order";
		case GL_MAP_OTHER_LOG:
			return "segment of another log";
		case GL_MAP_SHORT:
			return "segment too short";
	}
	return "unknown";
}
