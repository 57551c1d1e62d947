/*-------------------------------------------------------------------------
 *
 * ledger.c
 *		The sessions of sim_log, what they were answered, and the check of it.
 *
 *-------------------------------------------------------------------------
 */
#include "ledger.h"

#include <inttypes.h>

#include "append.h"
#include "config.h"
#include "durable.h"
#include "miscadmin.h"
#include "request.h"
#include "segment.h"
#include "shared.h"
#include "tail.h"
#include "utils/memutils.h"

Record records[MAX_RECORDS];
uint32 record_count;
uint8 arena[ARENA_SIZE];
uint32 arena_used;
uint64 world_seed;
uint32 world_steps_at;
uint32 run;
uint32 checks;
uint64 handed_out;
uint64 returned;
uint64 truncated_to;
uint64 sound_from;
bool damaged;
bool reported;
bool still_corrupt;
bool silent_world;
bool was_opened;
bool closed;
bool opening;
bool settling;
bool is_over;
char damage[160];
uint64 violations;
Counts counts;

/* ----- appenders ----- */

static GlPayload
make_payload(uint32 index, uint32 count)
{
	uint32		most = (uint32) sim_ring_size / 4 - GL_RECORD_HEADER_SIZE;
	uint32		size = sim_below(8);
	uint8	   *data = arena + arena_used;
	GlPayload	payload;

	size = size == 0 ? 0 : size == 1 ? most : size < 4 ? sim_below(most + 1) : sim_below(most / 8);
	if (count > 1)
		size = Max(Min(size, 600), sizeof(index));
	if (sim_chance(6))
		memset(data, 0, size);
	else if (sim_chance(5) && size > 100)
	{
		/* what has been in the log before, headers and all */
		gl_ring_read(gl_ring(), sim_random() / GL_GRANULE * GL_GRANULE, data, size);
	}
	else
	{
		for (uint32 i = 0; i < size; i += 8)
		{
			uint64		word = sim_random();

			memcpy(data + i, &word, Min(8, size - i));
		}
	}
	if (count > 1)
		memcpy(data, &index, sizeof(index));
	arena_used += size;
	memset(&payload, 0, sizeof(payload));
	payload.data = (char *) data;
	payload.size = size;
	return payload;
}

static void
append_some(SimProcess *self)
{
	uint32		count = sim_chance(6) ? 2 + sim_below(12) : 1;
	GlPayload	payloads[16];
	GlSyncMode	mode = (GlSyncMode) sim_below(GL_SYNC_MODES);
	bool		wait = !sim_chance(6);
	uint32		first = record_count;
	uint64		lsn;

	if (record_count + count > MAX_RECORDS || arena_used + count * 20000 > ARENA_SIZE)
	{
		is_over = true;
		pg_usleep(1000000);
		return;
	}
	for (uint32 i = 0; i < count; i++)
	{
		Record	   *record = &records[record_count++];

		memset(record, 0, sizeof(*record));
		record->payload = arena_used;
		payloads[i] = make_payload(i, count);
		record->size = (uint32) payloads[i].size;
		record->count = count;
		record->run = run;
		record->after = returned;
	}
	counts.records += count;
	self->user[0] = first + 1;
	self->user[1] = count;
	lsn = gl_append(payloads, count, 0, mode, wait);
	self->user[1] = 0;
	if (lsn < records[first].after || lsn < handed_out)
		violation("LSN %" PRIX64 " was returned after %" PRIX64 " and %" PRIX64, lsn,
				  records[first].after, handed_out);
	records[first + count - 1].lsn = lsn;
	returned = Max(returned, lsn);
	if (wait && mode != GL_SYNC_PERIODIC)
	{
		for (uint32 i = 0; i < count; i++)
			records[first + i].outcome = ACKNOWLEDGED;
		counts.acknowledged += count;
	}
	for (uint32 i = 0; i < count; i++)
		records[first + i].upto = lsn;
}

static void
do_something(SimProcess *self)
{
	switch (settling ? 3 : sim_below(40))
	{
		case 0:
			(void) gl_flush();
			break;
		case 1:
			if (record_count > 0)
			{
				Record	   *record = &records[sim_below(record_count)];

				if (record->lsn != 0 && record->run == run && gl_wait_durable(record->lsn, 1000) &&
					record->lsn >= handed_out)
					record->outcome = ACKNOWLEDGED;
			}
			break;
		case 2:
			if (sim_chance(4))
			{
				uint64		before = atomic_load(&gl_shared->oldest_lsn) + 2 * sim_segment_size;

				if (before <= gl_ring_durable_lsn(gl_ring()))
				{
					truncated_to = Max(truncated_to, before);
					(void) gl_request(GL_REQUEST_TRUNCATE, before);
				}
			}
			break;
		case 3:
			pg_usleep(sim_below(50000));
			break;
		default:
			append_some(self);
			break;
	}
}

