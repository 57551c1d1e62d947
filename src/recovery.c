/*-------------------------------------------------------------------------
 *
 * recovery.c
 *		Find the end of the log, and say what it means.
 *
 * What is walked is the newest file together with the files of the same run
 * that it continues within its segment.  All before that is known to be durable
 * and is left to the map's checks: a file takes over only when everything before
 * its first LSN is durable.
 *
 * The first invalid record X is followed by a search to the end of the newest
 * file.  What may follow a torn tail:
 *
 *	- zeros, or whatever an earlier use of the file left behind.  Its seed or
 *	  its LSNs were others, so nothing of it passes for a record;
 *	- ghosts: whole records of the groups in flight.  Each was claimed when the
 *	  log was durable up to X at most: so its undurable distance reaches back to
 *	  X or further, and it ends within the ring counted from X.
 *
 * A record that says otherwise proves that X had been durable.  One that was
 * claimed under fsync = off (GL_UNDURABLE_UNKNOWN) proves nothing at all: what
 * was called durable then was not.
 *
 * The newest file may have no record.  When it begins a run, the log ends where
 * that run found it to end (end_before): what lies between was never in the
 * log.  Yet the run may have handed out LSNs up to its first LSN + its ring, so
 * next_lsn goes beyond them.  Only then the segment before is read, too, for the
 * last record and the time; it is not judged, it was when the run began.
 *
 *-------------------------------------------------------------------------
 */
#include "recovery.h"

#include <string.h>

#define PROGRESS_STEP	(UINT64_C(4) << 20)

/* The whole of one recovery: the walk, and what it found so far. */
typedef struct Scan
{
	const GlLogMap *map;
	GlWalkRead	read;
	void	   *arg;
	GlRecoveryProgress progress;
	uint64_t	bytes_done;
	uint64_t	bytes_total;
	uint64_t	bytes_reported;

	GlWalk		walk;
	GlRecoveryResult *result;

	uint64_t	end;			/* after the last valid record; 0 if none */
	uint64_t	behind_end;		/* of the last one behind the end of the log */
	uint8_t		last_kind;		/* of that record */
} Scan;

static inline uint64_t
max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Read for the walk, counting. */
static int64_t
counting_read(void *arg, uint32_t index, uint64_t offset, void *buf, uint32_t size)
{
	Scan	   *scan = arg;
	int64_t		got = scan->read(scan->arg, index, offset, buf, size);

	if (got > 0)
		scan->bytes_done += (uint64_t) got;
	if (scan->progress != NULL && scan->bytes_done - scan->bytes_reported >= PROGRESS_STEP)
	{
		scan->bytes_reported = scan->bytes_done;
		scan->progress(scan->arg, scan->bytes_done, max_u64(scan->bytes_done, scan->bytes_total));
	}
	return got;
}

/* Note a valid record; one before the end of the log, or a ghost after it. */
static void
note_record(Scan *scan, const GlWalkRecord *record, bool before_end)
{
	GlRecoveryResult *result = scan->result;

	scan->end = record->next_lsn;
	scan->last_kind = record->header->kind;
	if (record->header->time > result->last_time)
		result->last_time = record->header->time;
	if (before_end)
	{
		result->records++;
		result->last_lsn = record->lsn;
	}
	else
		scan->behind_end = max_u64(scan->behind_end, record->next_lsn);
}

/* Did the walk fail?  Says how in the result. */
static bool
note_failure(Scan *scan, GlWalkStatus status)
{
	GlRecoveryResult *result = scan->result;

	if (status == GL_WALK_BUFFER_TOO_SMALL)
	{
		result->verdict = GL_RECOVERY_BUFFER_TOO_SMALL;
		result->buf_needed = scan->walk.buf_needed;
		return true;
	}
	if (status == GL_WALK_READ_ERROR)
	{
		result->verdict = GL_RECOVERY_READ_ERROR;
		result->error = scan->walk.error;
		result->bad_lsn = scan->walk.lsn;
		result->bad_index = scan->walk.index;
		return true;
	}
	return false;
}

/* The live file before this one; false if there is none. */
static bool
live_before(const GlLogMap *map, uint32_t *index)
{
	for (uint32_t i = *index; i-- > 0;)
	{
		if (gl_map_is_live(&map->entries[i]))
		{
			*index = i;
			return true;
		}
	}
	return false;
}

/*
 * The first of the files that hold the same segment of the same run as this
 * one, and the LSN to begin at: a record's, not the middle of one that a
 * continuation's first block repeats.
 */
