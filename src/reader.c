/*-------------------------------------------------------------------------
 *
 * reader.c
 *		Bounded reads, up to the durable LSN.
 *
 * The durable LSN is taken before the session's map (session_files.c): a file
 * takes over (and the directory's generation moves) before anything in it is
 * acknowledged, so the map then holds every byte up to that LSN.
 *
 * A valid checksum, seeded with log, run and LSN, is all the proof that bytes
 * need.  An invalid one is corruption only if the file was still the log's when
 * it was read: the oldest LSN goes up before a file goes.
 *
 *-------------------------------------------------------------------------
 */
#include "reader.h"

#include "access/xlogdefs.h"
#include "compat.h"
#include "gate.h"
#include "miscadmin.h"
#include "segment.h"
#include "session_files.h"
#include "shared.h"
#include "utils/memutils.h"

#define FIRST_BUFFER	(4 * GL_BLOCK)	/* enough for LIMIT 1 */
#define SCAN_BUFFER		(256 * 1024)	/* once it is a scan */
#define SCAN_AFTER		64				/* records */

struct GlReader
{
	MemoryContext context;
	uint64		stream;
	uint64		after;
	GlLogMap	map;
	uint64		generation;		/* of the directory, as mapped */
	GlMapFault	fault;			/* the next one; lsn PG_UINT64_MAX: none */
	uint32		bad_number;		/* a file without a valid header; 0: none */
	uint64		bad_lsn;
	GlReadFile	file;
	GlWalk		walk;
	void	   *buffer;			/* as allocated */
	uint64		records;
};

bool
gl_reader_lsn_lost(uint64 lsn)
{
	if (lsn < atomic_load(&gl_shared->oldest_lsn))
		return false;
	if (lsn >= atomic_load(&gl_shared->end_before) && lsn < atomic_load(&gl_shared->run_start))
		return true;
	return gl_map_lost(&gl_session_catalog()->map, lsn);
}

bool
gl_reader_lsn_before_log(uint64 lsn)
{
	const GlLogMap *map = &gl_session_catalog()->map;

	return map->count > 0 && map->entries[0].number == 1 && lsn < map->entries[0].first_lsn;
}

pg_noreturn static void
raise_removed(uint64 lsn)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("records after LSN " GL_LSN " were removed from the log", LSN_FORMAT_ARGS(lsn)),
			 errdetail("The oldest record that may be there is at or after " GL_LSN ".",
					   LSN_FORMAT_ARGS(atomic_load(&gl_shared->oldest_lsn))),
			 errhint("Read from NULL to begin with the oldest record there is.")));
}

static void
describe_file(char *path, const GlLogMap *map, uint64 lsn)
{
	uint32		index;

	strlcpy(path, "?", MAXPGPATH);
	if (gl_map_find(map, &lsn, &index))
		gl_segment_path(path, map->entries[index].number, map->entries[index].first_lsn);
}

pg_noreturn static void
raise_corrupt(GlReader *reader, uint64 lsn, const char *why)
{
	char		path[MAXPGPATH];

	if (reader->bad_number != 0 && lsn == reader->bad_lsn)
		gl_segment_path(path, reader->bad_number, reader->bad_lsn);
	else
		describe_file(path, &reader->map, lsn);
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("the log is corrupt at LSN " GL_LSN " in file \"%s\"", LSN_FORMAT_ARGS(lsn), path),
			 errdetail("The record check says: %s.", why),
			 errhint("Read after LSN " GL_LSN " to pass over it; grouplog.verify() shows the extent.",
					 LSN_FORMAT_ARGS(lsn))));
}

pg_noreturn static void
raise_read_error(GlReader *reader, uint64 lsn, int os_error)
{
	char		path[MAXPGPATH];

	if (lsn < atomic_load(&gl_shared->oldest_lsn))
		raise_removed(lsn);
	describe_file(path, &reader->map, lsn);
	errno = os_error;
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not read file \"%s\" at LSN " GL_LSN ": %m", path, LSN_FORMAT_ARGS(lsn))));
}

static void
set_buffer(GlReader *reader, uint32 size, bool first)
{
	void	   *buffer = gl_read_buffer(reader->context, &reader->buffer, size);

	if (!first)
		gl_walk_set_buffer(&reader->walk, buffer, size);
	else
		gl_walk_init(&reader->walk, &reader->map, gl_read_file, &reader->file, buffer, size, 0, 0);
}

