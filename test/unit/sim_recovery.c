/*-------------------------------------------------------------------------
 *
 * sim_recovery.c
 *		Crash a model of the writer, over and over, and see what recovery says.
 *
 *	sim_recovery [crashes [seed]]
 *
 * The model does what the design says a writer does, on the disk of simdisk.h:
 * it claims records in a ring, writes groups of whole blocks whose last one is
 * zero-filled and written again, longer, by the next group; activates the next
 * file by header, sync, rename and directory sync; takes over in the middle of a
 * file when a write fails; recycles old files with all their old records in
 * them; shuts down cleanly now and then; begins a new run after each crash.  A
 * crash may come between any two of these steps, those of starting up included:
 * a power cut, or the death of the server alone.
 *
 * After each crash recovery runs twice, and a walk reads all that it left:
 *	- every acknowledged record is there, byte for byte, in order, once;
 *	- every other record that is there was appended, and whoever was found once
 *	  is found ever after; one that was not found never comes back;
 *	- the log is never called corrupt, and called clean after a clean shutdown;
 *	- next_lsn is beyond every LSN that was ever handed out.
 *
 * Then, now and then, acknowledged bytes are damaged: a bit flips, a sector is
 * zeros or garbage, a file is cut or gone.  No wrong byte may ever be read, all
 * records around the damage must be, and recovery must say CORRUPT, at the right
 * LSN, whenever what is left proves that something is missing.  What it cannot
 * prove, and why:
 *	- damage to the last group: exactly what a torn write of a group that nobody
 *	  was told of looks like.  A record shows only what was durable when it was
 *	  claimed, and nothing was claimed later;
 *	- so, too, damage to groups whose records were all claimed before the
 *	  damaged one was durable (a deep ring: they went to the disk one by one);
 *	- damage in files that hold no end of the log: recovery does not read them.
 *	  A reader, or verify(), finds it there, and the simulation checks that;
 *	- the newest file lost as a whole.
 *
 * A corrupt log is ended there, sometimes, for good (accept_end), and goes on.
 * Sometimes a spare holds what the log would have become if it had gone on in
 * another way: the same LSNs and epochs, but never the same nonce.
 *
 * And now and then a base backup is taken while the writer goes on: files are
 * copied block by block, in any order, some of the newest not at all.  Every
 * record that was durable when it began must be in the restored log.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "recovery.h"
#include "simdisk.h"

#define MAX_RECORDS		20000
#define ARENA_SIZE		(4 << 20)
#define POOL_SIZE		(1 << 17)
#define KEEP_FILES		6
#define LOG_CRASHES		40		/* crashes before a new log is begun */

typedef struct Record
{
	uint64_t	lsn;
	uint64_t	next_lsn;
	uint64_t	epoch;
	uint32_t	payload;		/* offset in the arena */
	uint32_t	size;
	uint32_t	undurable;
	int64_t		time;
	uint8_t		kind;
	bool		durable;		/* acknowledged, or found after a crash */
	bool		unsure;			/* acknowledged with fsync = off */
	bool		damaged;		/* for now */
} Record;

/* the sizes of one log: large ones are slow, small ones meet more edges */
static uint32_t segment_size;
static uint32_t ring_size;

uint64_t	sim_random_state;

static SimDisk disk;

/* what is true */
static Record records[MAX_RECORDS];
static uint32_t record_count;
static uint8_t arena[ARENA_SIZE];
static uint32_t arena_used;
static uint8_t pool[POOL_SIZE];
static uint64_t handed_out;		/* end of the last claim ever */
static uint64_t unsure_below;	/* holes are fine below this LSN: fsync was off */
static uint64_t log_id;
static int64_t now;

/* the writer's */
static uint8_t ring[1 << 17];
static GlSeed seed;
static uint64_t insert_lsn;
static uint64_t durable_lsn;
static uint64_t last_durable_lsn;	/* an older value, as a slow claim may have seen it */
static SimFile *current;
static uint64_t current_first;
static uint64_t current_full;
static uint32_t pending;		/* index of the first record not durable */
static bool fsync_on;
static bool closed;
static bool accepting;			/* the log is corrupt, and about to be ended */
static bool was_accepted;		/* it was, once */

/* crashing */
static jmp_buf crashed;
static uint32_t steps_left;

/* recovery's */
static GlMapEntry entries[SIM_FILES];
static SimFile *entry_file[SIM_FILES];
static GlLogMap map = {entries, 0};
static GlMapFault fault;
static uint8_t buffer[1 << 18] __attribute__((aligned(4096)));

/* counted */
static uint64_t crash_number;
static uint64_t violations;
static struct
{
	uint64_t	verdict[GL_RECOVERY_BUFFER_TOO_SMALL + 1];
	uint64_t	records;
	uint64_t	ghosts;
	uint64_t	continuations;
	uint64_t	runs;
	uint64_t	recycled;
	uint64_t	damaged;
	uint64_t	damage_detected;
	uint64_t	damage_unproven;
	uint64_t	damage_read;
	uint64_t	accepted;
	uint64_t	futures;
	uint64_t	backups;
	uint64_t	backup_holes;
} counts;

