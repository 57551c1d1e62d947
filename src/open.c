/*-------------------------------------------------------------------------
 *
 * open.c
 *		Open the log: recover what the files hold, begin a new run.
 *
 * The order matters: lock, control file, headers, the tail made durable
 * (tail.h), then recovery.c decides, then the new run gets its first LSN.  No
 * file is made here; the first append asks for that.
 *
 *-------------------------------------------------------------------------
 */
#include "open.h"

#include "access/xlog.h"
#include "compat.h"
#include "config.h"
#include "files.h"
#include "io_wait.h"
#include "miscadmin.h"
#include "recovery.h"
#include "shared.h"
#include "spares.h"
#include "storage/ipc.h"
#include "sync_method.h"
#include "tail.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define READ_BUFFER		(1024 * 1024)

/* What gl_log_accept_end needs of the last recovery. */
static GlRecoveryResult found;

static void
progress(void *arg, uint64_t done, uint64_t total)
{
	GlTailReader *reader = arg;
	int64		now_us = gl_now_us();

	CHECK_FOR_INTERRUPTS();
	/* Reading can take long; whoever is asked to end can read again later. */
	if (gl_stop_requested)
		proc_exit(1);
	if (now_us < reader->next_report_us)
		return;
	reader->next_report_us = now_us + 10 * 1000000;
	ereport(LOG,
			(errmsg("grouplog recovery in progress: %llu of %llu MB checked",
					(unsigned long long) (done >> 20), (unsigned long long) (total >> 20))));
}

/* New random numbers for a log, or a run. */
static bool
random64(uint64 *number, GlError *error)
{
	do
	{
		if (!pg_strong_random(number, sizeof(*number)))
		{
			gl_error_set(error, ERRCODE_INTERNAL_ERROR, 0, NULL,
						 "could not generate random numbers");
			return false;
		}
	} while (*number == 0);
	return true;
}

static bool
check_cluster(GlError *error)
{
	if (gl_control.system_identifier == GetSystemIdentifier())
		return true;
	if (gl_adopt)
	{
		ereport(LOG,
				(errmsg("grouplog takes over the log of the cluster with system identifier %llu",
						(unsigned long long) gl_control.system_identifier)));
		gl_control.system_identifier = GetSystemIdentifier();
		return gl_control_write(&gl_control, error);
	}
	gl_error_set(error, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, 0,
				 "If this is the log of this cluster before pg_upgrade, start the server once with \"grouplog.adopt = on\".",
				 "log directory \"%s\" belongs to another cluster", gl_directory);
	gl_error_detail(error, "Its system identifier is %llu, that of this cluster is %llu.",
					(unsigned long long) gl_control.system_identifier,
					(unsigned long long) GetSystemIdentifier());
	return false;
}

static void
describe(const GlRecoveryResult *result, bool restored)
{
	char		text[512];
	int			used;

	if (result->verdict == GL_RECOVERY_NEW)
	{
		gl_shared_set_text(gl_shared->recovery, "new log", sizeof(gl_shared->recovery));
		ereport(LOG, (errmsg("grouplog begins a new log in directory \"%s\"", gl_directory)));
		return;
	}
	used = snprintf(text, sizeof(text), "%s at " GL_LSN ", %llu records checked",
					gl_recovery_verdict_name(result->verdict),
					LSN_FORMAT_ARGS(result->end_lsn),
					(unsigned long long) result->records);
	if (result->bytes_behind > 0)
		used += snprintf(text + used, sizeof(text) - used, ", %llu bytes left behind",
						 (unsigned long long) result->bytes_behind);
	if (result->records_behind > 0 && result->verdict == GL_RECOVERY_TORN)
		used += snprintf(text + used, sizeof(text) - used,
						 " with %llu whole records, none of which shows that what is missing was durable",
						 (unsigned long long) result->records_behind);
	if (restored)
		used += snprintf(text + used, sizeof(text) - used, ", restored from a backup");
	if (restored && result->holes > 0)
		snprintf(text + used, sizeof(text) - used, " with %llu holes below " GL_LSN,
				 (unsigned long long) result->holes, LSN_FORMAT_ARGS(result->holes_end));
	gl_shared_set_text(gl_shared->recovery, text, sizeof(gl_shared->recovery));
	ereport(result->records_behind > 0 ? WARNING : LOG, (errmsg("grouplog recovery: %s", text)));
}