/* One step, with a larger buffer if the record needs it. */
static GlWalkStatus
step(GlReader *reader, bool resync, GlWalkRecord *record)
{
	for (;;)
	{
		GlWalkStatus status = resync ? gl_walk_resync(&reader->walk, record) :
			gl_walk_next(&reader->walk, record);

		if (status == GL_WALK_READ_ERROR)
			raise_read_error(reader, reader->walk.lsn, reader->walk.error);
		if (status != GL_WALK_BUFFER_TOO_SMALL)
			return status;
		set_buffer(reader, TYPEALIGN(SCAN_BUFFER, reader->walk.buf_needed), false);
	}
}

/* The last record boundary that is known without reading, at or before lsn. */
static uint64
known_boundary(const GlLogMap *map, uint64 lsn)
{
	uint64		boundary = 0;

	for (uint32 i = 0; i < map->count; i++)
	{
		const GlMapEntry *entry = &map->entries[i];

		if (entry->first_lsn <= lsn && entry->first_lsn < entry->end)
			boundary = Max(boundary, entry->first_lsn);
	}
	return boundary;
}

/*
 * Stand on the first record after `after`: right behind it if a record begins
 * there, else by walking from the nearest known boundary.
 */
static void
seek_after(GlReader *reader, uint64 after)
{
	GlWalk	   *walk = &reader->walk;
	GlWalkRecord record;
	uint64		at = after;
	uint32		index;

	if (after >= walk->limit || !gl_map_find(&reader->map, &at, &index))
	{
		gl_walk_seek(walk, walk->limit);
		return;
	}
	gl_walk_seek(walk, at);
	if (at != after)
		return;					/* in a gap: the next file begins the rest */

	if (after % GL_GRANULE == 0 && after < walk->limit &&
		step(reader, false, &record) == GL_WALK_RECORD)
		return;

	gl_walk_seek(walk, known_boundary(&reader->map, after));
	while (walk->lsn <= after && walk->lsn < walk->limit)
	{
		GlWalkStatus status = step(reader, false, &record);

		if (status == GL_WALK_END)
			return;
		if (status == GL_WALK_INVALID)
		{
			/* Corrupt before the place asked for: look from there on. */
			gl_walk_seek(walk, after & ~(uint64) (GL_GRANULE - 1));
			if (step(reader, true, &record) != GL_WALK_RECORD)
			{
				gl_walk_seek(walk, walk->limit);
				return;
			}
			gl_walk_seek(walk, record.lsn);
			return;
		}
	}
}

/* The first place at or after an LSN where the map or a header is at fault. */
static void
next_fault(GlReader *reader, uint64 from)
{
	bool		sound;

	if (from > atomic_load(&gl_shared->holes_end))
		sound = gl_map_check(&reader->map, from, &reader->fault);
	else
		sound = gl_map_check_beyond(&reader->map, from, &reader->fault);
	if (sound)
		reader->fault.lsn = PG_UINT64_MAX;
	if (reader->bad_number != 0 && reader->bad_lsn >= from)
		reader->fault.lsn = Min(reader->fault.lsn, reader->bad_lsn);
}

/* A map of our own: the session's may be replaced while we read. */
static void
copy_map(GlReader *reader, const GlCatalog *catalog)
{
	Size		count = Max(catalog->map.count, 1);

	reader->generation = catalog->generation;
	reader->map.count = catalog->map.count;
	reader->map.entries = MemoryContextAllocHuge(reader->context, count * sizeof(GlMapEntry));
	memcpy(reader->map.entries, catalog->map.entries, catalog->map.count * sizeof(GlMapEntry));
	reader->bad_number = catalog->bad_headers > 0 ? catalog->bad_number : 0;
	reader->bad_lsn = catalog->bad_lsn;
	if (catalog->sound && reader->bad_number == 0)
		reader->fault.lsn = PG_UINT64_MAX;
	else
		next_fault(reader, atomic_load(&gl_shared->holes_end));
}

