/*-------------------------------------------------------------------------
 *
 * walk.c
 *		Walk over the records of a log, checking each.
 *
 * The buffer holds one stretch of the log, [buf_lsn, buf_lsn + buf_len), read
 * from as many files as it takes; it never spans two server runs, nor a place
 * where bytes are missing.  When a record goes beyond it, what follows the start
 * of the record's block is moved to the front and the rest is read, so a byte is
 * read from a file once, and few are copied.
 *
 * Nothing at or beyond the limit counts as buffered, although whole blocks are
 * read: the last block may still grow in the file, and whoever raises the limit
 * gets to see what it has become.
 *
 * A record is taken at an LSN if and only if
 *	1. a file answers for the LSN, and its header lies in the log before limit,
 *	2. its header's check, length and kind are right under the file's seed,
 *	3. it crosses no segment boundary, no end of a run and not the limit,
 *	4. all its bytes are there, and its CRC is right.
 *
 *-------------------------------------------------------------------------
 */
#include "walk.h"

#include <errno.h>
#include <string.h>

/* No record is longer: a quarter of the largest ring. */
#define RECORD_LENGTH_MAX	(GL_RING_SIZE_MAX / 4)

typedef enum Fetch
{
	FETCH_OK,
	FETCH_MISSING,				/* the file is too short, or the limit is near */
	FETCH_TOO_SMALL,
	FETCH_ERROR
} Fetch;

static inline uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline bool
is_buffered(const GlWalk *walk, uint64_t lsn, uint64_t size)
{
	uint64_t	skip = lsn - walk->buf_lsn;

	return lsn >= walk->buf_lsn && skip <= walk->buf_len && walk->buf_len - skip >= size;
}

/* The file that goes on where this one ends, in the same run? */
static bool
next_in_run(const GlLogMap *map, uint32_t *index)
{
	const GlMapEntry *entry = &map->entries[*index];

	for (uint32_t i = *index + 1; i < map->count; i++)
	{
		const GlMapEntry *next = &map->entries[i];

		if (!gl_map_is_live(next))
			continue;
		if (next->base != entry->end || memcmp(&next->seed, &entry->seed, sizeof(GlSeed)) != 0)
			return false;
		*index = i;
		return true;
	}
	return false;
}

/* The file for an LSN; moves the LSN over a gap.  False: at the end. */
static bool
locate(GlWalk *walk, uint64_t *lsn, uint32_t *index)
{
	const GlLogMap *map = walk->map;

	if (*lsn >= walk->limit)
		return false;

	if (walk->index < map->count)
	{
		const GlMapEntry *entry = &map->entries[walk->index];

		if (*lsn >= entry->base && *lsn < entry->end)
		{
			*index = walk->index;
			return true;
		}
	}

	if (!gl_map_find(map, lsn, index) || *lsn >= walk->limit)
		return false;
	walk->index = *index;
	return true;
}

/*
 * Have size bytes from lsn on in the buffer; index is the file that answers
 * for lsn.
 */
static Fetch
fetch(GlWalk *walk, uint32_t index, uint64_t lsn, uint64_t size)
{
	const GlLogMap *map = walk->map;
	uint64_t	start = gl_block_floor(lsn);
	uint64_t	needed = gl_block_ceil(lsn - start + size);
	uint64_t	stop = gl_block_ceil(walk->limit);
	uint64_t	whole;
	uint32_t	keep = 0;
	bool		failed = false;

	if (is_buffered(walk, lsn, size))
		return FETCH_OK;
	if (needed > walk->buf_size)
	{
		walk->buf_needed = (uint32_t) needed;
		return FETCH_TOO_SMALL;
	}

	/* a block that was cut by the limit or the file's end is read again */
	whole = gl_block_floor(walk->buf_lsn + walk->buf_len);
	if (start >= walk->buf_lsn && start < whole)
	{
		keep = (uint32_t) (whole - start);
		if (start > walk->buf_lsn)
			memmove(walk->buf, walk->buf + (start - walk->buf_lsn), keep);
	}
	walk->buf_lsn = start;
	walk->buf_len = keep;

	/* a limit near the top of the address space has no ceiling */
	if (stop < walk->limit)
		stop = gl_block_floor(walk->limit);

	while (walk->buf_len < walk->buf_size)
	{
		uint64_t	position = walk->buf_lsn + walk->buf_len;
		const GlMapEntry *entry;
		uint64_t	want;
		int64_t		got;

		if (position >= stop)
			break;
		while (position >= map->entries[index].end)
		{
			if (!next_in_run(map, &index))
				break;
		}
		entry = &map->entries[index];
		if (position >= entry->end)
			break;

		want = min_u64(walk->buf_size - walk->buf_len,
					   min_u64(gl_block_ceil(entry->end), stop) - position);
		got = walk->read(walk->arg, index, gl_segment_offset(entry->first_lsn, position),
						 walk->buf + walk->buf_len, (uint32_t) want);
		if (got < 0 && position < start + needed && start + needed - position < want)
		{
			/* perhaps only what would have been read ahead is bad */
			want = start + needed - position;
			got = walk->read(walk->arg, index, gl_segment_offset(entry->first_lsn, position),
							 walk->buf + walk->buf_len, (uint32_t) want);
		}
		if (got < 0)
		{
			/* not every number has an opposite */
			walk->error = got < -INT32_MAX ? EIO : (int) -got;
			walk->index = index;
			failed = true;
			break;
		}
		if ((uint64_t) got > want)
			got = (int64_t) want;
		walk->buf_len += (uint32_t) got;
		if ((uint64_t) got < want)
			break;
	}

	if (walk->buf_lsn + walk->buf_len > walk->limit)
		walk->buf_len = (uint32_t) (walk->limit - walk->buf_lsn);

	/* an error in what was only read ahead is not yet one */
	if (is_buffered(walk, lsn, size))
		return FETCH_OK;
	return failed ? FETCH_ERROR : FETCH_MISSING;
}