static uint32_t
segment_begin(const GlLogMap *map, uint32_t index, uint64_t *lsn)
{
	const GlMapEntry *entry;
	uint32_t	before = index;

	for (;;)
	{
		const GlMapEntry *candidate;

		entry = &map->entries[index];
		if (entry->starts_run || !live_before(map, &before))
			break;
		candidate = &map->entries[before];
		if (candidate->end != entry->base || entry->segment_size == 0 ||
			entry->base % entry->segment_size == 0)
			break;
		index = before;
	}

	if (entry->segment_size != 0 && entry->base % entry->segment_size == 0)
		*lsn = entry->base;
	else
		*lsn = entry->first_lsn;
	return index;
}

/*
 * Where does the log end if nothing was written at lsn, where the file at index
 * begins?  There, unless the run begins there: perhaps with another file, which
 * this one continued at once because its first write failed.
 */
static uint64_t
end_before_run(const GlLogMap *map, uint32_t index, uint64_t lsn)
{
	const GlMapEntry *entry = &map->entries[index];

	while (!entry->starts_run && index > 0 && !gl_map_is_live(entry - 1))
	{
		index--;
		entry--;
	}
	if (entry->starts_run && entry->first_lsn == lsn)
		return entry->end_before;
	return lsn;
}

/* Does a valid record beyond X show that X was durable? */
static bool
proves_durable(const GlWalkRecord *record, uint64_t x, uint64_t ring_size)
{
	uint64_t	distance = (uint64_t) record->header->undurable * GL_GRANULE;

	if (record->header->undurable == GL_UNDURABLE_UNKNOWN)
		return false;

	/* the log was durable up to record->lsn - distance when it was claimed */
	if (distance < record->lsn && record->lsn - distance > x)
		return true;

	/* a claim ends within the ring, counted from the durable end */
	return record->next_lsn - x > ring_size;
}

static void
set_next_lsn(Scan *scan, const GlMapEntry *newest, uint64_t next_segment_size)
{
	GlRecoveryResult *result = scan->result;
	uint64_t	ring_size = 0;
	uint64_t	used;

	for (uint32_t i = 0; i < scan->map->count; i++)
	{
		const GlMapEntry *entry = &scan->map->entries[i];

		if (entry->seed.epoch == newest->seed.epoch)
			ring_size = max_u64(ring_size, entry->ring_size);
	}

	/* Whole records behind a torn end had their LSNs, too. */
	used = max_u64(max_u64(result->valid_end, scan->behind_end), newest->first_lsn);

	/* Unless it was closed, the file may have held more than can be seen. */
	if (result->verdict != GL_RECOVERY_CLEAN && newest->segment_size != 0)
		used = max_u64(used, gl_segment_full_end(newest->first_lsn, newest->segment_size));
	used += ring_size;
	result->next_lsn = (used + next_segment_size - 1) / next_segment_size * next_segment_size;
	result->next_lsn = max_u64(result->next_lsn, next_segment_size);
}

/* CLEAN, UNCLEAN or TORN: what precedes and follows the end at x? */
static void
judge_tail(Scan *scan, uint64_t x, bool is_closed)
{
	GlRecoveryResult *result = scan->result;

	/*
	 * After a close record nothing was written: what follows was left by an
	 * earlier use of the file.
	 */
	if (is_closed)
		result->verdict = GL_RECOVERY_CLEAN;
	else if (scan->walk.nonzero_end > x)
	{
		result->verdict = GL_RECOVERY_TORN;
		result->bytes_behind = scan->walk.nonzero_end - x;
	}
	else
		result->verdict = GL_RECOVERY_UNCLEAN;
}

/*
 * Read the segment up to an LSN within or at the end of the file at index, for
 * its last record and time, to the first invalid record or over all that are.
 * *end: where the log ends with that.  False on failure.
 */
static bool
scan_segment(Scan *scan, uint32_t index, uint64_t limit, bool over_invalid, uint64_t *end)
{
	GlWalkRecord record;
	GlWalkStatus status;
	uint64_t	begin;

	index = segment_begin(scan->map, index, &begin);
	if (begin >= limit)
	{
		/* only what a continuation repeats of files that are gone */
		begin = scan->map->entries[index].base;
		over_invalid = true;
	}
	gl_walk_seek(&scan->walk, begin);
	scan->walk.limit = limit;
	scan->bytes_total += limit - begin;
	*end = end_before_run(scan->map, index, begin);

	for (;;)
	{
		status = gl_walk_next(&scan->walk, &record);
		if (status == GL_WALK_INVALID && over_invalid)
			status = gl_walk_resync(&scan->walk, &record);
		if (status != GL_WALK_RECORD)
			return !note_failure(scan, status);
		note_record(scan, &record, true);
		*end = record.next_lsn;
	}
}