static void
set_read_error(const GlMapEntry *entry, uint64 lsn, int os_error, GlError *error)
{
	char		path[MAXPGPATH];

	gl_segment_path(path, entry->number, entry->first_lsn);
	gl_error_set(error, gl_error_sqlstate(os_error), os_error, NULL,
				 "could not read file \"%s\" at LSN " GL_LSN ": %s", path,
				 LSN_FORMAT_ARGS(lsn), strerror(os_error));
}

static void
set_corrupt(const GlCatalog *catalog, GlError *error)
{
	const GlMapEntry *entry = found.bad_index < catalog->map.count ?
		&catalog->map.entries[found.bad_index] : NULL;
	char		path[MAXPGPATH] = "?";

	if (entry != NULL)
		gl_segment_path(path, entry->number, entry->first_lsn);
	gl_error_set(error, ERRCODE_DATA_CORRUPTED, 0,
				 "Read what is there, restore the file from a backup, or end the log with grouplog.accept_end.",
				 "the log is corrupt at LSN " GL_LSN " in file \"%s\"",
				 LSN_FORMAT_ARGS(found.bad_lsn), path);
	if (found.bad_map != GL_MAP_OK)
		gl_error_detail(error, "The chain of files is broken: %s. Valid records go on to " GL_LSN ".",
						gl_map_problem_name(found.bad_map), LSN_FORMAT_ARGS(found.valid_end));
	else
		gl_error_detail(error, "The record check says: %s. Later records show that it was durable; valid records go on to " GL_LSN ".",
						gl_record_check_name(found.bad_check), LSN_FORMAT_ARGS(found.valid_end));
}

/*
 * The run begins at next_lsn; everything of it that does not need a file yet.
 */
static bool
begin_run(uint64 end, uint64 next_lsn, int64 last_time, GlError *error)
{
	uint64		nonce;

	if (!random64(&nonce, error))
		return false;
	atomic_store(&gl_shared->nonce, nonce);
	atomic_store(&gl_shared->end_before, end);
	/* Where the files that were walked hold none, a place in the last one. */
	atomic_store(&gl_shared->last_lsn,
				 found.last_lsn != 0 || end == 0 ? found.last_lsn : end - GL_GRANULE);
	atomic_store(&gl_shared->run_start, next_lsn);
	gl_ring_start(gl_ring(), next_lsn, last_time);
	return true;
}

/* Readers may read up to here, and nobody may append. */
static void
begin_read_only(void)
{
	GlRing	   *ring = gl_ring();

	atomic_store(&gl_shared->end_before, found.valid_end);
	atomic_store(&gl_shared->run_start, found.next_lsn);
	gl_ring_start(ring, found.next_lsn, found.last_time);
	atomic_fetch_or(&ring->insert_lsn, GL_SEALED);
}

/* Recover with as much buffer as the largest record needs. */
static void
run_recovery(const GlCatalog *catalog, bool restored)
{
	GlTailReader	reader = {.map = &catalog->map,.open_index = -1,.fd = -1,.direct = true};
	uint32		buf_size = READ_BUFFER;

	reader.next_report_us = gl_now_us() + 5 * 1000000;
	for (;;)
	{
		char	   *memory = palloc_extended(buf_size + GL_BLOCK, MCXT_ALLOC_HUGE);

		gl_recovery_run(&catalog->map, &catalog->fault, restored, gl_shared->segment_size,
						gl_tail_read, &reader, (void *) TYPEALIGN(GL_BLOCK, memory), buf_size,
						progress, &found);
		pfree(memory);
		if (found.verdict != GL_RECOVERY_BUFFER_TOO_SMALL)
			break;
		buf_size = TYPEALIGN(GL_BLOCK, found.buf_needed);
	}
	gl_tail_close(&reader);
}

static bool
open_files(const GlCatalog *catalog, GlError *error)
{
	gl_files_start(catalog);
	gl_sync_method_probe();
	return gl_spares_start(error);
}