/* Do this file and those that continue it answer for all up to end? */
static bool
is_covered(const GlLogMap *map, uint32_t index, uint64_t end)
{
	while (map->entries[index].end < end)
	{
		if (!next_in_run(map, &index))
			return false;
	}
	return true;
}

/*
 * Is there a record at this LSN, for which the file at index answers?  Does
 * not move the walk.
 */
static GlWalkStatus
examine(GlWalk *walk, uint32_t index, uint64_t lsn, GlWalkRecord *record)
{
	const GlMapEntry *entry = &walk->map->entries[index];
	GlRecordHeader header;
	const uint8_t *at;
	uint32_t	payload_size;
	uint64_t	end;

	if (lsn % GL_GRANULE != 0)
	{
		walk->check = GL_RECORD_BAD_HEADER;
		return GL_WALK_INVALID;
	}

	switch (fetch(walk, index, lsn, GL_RECORD_HEADER_SIZE))
	{
		case FETCH_OK:
			break;
		case FETCH_MISSING:
			walk->check = GL_RECORD_EMPTY;
			return GL_WALK_INVALID;
		case FETCH_TOO_SMALL:
			return GL_WALK_BUFFER_TOO_SMALL;
		case FETCH_ERROR:
			return GL_WALK_READ_ERROR;
	}
	memcpy(&header, walk->buf + (lsn - walk->buf_lsn), sizeof(header));

	walk->check = gl_record_check_header(&header, &entry->seed, lsn,
										 min_u64(entry->ring_size / 4, RECORD_LENGTH_MAX));
	if (walk->check != GL_RECORD_OK)
		return GL_WALK_INVALID;

	payload_size = header.length - GL_RECORD_HEADER_SIZE;
	end = lsn + gl_record_span(payload_size);
	if (end > walk->limit ||
		end > gl_segment_full_end(lsn, entry->segment_size) ||
		!is_covered(walk->map, index, end))
	{
		walk->check = GL_RECORD_BAD_LENGTH;
		return GL_WALK_INVALID;
	}

	switch (fetch(walk, index, lsn, header.length))
	{
		case FETCH_OK:
			break;
		case FETCH_MISSING:
			walk->check = GL_RECORD_EMPTY;
			return GL_WALK_INVALID;
		case FETCH_TOO_SMALL:
			return GL_WALK_BUFFER_TOO_SMALL;
		case FETCH_ERROR:
			return GL_WALK_READ_ERROR;
	}

	/*
	 * The buffer may have moved, and the header's block been read again: only
	 * the header that was checked says how far the payload goes.
	 */
	at = walk->buf + (lsn - walk->buf_lsn);
	if (memcmp(at, &header, sizeof(header)) != 0 ||
		!gl_record_check_crc(&header, &entry->seed, lsn,
							 gl_record_payload_crc(at + GL_RECORD_HEADER_SIZE, payload_size)))
	{
		walk->check = GL_RECORD_BAD_CRC;
		return GL_WALK_INVALID;
	}

	record->lsn = lsn;
	record->next_lsn = end;
	record->header = (const GlRecordHeader *) at;
	record->payload = at + GL_RECORD_HEADER_SIZE;
	record->payload_size = payload_size;
	record->index = index;
	return GL_WALK_RECORD;
}