/*
 * The log ends at a fault of the map: not in the middle of a record that the
 * fault has cut, but before it.  And if a file is missing that took over from
 * this one, what a failed write has left here is not to be believed beyond its
 * first gap.  False on failure.
 */
static bool
end_at_fault(Scan *scan, const GlMapFault *fault)
{
	GlRecoveryResult *result = scan->result;
	uint64_t	valid_end = scan->end;
	uint32_t	index = scan->map->count;

	result->bad_map = fault->problem;
	result->bad_lsn = fault->lsn;
	result->bad_index = fault->index;
	result->records = 0;
	result->last_lsn = 0;
	while (live_before(scan->map, &index))
	{
		if (scan->map->entries[index].base >= fault->lsn)
			continue;
		if (!scan_segment(scan, index, fault->lsn, false, &result->bad_lsn))
			return false;
		break;
	}
	scan->end = valid_end;
	return true;
}

/* The log as a crash may have left it. */
static void
run_strict(Scan *scan, uint32_t newest_index, const GlMapFault *fault, uint64_t next_segment_size)
{
	const GlLogMap *map = scan->map;
	const GlMapEntry *newest = &map->entries[newest_index];
	GlRecoveryResult *result = scan->result;
	GlWalk	   *walk = &scan->walk;
	GlWalkRecord record;
	GlWalkStatus status;
	GlRecordCheck check = GL_RECORD_OK;
	uint64_t	begin;
	uint64_t	x;
	uint32_t	first_index = segment_begin(map, newest_index, &begin);
	uint32_t	bad_index = newest_index;
	bool		is_corrupt = false;
	bool		has_record = false;
	bool		is_closed;

	walk->limit = newest->end;
	gl_walk_seek(walk, begin);
	scan->bytes_total = newest->end - begin;

	while ((status = gl_walk_next(walk, &record)) == GL_WALK_RECORD)
	{
		note_record(scan, &record, true);
		has_record = true;
	}
	if (note_failure(scan, status))
		return;
	x = walk->lsn;
	is_closed = has_record && scan->last_kind == GL_RECORD_CLOSE;

	if (status == GL_WALK_INVALID)
	{
		check = walk->check;
		bad_index = walk->index;

		/* a later numbered file: everything before it was durable */
		is_corrupt = x < newest->first_lsn;

		while ((status = gl_walk_resync(walk, &record)) == GL_WALK_RECORD)
		{
			do
			{
				note_record(scan, &record, false);
				result->records_behind++;
				walk->nonzero_end = max_u64(walk->nonzero_end, record.next_lsn);
				is_corrupt = is_corrupt || proves_durable(&record, x, newest->ring_size);
			} while ((status = gl_walk_next(walk, &record)) == GL_WALK_RECORD);
			if (status != GL_WALK_INVALID)
				break;
		}
		if (note_failure(scan, status))
			return;
	}

	/* the lowest LSN at fault is what is reported */
	if (fault->problem != GL_MAP_OK && (!is_corrupt || fault->lsn <= x))
	{
		if (!end_at_fault(scan, fault))
			return;
		is_corrupt = true;
	}
	else if (is_corrupt)
	{
		result->bad_check = check;
		result->bad_lsn = x;
		result->bad_index = bad_index;
	}

	if (is_corrupt)
	{
		result->verdict = GL_RECOVERY_CORRUPT;
		result->end_lsn = result->bad_lsn;
		result->valid_end = max_u64(scan->end, result->end_lsn);
		set_next_lsn(scan, newest, next_segment_size);
		return;
	}

	judge_tail(scan, x, is_closed);
	result->end_lsn = x;
	if (!has_record)
	{
		uint32_t	before = first_index;
		uint64_t	last_end;

		result->end_lsn = end_before_run(map, first_index, x);
		if (live_before(map, &before) &&
			!scan_segment(scan, before, map->entries[before].end, true, &last_end))
			return;
	}
	result->valid_end = result->end_lsn;
	set_next_lsn(scan, newest, next_segment_size);
}

/*
 * Between the file that answers for the LSN before a record and the record's
 * own, does the map say that nothing is missing?
 */
static bool
is_run_boundary(const GlLogMap *map, uint32_t from, uint32_t to, uint64_t end)
{
	for (uint32_t i = from + 1; i <= to; i++)
	{
		const GlMapEntry *entry = &map->entries[i];

		if (entry->number != map->entries[i - 1].number + 1)
			return false;
	}
	for (uint32_t i = from + 1; i <= to; i++)
	{
		const GlMapEntry *entry = &map->entries[i];

		if (entry->starts_run && entry->end_before <= end)
			return true;
	}
	return false;
}