/* Everything, in the order in which it must happen; false: unavailable. */
static bool
open_log(GlState *state, GlError *error)
{
	GlCatalog  *catalog;
	bool		exists;
	bool		restored;
	uint64		epoch = 0;

	if (!gl_directory_open(&gl_control, &exists, error))
		return false;
	if (exists && !check_cluster(error))
		return false;

	catalog = gl_catalog_read(exists ? gl_control.holes_end : 0, error);
	if (catalog == NULL)
		return false;
	if (catalog->strangers > 0)
		ereport(LOG,
				(errmsg("%u files in log directory \"%s\" are not grouplog's, and are left alone",
						catalog->strangers, gl_directory),
				 errdetail("One of them is \"%s\".", catalog->stranger)));

	if (!exists)
	{
		if (catalog->map.count > 0 || catalog->bad_headers > 0)
		{
			gl_error_set(error, ERRCODE_DATA_CORRUPTED, 0,
						 "Restore the file from a backup, or move the whole directory away to begin a new log.",
						 "log directory \"%s\" has segments but no control file", gl_directory);
			return false;
		}
		memset(&gl_control, 0, sizeof(gl_control));
		gl_control.system_identifier = GetSystemIdentifier();
		if (!random64(&gl_control.log_id, error) || !gl_control_write(&gl_control, error))
			return false;
	}
	atomic_store(&gl_shared->log_id, gl_control.log_id);

	for (uint32 i = 0; i < catalog->map.count; i++)
	{
		epoch = Max(epoch, catalog->map.entries[i].seed.epoch);
		if (catalog->map.entries[i].seed.log_id != gl_control.log_id)
		{
			gl_error_set(error, ERRCODE_DATA_CORRUPTED, 0,
						 "Move the files that are not of this log away.",
						 "file %u in log directory \"%s\" belongs to another log",
						 catalog->map.entries[i].number, gl_directory);
			return false;
		}
	}
	atomic_store(&gl_shared->epoch, epoch + 1);
	atomic_store(&gl_shared->before_number, catalog->last_number);

	restored = gl_restored_mark_exists();
	if (!gl_tail_sync(&catalog->map, error))
		return false;
	atomic_store(&gl_shared->fsync_on, enableFsync ? 1 : 0);
	run_recovery(catalog, restored);

	if (found.verdict == GL_RECOVERY_READ_ERROR)
	{
		set_read_error(&catalog->map.entries[found.bad_index], found.bad_lsn, found.error, error);
		return false;
	}
	if (catalog->bad_headers > 0 && !restored && found.verdict != GL_RECOVERY_CORRUPT)
	{
		char		path[MAXPGPATH];

		found.verdict = GL_RECOVERY_CORRUPT;
		if (found.end_lsn == 0)
			found.end_lsn = found.valid_end = catalog->bad_lsn;
		found.bad_lsn = found.end_lsn;
		gl_segment_path(path, catalog->bad_number, catalog->bad_lsn);
		gl_error_set(error, ERRCODE_DATA_CORRUPTED, 0,
					 "Read what is there, restore the file from a backup, or end the log with grouplog.accept_end.",
					 "the log is corrupt: file \"%s\" has no valid header", path);
		gl_error_detail(error, "The header check says: %s. The file's records begin at " GL_LSN "; the log can be ended at " GL_LSN ", valid records go on to " GL_LSN ".",
						gl_header_check_name(catalog->bad_check), LSN_FORMAT_ARGS(catalog->bad_lsn),
						LSN_FORMAT_ARGS(found.end_lsn), LSN_FORMAT_ARGS(found.valid_end));
	}
	if (!restored && catalog->last_number < gl_control.last_number)
	{
		if (found.end_lsn == 0)
			found.end_lsn = found.valid_end = gl_control.last_lsn;
		if (found.verdict != GL_RECOVERY_CORRUPT)
		{
			found.verdict = GL_RECOVERY_CORRUPT;
			found.bad_lsn = found.end_lsn;
			gl_error_set(error, ERRCODE_DATA_CORRUPTED, 0,
						 "Read what is there, restore the file from a backup, or end the log with grouplog.accept_end.",
						 "the log is corrupt: its newest file, number %u, is missing in directory \"%s\"",
						 gl_control.last_number, gl_directory);
			gl_error_detail(error, "Its records begin at " GL_LSN "; the log can be ended at " GL_LSN ".",
							LSN_FORMAT_ARGS(gl_control.last_lsn), LSN_FORMAT_ARGS(found.end_lsn));
		}
	}

	/* How far the log went in files that cannot be read: further than that not. */
	if (catalog->bad_headers > 0 || catalog->last_number < gl_control.last_number)
		found.next_lsn = Max(found.next_lsn,
							 TYPEALIGN64(gl_shared->segment_size,
										 Max(catalog->highest_lsn, gl_control.last_lsn) +
										 GL_SEGMENT_SIZE_MAX + GL_RING_SIZE_MAX));
	if (restored)
		gl_control.last_number = catalog->last_number;
	describe(&found, restored);

	if (!open_files(catalog, error))
		return false;

	if (found.verdict == GL_RECOVERY_CORRUPT)
	{
		if (error->sqlstate == 0)
			set_corrupt(catalog, error);
		begin_read_only();
		*state = GL_STATE_CORRUPT;
	}
	else
	{
		if (atomic_load(&gl_shared->sync_method) != GL_SYNC_OPEN_DATASYNC &&
			found.verdict != GL_RECOVERY_NEW && found.verdict != GL_RECOVERY_CLEAN &&
			!gl_tail_rewrite(&catalog->map, found.end_lsn, error))
			return false;
		if (!begin_run(found.end_lsn, found.next_lsn, found.last_time, error))
			return false;
		*state = GL_STATE_OPEN;
	}
	if (catalog->map.count == 0)
		atomic_store(&gl_shared->oldest_lsn,
					 *state == GL_STATE_CORRUPT ? found.end_lsn : found.next_lsn);

	/*
	 * The mark of a base backup goes when this run has a file, and the control
	 * file says below which LSN holes are no corruption.
	 */
	if (restored && *state == GL_STATE_OPEN)
	{
		if (found.holes > 0)
			ereport(WARNING,
					(errmsg("the log was restored from a base backup and has %llu holes below " GL_LSN,
							(unsigned long long) found.holes, LSN_FORMAT_ARGS(found.holes_end)),
					 errdetail("Every record that was durable when the backup began is there.")));
		gl_control.holes_end = Max(gl_control.holes_end, found.holes_end);
		if (found.verdict != GL_RECOVERY_NEW &&
			!gl_files_activate(found.next_lsn, found.end_lsn, error))
			return false;
		if (!gl_control_write(&gl_control, error) || !gl_restored_mark_remove(error))
			return false;
	}
	atomic_store(&gl_shared->holes_end, gl_control.holes_end);
	return true;
}