/* A call has ended in an error. */
static void
note_error(SimProcess *self)
{
	uint32		first = (uint32) self->user[0] - 1;
	uint32		count = (uint32) self->user[1];

	self->user[1] = 0;
	if (count == 0)
		return;
	if (count > 1 || self->sqlstate == ERRCODE_IO_ERROR || self->sqlstate == ERRCODE_QUERY_CANCELED ||
		self->sqlstate == ERRCODE_CANNOT_CONNECT_NOW)
	{
		counts.unknown += count;
		return;
	}
	records[first].outcome = REFUSED;
	counts.refused++;
}

void
appender_main(SimProcess *self)
{
	sigjmp_buf	jump;

	CurrentMemoryContext = AllocSetContextCreate(TopMemoryContext, "session", ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		PG_exception_stack = &jump;
		if (sigsetjmp(jump, 0) == 0)
		{
			self->user[2] = settling ? 0 : (uint64) sim_time_ns;
			do_something(self);
		}
		else
		{
			error_context_stack = NULL;
			InterruptHoldoffCount = 0;
			note_error(self);
			pg_usleep(1 + sim_below(200000));
		}
		self->user[2] = 0;
		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(CurrentMemoryContext);
		if (sim_stopping && sim_chance(2))
			proc_exit(0);
	}
}

/* ----- the check ----- */

static uint8 buffer[1 << 17] __attribute__((aligned(4096)));

static void
check_record(const GlWalkRecord *read)
{
	uint64		id = read->header->stream - 1;
	uint32		index = 0;
	Record	   *record;

	if (read->header->kind != GL_RECORD_DATA)
		return;
	counts.checked++;
	if (id >= record_count)
	{
		violation("a record at %" PRIX64 " that was never sent", read->lsn);
		return;
	}
	record = &records[id];
	if (record->count > 1)
	{
		memcpy(&index, read->payload, Min(sizeof(index), read->payload_size));
		if (index >= record->count)
		{
			violation("a record at %" PRIX64 " of a batch that never was", read->lsn);
			return;
		}
		record += index;
	}
	if (record->size != read->payload_size ||
		memcmp(arena + record->payload, read->payload, record->size) != 0)
		violation("the record at %" PRIX64 " is not what was sent", read->lsn);
	if (record->seen == checks)
		violation("the record at %" PRIX64 " is there twice", read->lsn);
	if (record->lsn != 0 && record->lsn != read->lsn)
		violation("the record at %" PRIX64 " was said to be at %" PRIX64, read->lsn, record->lsn);
	if (record->after != 0 && read->lsn <= record->after)
		violation("the record at %" PRIX64 " was sent after %" PRIX64 " was returned", read->lsn,
				  record->after);
	if (record->outcome == REFUSED)
		violation("the record at %" PRIX64 " was refused", read->lsn);
	/* where the file is damaged that says that it had been cut off, it is in sight */
	if (record->outcome == LOST && !damaged)
		violation("the record at %" PRIX64 " was lost, and is back", read->lsn);
	record->lsn = read->lsn;
	record->seen = checks;
}

/*
 * The log was opened and ends before acknowledged records, from x on: does what
 * lies beyond show that they had been there?
 */
static void
check_unproven(const GlLogMap *map, GlTailReader *reader, uint64 end, uint64 x)
{
	GlWalk		walk;
	GlWalkRecord record;

	counts.damages_unproven++;
	gl_walk_init(&walk, map, gl_tail_read, reader, buffer, sizeof(buffer), end, UINT64_MAX);
	for (;;)
	{
		GlWalkStatus status = gl_walk_next(&walk, &record);
		uint64		distance;

		if (status == GL_WALK_INVALID)
			status = gl_walk_resync(&walk, &record);
		if (status != GL_WALK_RECORD)
			return;
		distance = (uint64) record.header->undurable * GL_GRANULE;
		if (record.lsn > x && record.header->undurable != GL_UNDURABLE_UNKNOWN &&
			(record.lsn - distance > x || record.next_lsn - x > sim_ring_size))
		{
			violation("the log ends at %" PRIX64 ", and a record at %" PRIX64 " proves that %" PRIX64
					  " was durable", end, record.lsn, x);
			return;
		}
	}
}