/* The log as a base backup has copied it. */
static void
run_restored(Scan *scan, uint32_t newest_index, const GlMapFault *fault,
			 uint64_t next_segment_size)
{
	const GlLogMap *map = scan->map;
	const GlMapEntry *newest = &map->entries[newest_index];
	GlRecoveryResult *result = scan->result;
	GlWalk	   *walk = &scan->walk;
	GlWalkRecord record;
	GlWalkStatus status;
	GlMapFault	problem = *fault;
	uint64_t	begin;
	uint64_t	expected;
	uint64_t	tail;
	uint32_t	index;

	/* a copy may lack files, or the ends of files, but not mix them up */
	while (problem.problem == GL_MAP_GAP || problem.problem == GL_MAP_SHORT)
		gl_map_check(map, problem.lsn + 1, &problem);

	segment_begin(map, 0, &begin);
	index = 0;
	expected = begin;
	walk->limit = newest->end;
	gl_walk_seek(walk, begin);
	for (uint32_t i = 0; i <= newest_index; i++)
	{
		if (gl_map_is_live(&map->entries[i]))
			scan->bytes_total += map->entries[i].end - map->entries[i].base;
	}

	for (;;)
	{
		bool		is_hole = false;

		status = gl_walk_next(walk, &record);
		tail = walk->lsn;
		if (status == GL_WALK_INVALID)
		{
			is_hole = true;
			status = gl_walk_resync(walk, &record);
		}
		if (status != GL_WALK_RECORD)
			break;

		if (!is_hole && record.lsn != expected)
			is_hole = !is_run_boundary(map, index, record.index, expected);
		if (is_hole)
		{
			result->holes++;
			result->holes_end = record.lsn;
		}
		note_record(scan, &record, true);
		expected = record.next_lsn;
		index = record.index;
	}
	if (note_failure(scan, status))
		return;

	if (scan->end != 0)
		result->end_lsn = scan->end;
	else
		result->end_lsn = map->entries[0].starts_run ? map->entries[0].end_before : begin;
	result->valid_end = result->end_lsn;

	if (problem.problem != GL_MAP_OK)
	{
		result->verdict = GL_RECOVERY_CORRUPT;
		result->bad_map = problem.problem;
		result->bad_lsn = problem.lsn;
		result->bad_index = problem.index;
		result->end_lsn = problem.lsn;
		result->valid_end = max_u64(scan->end, result->end_lsn);
		set_next_lsn(scan, newest, next_segment_size);
		return;
	}
	judge_tail(scan, max_u64(tail, result->end_lsn),
			   scan->end == tail && scan->last_kind == GL_RECORD_CLOSE);
	set_next_lsn(scan, newest, next_segment_size);
}

void
gl_recovery_run(const GlLogMap *map, const GlMapFault *fault, bool restored,
				uint64_t next_segment_size,
				GlWalkRead read, void *arg, void *buf, uint32_t buf_size,
				GlRecoveryProgress progress, GlRecoveryResult *result)
{
	Scan		scan;
	uint32_t	newest;

	memset(result, 0, sizeof(*result));
	memset(&scan, 0, sizeof(scan));
	scan.map = map;
	scan.read = read;
	scan.arg = arg;
	scan.progress = progress;
	scan.result = result;

	if (map->count == 0)
	{
		result->verdict = GL_RECOVERY_NEW;
		result->next_lsn = next_segment_size;
		return;
	}

	/* the newest file answers for something, unless it is of another log */
	newest = map->count;
	if (!live_before(map, &newest))
		newest = 0;

	gl_walk_init(&scan.walk, map, counting_read, &scan, buf, buf_size, 0, 0);
	if (restored)
		run_restored(&scan, newest, fault, next_segment_size);
	else
		run_strict(&scan, newest, fault, next_segment_size);

	if (progress != NULL)
		progress(arg, scan.bytes_done, max_u64(scan.bytes_done, scan.bytes_total));
}

const char *
gl_recovery_verdict_name(GlRecoveryVerdict verdict)
{
	switch (verdict)
	{
		case GL_RECOVERY_NEW:
			return "new";
		case GL_RECOVERY_CLEAN:
			return "clean";
		case GL_RECOVERY_UNCLEAN:
			return "unclean";
		case GL_RECOVERY_TORN:
			return "torn";
		case GL_RECOVERY_CORRUPT:
			return "corrupt";
		case GL_RECOVERY_READ_ERROR:
			return "read error";
		case GL_RECOVERY_BUFFER_TOO_SMALL:
			return "buffer too small";
	}
	return "unknown";
}
