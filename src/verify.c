/*-------------------------------------------------------------------------
 *
 * verify.c
 *		Reports on the log's files.
 *
 * A check of every record goes on where a read would stop: it passes over what
 * is invalid, and over the rest of a file that the device does not read.
 *
 *-------------------------------------------------------------------------
 */
#include "verify.h"

#include "gate.h"
#include "miscadmin.h"
#include "session_files.h"
#include "shared.h"
#include "utils/memutils.h"
#include "walk.h"

#define SCAN_BUFFER	(256 * 1024)

static GlSegmentReport *
report_of(GlSegmentReport *reports, const GlLogMap *map, uint64 lsn)
{
	uint32		index;

	if (!gl_map_find(map, &lsn, &index))
		return map->count > 0 ? &reports[map->count - 1] : NULL;
	return &reports[index];
}

static void
mark_bad(GlSegmentReport *report, uint64 lsn, const char *why)
{
	if (report == NULL || !report->ok)
		return;
	report->ok = false;
	report->bad_lsn = lsn;
	strlcpy(report->reason, why, sizeof(report->reason));
}

/* Read and check every record; fills in records, ok, bad_lsn and reason. */
static void
check_files(GlSegmentReport *reports, GlCatalog *catalog, uint64 durable)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "grouplog verify",
												  ALLOCSET_DEFAULT_SIZES);
	GlReadFile *file = MemoryContextAlloc(context, sizeof(GlReadFile));
	GlWalk		walk;
	void	   *allocated = NULL;
	void	   *buffer = gl_read_buffer(context, &allocated, SCAN_BUFFER);
	GlMapFault	fault = catalog->fault;
	bool		sound = catalog->sound;
	uint64		holes_end = atomic_load(&gl_shared->holes_end);
	bool		resync = false;

	/* In the context, as is its callback: an error may find us anywhere. */
	gl_read_file_init(file, context, &catalog->map);
	gl_walk_init(&walk, &catalog->map, gl_read_file, file, buffer, SCAN_BUFFER, 0, 0);
	walk.limit = durable;
	gl_walk_seek(&walk, catalog->map.entries[0].first_lsn);
	while (!sound)
	{
		if (fault.lsn >= holes_end)
			mark_bad(report_of(reports, &catalog->map, fault.lsn), fault.lsn,
					 gl_map_problem_name(fault.problem));
		sound = gl_map_check(&catalog->map, fault.lsn + 1, &fault);
	}

	for (;;)
	{
		GlWalkRecord record;
		uint64		at = walk.lsn;
		GlWalkStatus status = resync ? gl_walk_resync(&walk, &record) : gl_walk_next(&walk, &record);

		resync = false;
		CHECK_FOR_INTERRUPTS();
		switch (status)
		{
			case GL_WALK_RECORD:
				if (record.header->kind == GL_RECORD_DATA)
					reports[record.index].records++;
				break;
			case GL_WALK_BUFFER_TOO_SMALL:
				{
					uint32		size = TYPEALIGN(SCAN_BUFFER, walk.buf_needed);

					buffer = gl_read_buffer(context, &allocated, size);
					gl_walk_set_buffer(&walk, buffer, size);
				}
				break;
			case GL_WALK_INVALID:
				at = walk.lsn;
				if (at >= atomic_load(&gl_shared->oldest_lsn) && at >= holes_end)
					mark_bad(report_of(reports, &catalog->map, at), at, gl_record_check_name(walk.check));
				resync = true;
				break;
			case GL_WALK_READ_ERROR:
				{
					uint32		index;

					/* The rest of this file cannot be had; go on with the next. */
					at = Max(at, walk.lsn);
					if (!gl_map_find(&catalog->map, &at, &index))
					{
						MemoryContextDelete(context);
						return;
					}
					if (at >= atomic_load(&gl_shared->oldest_lsn))
						mark_bad(&reports[index], at, strerror(walk.error));
					gl_walk_seek(&walk, catalog->map.entries[index].end);
					gl_walk_forget(&walk);
				}
				break;
			case GL_WALK_END:
				MemoryContextDelete(context);
				return;
		}
	}
}

GlSegmentReport *
gl_segment_reports(bool check, int *count)
{
	GlCatalog  *catalog;
	GlSegmentReport *reports;
	uint64		durable;
	uint64		current;
	int			n = 0;

	gl_gate_check_readable("read");
	durable = gl_ring_durable_lsn(gl_ring());
	catalog = gl_session_catalog();
	current = atomic_load(&gl_shared->segment_number);

	reports = palloc0((catalog->map.count + 1) * sizeof(GlSegmentReport));
	for (uint32 i = 0; i < catalog->map.count; i++)
	{
		const GlMapEntry *entry = &catalog->map.entries[i];
		GlSegmentReport *report = &reports[n++];

		report->number = entry->number;
		report->first_lsn = entry->first_lsn;
		report->end_lsn = Max(entry->first_lsn,
							  entry->number == current ? Min(entry->end, durable) : entry->end);
		report->file_bytes = entry->file_size;
		report->created = catalog->created[i];
		report->current = entry->number == current;
		report->ok = true;
	}
	if (check && n > 0)
		check_files(reports, catalog, durable);
	if (catalog->bad_headers > 0)
	{
		int			at = n++;

		/* in its place by number */
		while (at > 0 && reports[at - 1].number > catalog->bad_number)
		{
			reports[at] = reports[at - 1];
			at--;
		}
		memset(&reports[at], 0, sizeof(GlSegmentReport));
		reports[at].number = catalog->bad_number;
		reports[at].first_lsn = reports[at].end_lsn = catalog->bad_lsn;
		reports[at].ok = true;
		mark_bad(&reports[at], catalog->bad_lsn, gl_header_check_name(catalog->bad_check));
	}
	*count = n;
	return reports;
}