void
check_now(void)
{
	GlError		error;
	GlCatalog  *catalog;
	GlTailReader reader = {.open_index = -1,.fd = -1,.direct = true};
	GlWalk		walk;
	GlWalkRecord record;
	GlState		state = (GlState) atomic_load(&gl_shared->state);
	uint64		limit;
	uint64		oldest;
	uint64		lowest = UINT64_MAX;
	bool		invalid_seen = false;

	checks++;
	gl_error_clear(&error);
	catalog = gl_catalog_read(atomic_load(&gl_shared->holes_end), &error);
	if (catalog == NULL || !catalog->sound || catalog->bad_headers > 0)
	{
		if (opening && state == GL_STATE_OPEN && !damaged)
			violation("the directory is not sound: %s", catalog == NULL ? error.message :
					  gl_map_problem_name(catalog->fault.problem));
		if (catalog == NULL || (!opening && !damaged))
			return;
		invalid_seen = true;
	}
	if ((state == GL_STATE_OPEN || state == GL_STATE_CLOSED) &&
		atomic_load(&gl_shared->segment_number) != 0)
		limit = gl_ring_durable_lsn(gl_ring());
	else
		limit = atomic_load(&gl_shared->end_before);
	oldest = catalog->map.count > 0 ? catalog->map.entries[0].first_lsn : 0;
	for (uint32 i = 0; sim_verbose && i < catalog->map.count; i++)
	{
		const GlMapEntry *entry = &catalog->map.entries[i];

		printf("    file %u: %" PRIX64 " to %" PRIX64 ", first %" PRIX64 ", end before %" PRIX64
			   ", epoch %" PRIu64 ", %" PRIu64 " bytes\n", entry->number, entry->base, entry->end,
			   entry->first_lsn, entry->end_before, entry->seed.epoch, entry->file_size);
	}

	reader.map = &catalog->map;
	gl_walk_init(&walk, &catalog->map, gl_tail_read, &reader, buffer, sizeof(buffer), oldest, limit);
	for (;;)
	{
		GlWalkStatus status = gl_walk_next(&walk, &record);

		if (status == GL_WALK_INVALID)
		{
			if (walk.lsn >= sound_from && !damaged)
				violation("%s at %" PRIX64 ", before the end at %" PRIX64,
						  gl_record_check_name(walk.check), walk.lsn, limit);
			invalid_seen = true;
			status = gl_walk_resync(&walk, &record);
		}
		if (status != GL_WALK_RECORD)
		{
			if (status != GL_WALK_END)
				violation("the walk failed at %" PRIX64, walk.lsn);
			break;
		}
		check_record(&record);
	}

	for (uint32 i = 0; i < record_count; i++)
	{
		Record	   *sent = &records[i];
		uint64		lsn = sent->lsn != 0 ? sent->lsn : sent->upto;
		uint64		oldest_of_it;

		if (sent->seen == checks)
		{
			sent->outcome = ACKNOWLEDGED;
			continue;
		}
		/* or it has gone with an old file, which a crash may bring back */
		if (sent->outcome == SENT && opening && sent->run < run && state == GL_STATE_OPEN &&
			(sent->after >= oldest || catalog->map.count == 0 || catalog->map.entries[0].number == 1))
			sent->outcome = LOST;
		if (sent->outcome != ACKNOWLEDGED || lsn < sound_from)
			continue;
		/* gone with an old file; in a batch nobody knows which of them */
		oldest_of_it = sent->lsn != 0 ? lsn : sent->after;
		if (oldest_of_it < oldest && (gl_on_full == GL_ON_FULL_RECYCLE || oldest_of_it < truncated_to))
			continue;
		if (!damaged)
			violation("acknowledged record %u at %" PRIX64 " is lost; the log is %s, from %" PRIX64
					  " to %" PRIX64, i, lsn, gl_state_name(state), oldest, limit);
		else if (!opening)
			continue;
		else if (lsn >= limit)
			lowest = Min(lowest, lsn);
		else if (state == GL_STATE_OPEN && !invalid_seen)
			violation("record %u at %" PRIX64 " is lost, and nobody says so", i, lsn);
		sent->outcome = LOST;
	}
	if (opening && damaged)
	{
		reported = reported || invalid_seen;
		if (state == GL_STATE_OPEN && lowest != UINT64_MAX && sim_silent_writes == 0 &&
			strncmp(damage, "the loss of", 11) == 0)
			violation("a file is missing, and nobody says so");
		if (state == GL_STATE_OPEN && lowest != UINT64_MAX)
			check_unproven(&catalog->map, &reader, limit, lowest);
	}
	gl_tail_close(&reader);
}