GlReader *
gl_reader_begin(MemoryContext context, uint64 stream, uint64 after, bool after_is_null)
{
	GlReader   *reader;
	GlCatalog  *catalog;
	uint64		durable;
	uint64		oldest;

	gl_gate_check_readable("read");
	durable = gl_ring_durable_lsn(gl_ring());
	if (!after_is_null && after > gl_ring_insert_lsn(gl_ring()))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("LSN " GL_LSN " is past the end of the log", LSN_FORMAT_ARGS(after)),
				 errdetail("The log ends at " GL_LSN ".", LSN_FORMAT_ARGS(gl_ring_insert_lsn(gl_ring()))),
				 errhint("Use an LSN that an append or a read has returned.")));
	catalog = gl_session_catalog();

	/* After the map: a file that goes meanwhile is noticed when it is read. */
	oldest = atomic_load(&gl_shared->oldest_lsn);
	if (!after_is_null && after + 1 < oldest && catalog->map.count > 0 &&
		catalog->map.entries[0].number != 1)
		raise_removed(after);

	reader = MemoryContextAllocZero(context, sizeof(GlReader));
	reader->context = context;
	reader->stream = stream;
	reader->after = after_is_null ? 0 : after;
	copy_map(reader, catalog);
	gl_read_file_init(&reader->file, context, &reader->map);
	set_buffer(reader, FIRST_BUFFER, true);
	reader->walk.limit = durable;

	if (reader->map.count == 0)
		gl_walk_seek(&reader->walk, durable);
	else if (after_is_null || after < reader->map.entries[0].first_lsn)
		gl_walk_seek(&reader->walk, Max(oldest, reader->map.entries[0].first_lsn));
	else
		seek_after(reader, after);
	return reader;
}

/*
 * Files have come since the map was read, perhaps one that took over from what
 * we are reading: read the map again.  False if nothing has changed.
 */
static bool
refresh_map(GlReader *reader)
{
	if (reader->generation == atomic_load(&gl_shared->directory_generation))
		return false;
	gl_read_file_close(&reader->file);
	pfree(reader->map.entries);
	copy_map(reader, gl_session_catalog());
	gl_walk_forget(&reader->walk);
	reader->walk.index = 0;
	return true;
}

/*
 * Did the walk step, between two LSNs, over a place where a file is missing or
 * bad?
 */
static void
check_fault(GlReader *reader, uint64 from, uint64 to)
{
	/* Those that the reader began behind are passed over. */
	if (reader->fault.lsn < from)
		next_fault(reader, from);
	while (reader->fault.lsn >= from && reader->fault.lsn <= to)
	{
		uint64		lsn = reader->fault.lsn;

		if (lsn > reader->after && lsn >= atomic_load(&gl_shared->holes_end) &&
			lsn >= atomic_load(&gl_shared->oldest_lsn))
			raise_corrupt(reader, lsn, "no valid file where the log goes on");
		next_fault(reader, lsn + 1);
	}
}

bool
gl_reader_next(GlReader *reader, GlWalkRecord *record)
{
	uint64		holes_end = atomic_load(&gl_shared->holes_end);
	bool		resync = false;

	if (reader->records == SCAN_AFTER && reader->walk.buf_size < SCAN_BUFFER)
		set_buffer(reader, SCAN_BUFFER, false);

	for (;;)
	{
		uint64		at = reader->walk.lsn;
		GlWalkStatus status = step(reader, resync, record);

		resync = false;
		if (status == GL_WALK_END)
		{
			check_fault(reader, at, reader->walk.limit - 1);
			return false;
		}
		if (status == GL_WALK_INVALID)
		{
			GlRecordCheck check = reader->walk.check;

			at = reader->walk.lsn;
			if (at < atomic_load(&gl_shared->oldest_lsn))
				raise_removed(at);
			if (refresh_map(reader))
				continue;
			if (at >= holes_end)
				raise_corrupt(reader, at, gl_record_check_name(check));
			/* A hole that came with a base backup. */
			resync = true;
			continue;
		}

		check_fault(reader, at, record->lsn);
		reader->records++;
		if (record->header->kind == GL_RECORD_DATA && record->header->stream == reader->stream &&
			record->lsn > reader->after)
			return true;
		if (reader->records == SCAN_AFTER && reader->walk.buf_size < SCAN_BUFFER)
			set_buffer(reader, SCAN_BUFFER, false);
	}
}

void
gl_reader_end(GlReader *reader)
{
	gl_read_file_close(&reader->file);
}