void
gl_walk_init(GlWalk *walk, const GlLogMap *map, GlWalkRead read, void *arg,
			 void *buf, uint32_t buf_size, uint64_t lsn, uint64_t limit)
{
	memset(walk, 0, sizeof(*walk));
	walk->map = map;
	walk->read = read;
	walk->arg = arg;
	walk->lsn = lsn;
	walk->limit = limit;
	gl_walk_set_buffer(walk, buf, buf_size);
}

void
gl_walk_seek(GlWalk *walk, uint64_t lsn)
{
	walk->lsn = lsn;
}

void
gl_walk_set_buffer(GlWalk *walk, void *buf, uint32_t buf_size)
{
	walk->buf = buf;
	walk->buf_size = buf_size & ~(uint32_t) (GL_BLOCK - 1);
	gl_walk_forget(walk);
}

void
gl_walk_forget(GlWalk *walk)
{
	walk->buf_lsn = 0;
	walk->buf_len = 0;
}

GlWalkStatus
gl_walk_next(GlWalk *walk, GlWalkRecord *record)
{
	uint64_t	lsn = walk->lsn;
	uint32_t	index;
	GlWalkStatus status;

	if (!locate(walk, &lsn, &index))
		return GL_WALK_END;
	walk->lsn = lsn;

	status = examine(walk, index, lsn, record);
	if (status == GL_WALK_RECORD)
		walk->lsn = record->next_lsn;
	return status;
}

static inline bool
is_zero_granule(const uint8_t *at)
{
	uint64_t	word[GL_GRANULE / sizeof(uint64_t)];

	memcpy(word, at, sizeof(word));
	return (word[0] | word[1] | word[2] | word[3]) == 0;
}

/* Note the last byte of a granule that is not zero. */
static inline void
note_nonzero(GlWalk *walk, const uint8_t *granule, uint64_t lsn)
{
	uint32_t	used = GL_GRANULE;

	while (granule[used - 1] == 0)
		used--;
	if (walk->nonzero_end < lsn + used)
		walk->nonzero_end = lsn + used;
}

GlWalkStatus
gl_walk_resync(GlWalk *walk, GlWalkRecord *record)
{
	/* the granule where the walk stands holds no record, but bytes perhaps */
	uint64_t	lsn = walk->lsn & ~(uint64_t) (GL_GRANULE - 1);
	uint32_t	index;

	while (locate(walk, &lsn, &index))
	{
		const GlMapEntry *entry = &walk->map->entries[index];
		uint64_t	stop;

		switch (fetch(walk, index, lsn, GL_GRANULE))
		{
			case FETCH_OK:
				break;
			case FETCH_MISSING:
				lsn = entry->end;
				continue;
			case FETCH_TOO_SMALL:
				return GL_WALK_BUFFER_TOO_SMALL;
			case FETCH_ERROR:
				walk->lsn = lsn;
				return GL_WALK_READ_ERROR;
		}

		stop = min_u64(walk->buf_lsn + walk->buf_len, entry->end);
		for (;;)
		{
			GlWalkStatus status;

			/* most of what is searched is zeros */
			while (lsn + GL_GRANULE <= stop &&
				   is_zero_granule(walk->buf + (lsn - walk->buf_lsn)))
				lsn += GL_GRANULE;
			if (lsn + GL_GRANULE > stop)
			{
				/* nothing more to look at where a whole granule does not fit */
				if (stop == entry->end)
					lsn = stop;
				break;
			}

			note_nonzero(walk, walk->buf + (lsn - walk->buf_lsn), lsn);
			if (lsn <= walk->lsn)
			{
				lsn += GL_GRANULE;
				continue;
			}

			status = examine(walk, index, lsn, record);
			if (status == GL_WALK_RECORD)
			{
				walk->lsn = record->next_lsn;
				if (walk->nonzero_end < record->next_lsn)
					walk->nonzero_end = record->next_lsn;
				return status;
			}
			if (status == GL_WALK_BUFFER_TOO_SMALL)
			{
				/* so that the next call begins with this granule */
				walk->lsn = lsn - 1;
				return status;
			}
			if (status == GL_WALK_READ_ERROR)
			{
				walk->lsn = lsn;
				return status;
			}

			/* a record that was not one may have moved the buffer */
			lsn += GL_GRANULE;
			stop = min_u64(walk->buf_lsn + walk->buf_len, entry->end);
		}
	}
	return GL_WALK_END;
}