static void
violation(const char *format,...)
{
	va_list		args;

	violations++;
	if (violations > 20)
		return;
	printf("crash %" PRIu64 ": ", crash_number);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* Everything may end here. */
static void
step(void)
{
	if (steps_left-- == 0)
		longjmp(crashed, 1);
}

/* ----- the backup, taken while the writer goes on ----- */

static struct
{
	bool		running;
	uint64_t	durable;		/* when it began */
	uint64_t	unsure_below;
	uint32_t	count;
	uint32_t	left;			/* blocks not yet copied */
	struct
	{
		SimFile    *file;
		SimName		name;
		uint8_t    *copy;
		uint32_t	size;		/* of the copy */
		uint32_t	done;		/* bytes copied */
	}			file[SIM_FILES];
} backup;

static void
backup_add(SimFile *file)
{
	uint32_t	i = backup.count++;

	backup.file[i].file = file;
	backup.file[i].name = file->name_cache;
	if (backup.file[i].copy == NULL)
		backup.file[i].copy = malloc(GL_BLOCK + (1 << 20));
	backup.file[i].size = backup.file[i].done = 0;
}

static void
backup_begin(void)
{
	backup.running = true;
	backup.durable = durable_lsn;
	backup.count = 0;
	for (int i = 0; i < SIM_FILES; i++)
	{
		if (disk.file[i].used && disk.file[i].name_cache.number != 0)
			backup_add(&disk.file[i]);
	}
}

/* ----- the writer ----- */

static void
ring_put(uint64_t lsn, const void *data, uint32_t size)
{
	uint32_t	at = (uint32_t) (lsn % ring_size);
	uint32_t	part = size < ring_size - at ? size : ring_size - at;

	memcpy(ring + at, data, part);
	memcpy(ring, (const uint8_t *) data + part, size - part);
}

static void
ring_get(uint64_t lsn, void *data, uint32_t size)
{
	uint32_t	at = (uint32_t) (lsn % ring_size);
	uint32_t	part = size < ring_size - at ? size : ring_size - at;

	memcpy(data, ring + at, part);
	memcpy((uint8_t *) data + part, ring, size - part);
}

static bool
claim(uint8_t kind, const void *payload, uint32_t size)
{
	static const uint8_t zeros[GL_GRANULE];
	uint64_t	span = gl_record_span(size);
	uint64_t	seen = sim_chance(2) ? last_durable_lsn : durable_lsn;
	GlRecordHeader header;
	Record	   *record = &records[record_count];

	if (insert_lsn + span > gl_block_floor(durable_lsn) + ring_size ||
		record_count == MAX_RECORDS || arena_used + size > ARENA_SIZE)
		return false;

	memset(&header, 0, sizeof(header));
	header.length = GL_RECORD_HEADER_SIZE + size;
	header.time = ++now;
	header.stream = log_id;
	header.kind = kind;
	header.undurable = fsync_on ? (uint32_t) ((insert_lsn - seen) / GL_GRANULE) : GL_UNDURABLE_UNKNOWN;
	gl_record_seal(&header, &seed, insert_lsn, gl_record_payload_crc(payload, size));

	memset(record, 0, sizeof(*record));
	record->lsn = insert_lsn;
	record->next_lsn = insert_lsn + span;
	record->epoch = seed.epoch;
	record->payload = arena_used;
	record->size = size;
	record->undurable = header.undurable;
	record->time = header.time;
	record->kind = kind;
	memcpy(arena + arena_used, payload, size);
	arena_used += size;
	record_count++;

	ring_put(insert_lsn, &header, sizeof(header));
	ring_put(insert_lsn + sizeof(header), payload, size);
	ring_put(insert_lsn + sizeof(header) + size, zeros,
			 (uint32_t) (span - sizeof(header) - size));
	insert_lsn += span;
	handed_out = insert_lsn;
	if (!fsync_on)
		unsure_below = insert_lsn;
	counts.records++;
	return true;
}

static bool
append(uint8_t kind)
{
	static uint8_t payload[1 << 17];
	uint32_t	most = ring_size / 4 - GL_RECORD_HEADER_SIZE;
	uint32_t	size;
	uint64_t	left;

	switch (kind == GL_RECORD_CLOSE ? 0 : sim_below(8))
	{
		case 0:
			size = 0;
			break;
		case 1:
			size = most;
			break;
		case 2:
		case 3:
			size = sim_below(most + 1);
			break;
		default:
			size = sim_below(most / 8);
			break;
	}
	if (kind == GL_RECORD_CLOSE)
		size = 0;

	left = gl_segment_full_end(insert_lsn, segment_size) - insert_lsn;
	if (gl_record_span(size) > left)
	{
		memset(payload, 0, left);
		if (!claim(GL_RECORD_PADDING, payload, (uint32_t) left - GL_RECORD_HEADER_SIZE))
			return false;
	}

	/* zeros; older records of this log, headers and all; anything */
	if (sim_chance(6))
		memset(payload, 0, size);
	else if (sim_chance(4) && size <= ring_size / 2)
		ring_get(sim_random() / GL_GRANULE * GL_GRANULE, payload, size);
	else
		memcpy(payload, pool + sim_below(POOL_SIZE - size), size);
	return claim(kind, payload, size);
}

static uint32_t
last_number(void)
{
	uint32_t	last = 0;

	for (int i = 0; i < SIM_FILES; i++)
	{
		if (disk.file[i].used && disk.file[i].name_cache.number > last)
			last = disk.file[i].name_cache.number;
	}
	return last;
}

static SimFile *
file_by_number(uint32_t number)
{
	for (int i = 0; i < SIM_FILES; i++)
	{
		if (disk.file[i].used && disk.file[i].name_cache.number == number)
			return &disk.file[i];
	}
	return NULL;
}

/* A spare: a recycled file, with or without its old contents, or a new one. */
static SimFile *
take_spare(void)
{
	for (int i = 0; i < SIM_FILES; i++)
	{
		SimFile    *file = &disk.file[i];

		if (!file->used || file->name_cache.number != 0 || file->failed)
			continue;
		disk_extend(&disk, file);
		if (sim_chance(3))
		{
			memset(file->data.disk, 0, disk.capacity);
			memset(file->data.cache, 0, disk.capacity);
		}
		return file;
	}
	return disk_create(&disk);
}

/*
 * The next file takes over at first_lsn.  The file before is cut after its
 * last byte in the log; not at the block where this one takes over, since a
 * base backup may have seen that one and not this one.
 */
static void
activate(uint64_t first_lsn, uint64_t end_before)
{
	static uint8_t blocks[2 * GL_BLOCK];
	GlSegmentHeader *header = (GlSegmentHeader *) blocks;
	uint64_t	base = gl_block_floor(first_lsn);
	uint32_t	number = last_number() + 1;
	SimFile    *before = number > 1 ? file_by_number(number - 1) : NULL;
	SimFile    *file;

	step();
	file = take_spare();
	memset(blocks, 0, sizeof(blocks));
	header->segment_size = segment_size;
	header->ring_size = ring_size;
	header->log_id = log_id;
	header->number = number;
	header->first_lsn = first_lsn;
	header->end_before = end_before;
	header->epoch = seed.epoch;
	header->nonce = seed.nonce;
	if (before != NULL)
		header->nonce_before = ((GlSegmentHeader *) before->data.cache)->nonce;
	gl_segment_header_seal(header);
	if (first_lsn > base)
		ring_get(base, blocks + GL_BLOCK, (uint32_t) (first_lsn - base));

	sectors_write(&file->data, 0, blocks, first_lsn > base ? 2 * GL_BLOCK : GL_BLOCK);
	step();
	disk_sync(file);
	step();
	file->name_cache.number = number;
	file->name_cache.first_lsn = first_lsn;
	step();
	disk_sync_directory(&disk);
	step();

	if (before != NULL && !sim_chance(4))
	{
		uint64_t	before_first = before->name_cache.first_lsn;

		if (end_before >= gl_block_floor(before_first) &&
			end_before < gl_segment_full_end(before_first, segment_size))
			disk_truncate(before, (uint32_t) gl_segment_offset(before_first, end_before));
		else if (end_before < before_first)
			disk_truncate(before, GL_BLOCK);
		step();
	}
	if (backup.running && sim_chance(2))
		backup_add(file);

	current = file;
	current_first = first_lsn;
	current_full = gl_segment_full_end(first_lsn, segment_size);
}

static void
flush(void)
{
	static uint8_t image[(1 << 17) + 2 * GL_BLOCK];
	uint64_t	from;
	uint64_t	end;
	uint32_t	last;
	uint32_t	size;

	if (durable_lsn == insert_lsn)
		return;
	if (durable_lsn == current_full)
		activate(durable_lsn, durable_lsn);

	/* a group: whole records, all of them or some, within one file */
	last = pending;
	while (last + 1 < record_count && records[last + 1].next_lsn <= current_full &&
		   !sim_chance(20))
		last++;
	end = records[last].next_lsn;
	from = gl_block_floor(durable_lsn);
	size = (uint32_t) (gl_block_ceil(end) - from);
	memset(image, 0, size);
	ring_get(from, image, (uint32_t) (end - from));

	for (;;)
	{
		step();
		sectors_write(&current->data, gl_segment_offset(current_first, from), image, size);
		step();
		if (!fsync_on || !sim_chance(25))
			break;

		/*
		 * The write or the sync has failed, or the writer was restarted: what
		 * is in flight may land yet, but the file is never synced again.
		 */
		current->failed = true;
		counts.continuations++;
		activate(durable_lsn, durable_lsn);
	}
	if (fsync_on)
		disk_sync(current);
	step();

	if (sim_chance(8))
		last_durable_lsn = durable_lsn;
	durable_lsn = end;
	for (; pending <= last; pending++)
	{
		records[pending].durable = fsync_on;
		records[pending].unsure = !fsync_on;
	}
	step();
}

/* Oldest first, one at a time, the directory synced in between. */
static void
recycle(void)
{
	uint32_t	last = last_number();
	uint32_t	oldest = UINT32_MAX;
	SimFile    *file;

	for (int i = 0; i < SIM_FILES; i++)
	{
		if (disk.file[i].used && disk.file[i].name_cache.number != 0 &&
			disk.file[i].name_cache.number < oldest)
			oldest = disk.file[i].name_cache.number;
	}
	if (backup.running || last - oldest < KEEP_FILES)
		return;
	file = file_by_number(oldest);
	file->name_cache.number = 0;
	step();
	disk_sync_directory(&disk);
	step();
	if (file->failed)
		file->used = false;
	counts.recycled++;
}

/* A clean shutdown: everything durable, then the close record alone. */
static void
shut_down(void)
{
	while (durable_lsn < insert_lsn)
		flush();
	while (!append(GL_RECORD_CLOSE))
		flush();
	while (durable_lsn < insert_lsn)
		flush();
	closed = fsync_on;
	longjmp(crashed, 1);
}

static void backup_step(void);

/* Until it crashes. */
static void
run_writer(const GlRecoveryResult *found)
{
	uint64_t	stale;

	closed = false;
	fsync_on = !sim_chance(20);
	seed.log_id = log_id;
	seed.epoch++;
	seed.nonce = sim_random();
	pending = record_count;
	insert_lsn = durable_lsn = last_durable_lsn = found->next_lsn;
	counts.runs++;
	if (found->next_lsn < handed_out && handed_out > unsure_below)
		violation("next LSN %" PRIX64 " was handed out: up to %" PRIX64,
				  found->next_lsn, handed_out);

	/* the ring holds whatever the server before had in it */
	stale = sim_below(ring_size / 2);
	memcpy(ring + stale, pool + sim_below(1000), ring_size / 2);

	activate(found->next_lsn, found->end_lsn);
	accepting = false;
	recycle();
	for (;;)
	{
		switch (sim_below(12))
		{
			case 0:
				recycle();
				break;
			case 1:
			case 2:
			case 3:
				flush();
				break;
			case 4:
				if (sim_chance(30))
					shut_down();
				if (sim_chance(40) && !backup.running && fsync_on)
					backup_begin();
				break;
			default:
				if (!append(GL_RECORD_DATA))
					flush();
				break;
		}
		step();
		if (backup.running)
			backup_step();
	}
}

/* ----- reading it back ----- */

static int64_t
read_disk(void *arg, uint32_t index, uint64_t offset, void *buf, uint32_t size)
{
	const SimFile *file = entry_file[index];

	(void) arg;
	if (offset % GL_BLOCK != 0 || size % GL_BLOCK != 0 || offset < GL_BLOCK)
		abort();
	if (offset >= file->size_cache)
		return 0;
	if (size > file->size_cache - offset)
		size = (uint32_t) (file->size_cache - offset);
	memcpy(buf, file->data.cache + offset, size);
	return size;
}

static bool
add_entry(const uint8_t *header_block, uint32_t size, SimFile *file)
{
	const GlSegmentHeader *header = (const GlSegmentHeader *) header_block;
	GlHeaderCheck check = gl_segment_header_check(header);
	GlMapEntry	entry;
	uint32_t	at = map.count;

	/* sizes are below what a real header may say; that is checked last */
	if (check != GL_HEADER_OK && check != GL_HEADER_BAD_FIELD)
		return false;
	gl_map_entry_from_header(&entry, header, size);
	for (; at > 0 && entries[at - 1].number > entry.number; at--)
	{
		entries[at] = entries[at - 1];
		entry_file[at] = entry_file[at - 1];
	}
	entries[at] = entry;
	entry_file[at] = file;
	map.count++;
	return true;
}

static bool
read_map(void)
{
	map.count = 0;
	for (int i = 0; i < SIM_FILES; i++)
	{
		SimFile    *file = &disk.file[i];

		if (!file->used || file->name_cache.number == 0)
			continue;
		if (!add_entry(file->data.cache, file->size_cache, file) ||
			((GlSegmentHeader *) file->data.cache)->number != file->name_cache.number)
			violation("file %u has no valid header", file->name_cache.number);
	}
	return gl_map_finish(&map, &fault);
}

static void
recover(bool restored, GlWalkRead read, GlRecoveryResult *found)
{
	GlRecoveryResult again;

	gl_recovery_run(&map, &fault, restored, segment_size, read, NULL, buffer, sizeof(buffer),
					NULL, found);
	gl_recovery_run(&map, &fault, restored, segment_size, read, NULL, buffer, sizeof(buffer),
					NULL, &again);
	if (memcmp(found, &again, sizeof(again)) != 0)
		violation("recovery found two ends: %" PRIX64 " and %" PRIX64,
				  found->end_lsn, again.end_lsn);
	counts.verdict[found->verdict]++;
}

static bool
is_true(const Record *record, const GlWalkRecord *read)
{
	return record->lsn == read->lsn && record->next_lsn == read->next_lsn &&
		record->size == read->payload_size && record->kind == read->header->kind &&
		record->time == read->header->time && record->undurable == read->header->undurable &&
		memcmp(arena + record->payload, read->payload, record->size) == 0;
}

/* Is it fine that this record is not there? */
static bool
may_be_missing(const Record *record)
{
	return !record->durable || record->damaged || record->lsn < unsure_below;
}

/*
 * Walk over the whole log up to an LSN, and compare with the truth.  Returns
 * the records found; keep: what is not found is forgotten, so that it may never
 * come back.  holes: invalid stretches are to be expected.
 */
static uint32_t
check_log(GlWalkRead read, uint64_t limit, bool holes, bool keep, uint64_t must_below,
		  uint64_t *first_invalid)
{
	uint8_t		found[MAX_RECORDS / 8 + 1];
	GlWalk		walk;
	GlWalkRecord record;
	uint32_t	at = 0;
	uint32_t	count = 0;

	*first_invalid = UINT64_MAX;
	if (map.count == 0)
		return 0;
	memset(found, 0, record_count / 8 + 1);
	while (at < record_count && records[at].lsn < entries[0].first_lsn)
		at++;

	gl_walk_init(&walk, &map, read, NULL, buffer, sizeof(buffer), entries[0].base, limit);
	for (;;)
	{
		GlWalkStatus status = gl_walk_next(&walk, &record);

		if (status == GL_WALK_INVALID)
		{
			if (*first_invalid == UINT64_MAX)
				*first_invalid = walk.lsn;
			if (!holes && walk.lsn >= unsure_below)
				violation("%s at %" PRIX64 ", before the end at %" PRIX64,
						  gl_record_check_name(walk.check), walk.lsn, limit);
			status = gl_walk_resync(&walk, &record);
		}
		if (status != GL_WALK_RECORD)
		{
			if (status != GL_WALK_END)
				violation("the walk failed at %" PRIX64, walk.lsn);
			break;
		}

		for (; at < record_count && records[at].lsn < record.lsn; at++)
		{
			if (!may_be_missing(&records[at]) && records[at].lsn < must_below)
				violation("record %" PRIX64 " is lost", records[at].lsn);
		}
		if (at == record_count || !is_true(&records[at], &record))
		{
			violation("a record at %" PRIX64 " that was never appended there", record.lsn);
			continue;
		}
		if (!records[at].durable && keep)
			counts.ghosts++;
		found[at / 8] |= (uint8_t) (1 << at % 8);
		count++;
		at++;
	}
	for (; at < record_count; at++)
	{
		if (!may_be_missing(&records[at]) && records[at].lsn < must_below)
			violation("record %" PRIX64 " is lost, the log ends at %" PRIX64,
					  records[at].lsn, limit);
	}

	if (keep)
	{
		uint32_t	kept = 0;

		for (uint32_t i = 0; i < record_count; i++)
		{
			if ((found[i / 8] & (1 << i % 8)) == 0)
				continue;
			records[kept] = records[i];
			records[kept].durable = true;
			kept++;
		}
		record_count = kept;
	}
	return count;
}

/* ----- the backup's end ----- */

static int64_t
read_backup(void *arg, uint32_t index, uint64_t offset, void *buf, uint32_t size)
{
	(void) arg;
	for (uint32_t i = 0; i < backup.count; i++)
	{
		if (backup.file[i].file != entry_file[index])
			continue;
		if (offset >= backup.file[i].size)
			return 0;
		if (size > backup.file[i].size - offset)
			size = (uint32_t) (backup.file[i].size - offset);
		memcpy(buf, backup.file[i].copy + offset, size);
		return size;
	}
	abort();
}

static void
backup_end(void)
{
	GlRecoveryResult found;
	uint64_t	invalid;

	backup.running = false;
	map.count = 0;
	for (uint32_t i = 0; i < backup.count; i++)
	{
		/* a file that was cut to nothing before it was copied has its header */
		if (!add_entry(backup.file[i].copy, backup.file[i].size, backup.file[i].file))
			violation("a copy has no valid header");
	}
	gl_map_finish(&map, &fault);
	recover(true, read_backup, &found);
	if (found.verdict == GL_RECOVERY_CORRUPT || found.verdict == GL_RECOVERY_READ_ERROR)
		violation("a base backup is %s: %s", gl_recovery_verdict_name(found.verdict),
				  gl_map_problem_name(found.bad_map));
	check_log(read_backup, found.end_lsn, true, false, backup.durable, &invalid);
	if (found.holes == 0 && invalid != UINT64_MAX)
		violation("a base backup has a hole that was not counted");
	if (found.holes > 0 && found.holes_end <= invalid && invalid != UINT64_MAX)
		violation("a base backup's holes end before the first");
	counts.backups++;
	counts.backup_holes += found.holes;
}

/* Copy the next block of some file. */
static void
backup_step(void)
{
	for (int blocks = 0; blocks < 6; blocks++)
	{
		uint32_t	open = 0;
		uint32_t	chosen;

		for (uint32_t i = 0; i < backup.count; i++)
			open += backup.file[i].done < backup.file[i].file->size_cache;
		if (open == 0)
		{
			backup_end();
			return;
		}
		chosen = sim_below(open);
		for (uint32_t i = 0; i < backup.count; i++)
		{
			SimFile    *file = backup.file[i].file;
			uint32_t	done = backup.file[i].done;
			uint32_t	size;

			if (done >= file->size_cache || chosen-- > 0)
				continue;
			size = file->size_cache - done < GL_BLOCK ? file->size_cache - done : GL_BLOCK;
			memcpy(backup.file[i].copy + done, file->data.cache + done, size);
			backup.file[i].done = backup.file[i].size = done + size;
			break;
		}
	}
}

/* ----- damage ----- */

/* Which durable records have bytes that changed?  The lowest of them. */
static Record *
mark_damaged(const SimFile *file, uint32_t entry, const uint8_t *before)
{
	Record	   *lowest = NULL;

	for (uint32_t i = 0; i < record_count; i++)
	{
		Record	   *record = &records[i];
		uint64_t	from = record->lsn;
		uint64_t	to = record->lsn + GL_RECORD_HEADER_SIZE + record->size;
		uint64_t	offset;

		record->damaged = false;
		if (from < entries[0].first_lsn)
			continue;
		if (from < entries[entry].base)
			from = entries[entry].base;
		if (to > entries[entry].end)
			to = entries[entry].end;
		if (from >= to)
			continue;
		offset = gl_segment_offset(entries[entry].first_lsn, from);
		if (memcmp(before + offset, file->data.cache + offset, to - from) == 0)
			continue;
		record->damaged = true;
		if (lowest == NULL)
			lowest = record;
	}
	return lowest;
}

/* Does what is left show that the damaged record was durable? */
static bool
is_proven(const Record *damaged)
{
	const GlMapEntry *newest = &entries[map.count - 1];

	if (damaged->lsn < newest->first_lsn)
		return true;
	for (const Record *r = damaged + 1; r < records + record_count; r++)
	{
		if (r->damaged || r->epoch != damaged->epoch || r->undurable == GL_UNDURABLE_UNKNOWN)
			continue;
		if (r->lsn - (uint64_t) r->undurable * GL_GRANULE > damaged->lsn ||
			r->next_lsn - damaged->lsn > ring_size)
			return true;
	}
	return false;
}

/*
 * The administrator ends a corrupt log where it is corrupt.  Until the new run's
 * first file is there, nothing has happened.  The damage stays.
 */
static bool
accept_end(GlRecoveryResult *sound, const GlRecoveryResult *corrupt)
{
	if (corrupt->verdict != GL_RECOVERY_CORRUPT || !sim_chance(4))
		return false;
	while (record_count > 0 && records[record_count - 1].next_lsn > corrupt->bad_lsn)
		record_count--;
	*sound = *corrupt;
	accepting = was_accepted = true;
	counts.accepted++;
	return true;
}

/*
 * Where recovery begins to read: with the newest segment, or where its oldest file
 * that is left took over; what that one repeats is not judged.
 */
static uint64_t
walk_begin(void)
{
	uint32_t	index = map.count - 1;
	const GlMapEntry *entry = &entries[index];

	for (uint32_t i = index; i-- > 0 && !entry->starts_run && entry->base % segment_size != 0;)
	{
		if (!gl_map_is_live(&entries[i]))
			continue;
		if (entries[i].end != entry->base)
			break;
		entry = &entries[i];
	}
	return entry->base % segment_size == 0 ? entry->base : entry->first_lsn;
}

static void
damage_bytes(GlRecoveryResult *sound)
{
	static uint8_t before[GL_BLOCK + (1 << 20)];
	const GlMapEntry *newest = &entries[map.count - 1];
	uint32_t	index = sim_chance(2) ? map.count - 1 : sim_below(map.count);
	SimFile    *file = entry_file[index];
	GlRecoveryResult found;
	Record	   *lowest;
	uint64_t	from = gl_segment_offset(entries[index].first_lsn, entries[index].base);
	uint64_t	to;
	uint64_t	at;
	uint64_t	invalid;

	/* somewhere in what this file has of the log */
	to = entries[index].end < sound->end_lsn ? entries[index].end : sound->end_lsn;
	if (to <= entries[index].base)
		return;
	to = gl_segment_offset(entries[index].first_lsn, to);
	at = from + sim_random() % (to - from);
	memcpy(before, file->data.cache, disk.capacity);
	switch (sim_below(3))
	{
		case 0:
			file->data.cache[at] ^= (uint8_t) (1 << sim_below(8));
			break;
		case 1:
			memset(file->data.cache + at / SECTOR * SECTOR, 0, SECTOR);
			break;
		default:
			memcpy(file->data.cache + at / SECTOR * SECTOR, pool + sim_below(POOL_SIZE - SECTOR), SECTOR);
			break;
	}

	lowest = mark_damaged(file, index, before);
	if (lowest != NULL)
	{
		bool		walked = lowest->epoch == newest->seed.epoch &&
			lowest->lsn >= newest->first_lsn / segment_size * segment_size &&
			lowest->lsn >= walk_begin() &&
			sound->end_lsn > newest->first_lsn / segment_size * segment_size;

		counts.damaged++;
		recover(false, read_disk, &found);
		if (found.verdict == GL_RECOVERY_CORRUPT && found.bad_lsn != lowest->lsn)
			violation("corrupt at %" PRIX64 ", not at %" PRIX64, found.bad_lsn, lowest->lsn);
		if (found.verdict == GL_RECOVERY_CORRUPT)
			counts.damage_detected++;
		else if (!walked)
		{
			counts.damage_read++;
			if (found.end_lsn != sound->end_lsn)
				violation("damage elsewhere moved the end to %" PRIX64, found.end_lsn);
		}
		else
		{
			counts.damage_unproven++;
			if (is_proven(lowest))
				violation("damage at %" PRIX64 " was provable, and called %s", lowest->lsn,
						  gl_recovery_verdict_name(found.verdict));
			if (found.end_lsn > lowest->lsn)
				violation("the log ends at %" PRIX64 ", beyond the damage at %" PRIX64,
						  found.end_lsn, lowest->lsn);
		}
		/* all around it is there; and it is where it is said to be */
		check_log(read_disk, sound->end_lsn, true, false, UINT64_MAX, &invalid);
		if (invalid != lowest->lsn && invalid >= unsure_below)
			violation("the walk stopped at %" PRIX64 ", the damage is at %" PRIX64,
					  invalid, lowest->lsn);
		for (uint32_t i = 0; i < record_count; i++)
			records[i].damaged = false;
		if (accept_end(sound, &found))
		{
			memcpy(file->data.disk, file->data.cache, disk.capacity);
			return;
		}
	}
	memcpy(file->data.cache, before, disk.capacity);
}

/* A file in the middle is cut, or gone. */
static void
damage_file(GlRecoveryResult *sound)
{
	GlRecoveryResult found;
	uint64_t	invalid;
	bool		comes_back = false;
	uint32_t	index;
	SimFile    *file;
	SimName		name;
	uint32_t	size;

	if (map.count < 3)
		return;
	index = 1 + sim_below(map.count - 2);
	if (!gl_map_is_live(&entries[index]))
		return;

	/*
	 * A continuation before a file that is dead leaves no trace in the headers
	 * when it is gone.  (A file before it that was truncated does tell.)
	 */
	if (!entries[index].starts_run && !gl_map_is_live(&entries[index + 1]))
		return;

	for (uint32_t i = 0; i < record_count; i++)
		records[i].damaged = records[i].next_lsn > entries[index].base &&
			records[i].lsn < entries[index].end;
	for (uint32_t i = 0; i < map.count; i++)
		comes_back = comes_back || !gl_map_is_live(&entries[i]);
	file = entry_file[index];
	name = file->name_cache;
	size = file->size_cache;
	counts.damaged++;

	/*
	 * Without the file that says where the log before it ended, what was cut
	 * off there would be back, if the files before were not truncated.
	 */
	comes_back = comes_back || (entries[index].starts_run &&
							entry_file[index - 1]->size_cache == disk.capacity);
	if (!comes_back && sim_chance(2))
	{
		file->name_cache.number = 0;
		/* or the file before, cut where this one took over, is now short */
		if (read_map())
			violation("file %u is gone, and nobody says so", name.number);
	}
	else
	{
		uint64_t	end = gl_segment_offset(entries[index].first_lsn, entries[index].end);
		uint64_t	lsn;

		file->size_cache = GL_BLOCK + sim_below((uint32_t) end - GL_BLOCK);
		lsn = gl_block_floor(name.first_lsn) + file->size_cache - GL_BLOCK;
		if (read_map() || fault.problem != GL_MAP_SHORT || fault.lsn > lsn ||
			fault.lsn + GL_GRANULE <= lsn)
			violation("file %u is short, and nobody says so", name.number);
	}
	recover(false, read_disk, &found);
	if (found.verdict != GL_RECOVERY_CORRUPT || found.bad_lsn > fault.lsn)
		violation("file %u is not whole, and recovery says %s", name.number,
				  gl_recovery_verdict_name(found.verdict));
	else
		counts.damage_detected++;
	check_log(read_disk, sound->end_lsn, true, false, UINT64_MAX, &invalid);
	for (uint32_t i = 0; i < record_count; i++)
		records[i].damaged = false;

	if (accept_end(sound, &found))
	{
		file->used = file->name_cache.number != 0;
		file->size_disk = file->size_cache;
		return;
	}
	file->name_cache = name;
	file->size_cache = size;
	read_map();
}

/* ----- another future ----- */

/*
 * The server ran on, and then the machine was set back to where it stood before
 * (a snapshot, a clone); only a file of that future has survived, and becomes a
 * spare.  It is full of records with the right log id, epochs and LSNs: the
 * nonce alone tells that they are not this log's.
 */
static void
leave_a_future(const GlRecoveryResult *found)
{
	static SimDisk saved;
	static uint8_t image[GL_BLOCK + (1 << 20)];
	static uint64_t epoch;
	static uint64_t handed;
	static uint64_t unsure;
	static int64_t time_before;
	static uint32_t record_count_before;
	static uint32_t arena_before;
	static bool closed_before;
	SimFile    *file;
	static bool have_image;

	for (int i = 0; i < SIM_FILES; i++)
	{
		saved.file[i] = disk.file[i];
		if (!disk.file[i].used)
			continue;
		saved.file[i].data.disk = malloc(disk.capacity);
		memcpy(saved.file[i].data.disk, disk.file[i].data.disk, disk.capacity);
	}
	have_image = false;
	epoch = seed.epoch;
	handed = handed_out;
	unsure = unsure_below;
	time_before = now;
	record_count_before = record_count;
	arena_before = arena_used;
	closed_before = closed;

	steps_left = 100 + sim_below(200);
	if (setjmp(crashed) == 0)
		run_writer(found);

	for (int i = 0; i < SIM_FILES; i++)
	{
		file = &disk.file[i];
		if (file->used && file->name_cache.number != 0 &&
			file->name_cache.first_lsn == found->next_lsn &&
			file->size_cache == disk.capacity)
		{
			memcpy(image, file->data.cache, disk.capacity);
			have_image = true;
		}
	}

	for (int i = 0; i < SIM_FILES; i++)
	{
		SimFile    *then = &saved.file[i];

		file = &disk.file[i];
		sectors_forget(&file->data);
		file->used = then->used;
		if (!then->used)
			continue;
		memcpy(file->data.disk, then->data.disk, disk.capacity);
		memcpy(file->data.cache, then->data.disk, disk.capacity);
		free(then->data.disk);
		file->failed = file->truncated = false;
		file->size_disk = then->size_disk;
		file->size_cache = then->size_cache;
		file->name_disk = then->name_disk;
		file->name_cache = then->name_cache;
	}
	seed.epoch = epoch;
	handed_out = handed;
	unsure_below = unsure;
	now = time_before;
	record_count = record_count_before;
	arena_used = arena_before;
	closed = closed_before;
	backup.running = false;

	if (have_image)
	{
		file = take_spare();
		file->name_disk.number = file->name_cache.number = 0;
		memcpy(file->data.disk, image, disk.capacity);
		memcpy(file->data.cache, image, disk.capacity);
		counts.futures++;
	}
}

/* ----- one crash after the other ----- */

static void
new_log(void)
{
	static const struct
	{
		uint32_t	segment;
		uint32_t	ring;
	}			sizes[] = {
		{1 << 15, 1 << 14}, {1 << 14, 1 << 14}, {1 << 16, 1 << 13}, {1 << 15, 1 << 12}
	};
	uint32_t	size = sim_below(4);

	segment_size = sizes[size].segment;
	ring_size = sizes[size].ring;
	if (sim_chance(400))
	{
		/* the smallest that a server would use */
		segment_size = 1 << 20;
		ring_size = 1 << 17;
	}
	disk_init(&disk, GL_BLOCK + segment_size);
	memset(&backup, 0, offsetof(typeof(backup), file));
	record_count = arena_used = 0;
	handed_out = 0;
	unsure_below = 0;
	closed = accepting = was_accepted = false;
	log_id = sim_random();
	seed.epoch = 0;
	now = 0;
}

static void
after_crash(GlRecoveryResult *found)
{
	uint64_t	invalid;
	uint64_t	last_lsn = 0;
	bool		power = !closed && !sim_chance(3);

	backup.running = false;
	disk_crash(&disk, power);
	if (!read_map() && !accepting)
		violation("%s in file %u", gl_map_problem_name(fault.problem), entries[fault.index].number);
	recover(false, read_disk, found);

	if (found->verdict == GL_RECOVERY_CORRUPT && accepting)
		return;
	accepting = false;
	if (found->verdict > GL_RECOVERY_TORN)
		violation("verdict %s at %" PRIX64, gl_recovery_verdict_name(found->verdict), found->bad_lsn);
	if (closed && found->verdict != GL_RECOVERY_CLEAN && found->verdict != GL_RECOVERY_TORN)
		violation("closed cleanly, and called %s", gl_recovery_verdict_name(found->verdict));
	if (found->verdict == GL_RECOVERY_CLEAN && !closed &&
		(record_count == 0 || records[record_count - 1].kind != GL_RECORD_CLOSE))
		violation("called clean, but was not closed");

	check_log(read_disk, found->end_lsn, false, true, UINT64_MAX, &invalid);
	if (record_count > 0)
	{
		const Record *last = &records[record_count - 1];

		last_lsn = last->lsn;
		/* one that was ended by request may have lost a whole run before that */
		if (last->next_lsn != found->end_lsn && found->end_lsn > unsure_below &&
			found->end_lsn > entries[0].first_lsn && !was_accepted)
			violation("the log ends at %" PRIX64 ", its last record at %" PRIX64,
					  found->end_lsn, last->next_lsn);
		if (last->time > found->last_time && last_lsn == found->last_lsn)
			violation("time goes back");
	}
	if (found->end_lsn > unsure_below && found->last_lsn != last_lsn && map.count > 0 &&
		found->last_lsn >= entries[0].first_lsn)
		violation("the last record is at %" PRIX64 ", not at %" PRIX64, last_lsn, found->last_lsn);

	if (map.count > 0 && sim_chance(3))
	{
		if (sim_chance(4) && unsure_below < entries[0].first_lsn)
			damage_file(found);
		else if (unsure_below < entries[0].first_lsn)
			damage_bytes(found);
	}
}

int
main(int argc, char **argv)
{
	static uint64_t crashes;
	static uint64_t first_seed;
	GlRecoveryResult found;

	crashes = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
	first_seed = (uint64_t) time(NULL) * 1000003;
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 10);
	else if (getenv("SIM_SEED") != NULL)
		first_seed = strtoull(getenv("SIM_SEED"), NULL, 10);
	sim_random_state = first_seed;
	printf("seed %" PRIu64 "\n", first_seed);
	fflush(stdout);

	for (uint32_t i = 0; i < POOL_SIZE; i++)
		pool[i] = (uint8_t) sim_random();
	for (crash_number = 1; crash_number <= crashes; crash_number++)
	{
		if ((crash_number - 1) % LOG_CRASHES == 0 || record_count > MAX_RECORDS / 2 ||
			arena_used > ARENA_SIZE / 2)
		{
			new_log();
			read_map();
			recover(false, read_disk, &found);
		}
		if (!accepting && sim_chance(20))
			leave_a_future(&found);
		steps_left = sim_chance(3) ? sim_below(12) : sim_below(250);
		if (setjmp(crashed) == 0)
			run_writer(&found);
		after_crash(&found);
		if (violations > 1000)
			break;
	}
	crash_number--;

	printf("%" PRIu64 " records in %" PRIu64 " runs, %" PRIu64 " continuations, %" PRIu64
		   " files recycled, %" PRIu64 " unacknowledged records found whole\n",
		   counts.records, counts.runs, counts.continuations, counts.recycled, counts.ghosts);
	printf("verdicts (each recovery once):");
	for (int i = 0; i <= GL_RECOVERY_BUFFER_TOO_SMALL; i++)
		printf(" %s %" PRIu64, gl_recovery_verdict_name((GlRecoveryVerdict) i), counts.verdict[i]);
	printf("\ndamaged %" PRIu64 " times: %" PRIu64 " detected by recovery, %" PRIu64
		   " in files that it does not read (found by a walk), %" PRIu64 " not provable\n",
		   counts.damaged, counts.damage_detected, counts.damage_read, counts.damage_unproven);
	printf("%" PRIu64 " corrupt logs ended by request, %" PRIu64 " files of another future, %" PRIu64
		   " base backups with %" PRIu64 " holes\n",
		   counts.accepted, counts.futures, counts.backups, counts.backup_holes);
	printf("%" PRIu64 " crashes, seed %" PRIu64 ": %" PRIu64 " invariant violations\n",
		   crash_number, first_seed, violations);
	return violations == 0 ? 0 : 1;
}