void
gl_log_open(GlError *error)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "grouplog recovery",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GlState		state = GL_STATE_UNAVAILABLE;

	gl_error_clear(error);
	if (!open_log(&state, error))
		state = GL_STATE_UNAVAILABLE;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);

	gl_shared_set_error(&gl_shared->problem, error);
	atomic_store(&gl_shared->state, (uint32) state);
	gl_wakeup_broadcast(&gl_shared->durable, GL_WAKE_ALL);
	gl_wakeup_broadcast(&gl_shared->room, GL_WAKE_ALL);
}

/*
 * Does a record begin at the LSN, or one that begins before end there?  False if
 * that cannot be found out.
 */
static bool
find_boundary(const GlLogMap *map, uint64 lsn, bool *is_boundary, GlError *error)
{
	GlTailReader	reader = {.map = map,.open_index = -1,.fd = -1,.direct = true};
	GlWalk		walk;
	GlWalkRecord record;
	GlWalkStatus status = GL_WALK_RECORD;
	const GlMapEntry *entry;
	uint32		buf_size = READ_BUFFER;
	char	   *memory;
	uint64		at = lsn;
	uint32		index;
	bool		resync = false;

	*is_boundary = false;
	if (lsn % GL_GRANULE != 0 || !gl_map_find(map, &at, &index) || at != lsn)
		return true;

	entry = &map->entries[index];
	memory = palloc_extended(buf_size + GL_BLOCK, MCXT_ALLOC_HUGE);
	gl_walk_init(&walk, map, gl_tail_read, &reader,
				 (void *) TYPEALIGN(GL_BLOCK, memory), buf_size,
				 Max(entry->base, entry->first_lsn), found.valid_end);
	while (walk.lsn < lsn && status != GL_WALK_END && status != GL_WALK_READ_ERROR)
	{
		CHECK_FOR_INTERRUPTS();
		status = resync ? gl_walk_resync(&walk, &record) : gl_walk_next(&walk, &record);
		if (status == GL_WALK_BUFFER_TOO_SMALL)
		{
			buf_size = TYPEALIGN(GL_BLOCK, walk.buf_needed);
			pfree(memory);
			memory = palloc_extended(buf_size + GL_BLOCK, MCXT_ALLOC_HUGE);
			gl_walk_set_buffer(&walk, (void *) TYPEALIGN(GL_BLOCK, memory), buf_size);
			continue;
		}
		if (status == GL_WALK_RECORD && record.lsn == lsn)
			*is_boundary = true;
		resync = status == GL_WALK_INVALID;
	}
	*is_boundary = *is_boundary || walk.lsn == lsn;
	gl_tail_close(&reader);
	pfree(memory);
	if (status != GL_WALK_READ_ERROR)
		return true;
	set_read_error(&map->entries[walk.index], walk.lsn, walk.error, error);
	return false;
}

bool
gl_log_accept_end(uint64 lsn, GlError *error)
{
	GlCatalog  *catalog;
	uint64		oldest = atomic_load(&gl_shared->oldest_lsn);
	uint64		bad_lsn;
	bool		is_boundary;

	if (lsn < oldest || lsn > found.valid_end)
	{
		gl_error_set(error, ERRCODE_INVALID_PARAMETER_VALUE, 0,
					 "The log can end at the LSN at which it is corrupt, or at any record's beginning or end.",
					 "LSN " GL_LSN " is not in the log", LSN_FORMAT_ARGS(lsn));
		gl_error_detail(error, "The log holds " GL_LSN " to " GL_LSN ".",
						LSN_FORMAT_ARGS(oldest), LSN_FORMAT_ARGS(found.valid_end));
		return false;
	}

	catalog = gl_catalog_read(gl_control.holes_end, error);
	if (catalog == NULL)
		return false;
	is_boundary = lsn == found.bad_lsn || lsn == found.valid_end || lsn == found.end_lsn;
	if (!is_boundary && !find_boundary(&catalog->map, lsn, &is_boundary, error))
		return false;
	if (!is_boundary)
	{
		gl_error_set(error, ERRCODE_INVALID_PARAMETER_VALUE, 0,
					 "grouplog.verify() shows where the log is corrupt.",
					 "no record begins or ends at LSN " GL_LSN, LSN_FORMAT_ARGS(lsn));
		return false;
	}

	bad_lsn = found.bad_lsn;
	if (catalog->bad_headers > 0)
		bad_lsn = Min(bad_lsn, catalog->bad_lsn);

	/*
	 * The newest file may have been cut at an end that only a file after it knew,
	 * whose header is bad now.
	 */
	if (catalog->map.count > 0)
	{
		const GlMapEntry *newest = &catalog->map.entries[catalog->map.count - 1];
		uint64		held = newest->file_size <= GL_BLOCK ? newest->first_lsn :
			gl_block_floor(newest->first_lsn) + newest->file_size - GL_BLOCK;

		bad_lsn = Min(bad_lsn, held);
	}
	if (lsn > bad_lsn)
	{
		gl_control.holes_end = Max(gl_control.holes_end, lsn);
		if (!gl_control_write(&gl_control, error))
			return false;
		atomic_store(&gl_shared->holes_end, gl_control.holes_end);
	}
	if (!begin_run(lsn, found.next_lsn, found.last_time, error))
		return false;

	/*
	 * This file is what ends the log there.  Where only its name could not be
	 * made durable, the log is ended all the same, but not for good: nothing is
	 * acknowledged before another file's name is.
	 */
	atomic_store(&gl_shared->segment_number, 0);
	if (!gl_files_activate(found.next_lsn, lsn, error) &&
		atomic_load(&gl_shared->segment_number) == 0)
	{
		atomic_fetch_or(&gl_ring()->insert_lsn, GL_SEALED);
		atomic_store(&gl_shared->end_before, found.valid_end);
		return false;
	}
	ereport(LOG,
			(errmsg("grouplog: the log was ended at " GL_LSN " by request, and goes on at " GL_LSN,
					LSN_FORMAT_ARGS(lsn), LSN_FORMAT_ARGS(found.next_lsn))));
	atomic_store(&gl_shared->state, GL_STATE_OPEN);
	gl_wakeup_broadcast(&gl_shared->room, GL_WAKE_ALL);
	return error->sqlstate == 0;
}
