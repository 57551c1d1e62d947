/*-------------------------------------------------------------------------
 *
 * files.c
 *		The writer's files: the list, the file being written, retention.
 *
 *-------------------------------------------------------------------------
 */
#include "files.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/transam.h"
#include "compat.h"
#include "config.h"
#include "io_wait.h"
#include "miscadmin.h"
#include "shared.h"
#include "spares.h"
#include "storage/fd.h"
#include "sync_method.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define BUDGET_RETRY_US	INT64CONST(60000000)

/* One file of the log, oldest first. */
typedef struct ListedFile
{
	uint32		number;
	uint64		first_lsn;
	uint64		end;			/* where its authority ends */
	uint64		bytes;
	uint64		nonce;
	uint64		segment_size;
} ListedFile;

GlCurrentFile gl_current = {.fd = -1};

static ListedFile *files = NULL;
static uint32 file_count = 0;
static uint32 file_capacity = 0;
static uint32 last_file_number = 0; /* valid or not */
static uint64 other_bytes = 0;	/* control file and the like */

/* The lowest-numbered file that was written while fsync was off; 0: none. */
static uint32 unsynced_from = 0;

/* A file has come or gone, but perhaps not durably. */
static bool directory_unsynced = false;

/*
 * Before another one comes or goes: a crash must not find the later change of
 * the directory without the earlier one, which would look like a gap.
 */
static bool
settle_directory(GlError *error)
{
	if (directory_unsynced && !gl_directory_sync(error))
		return false;
	directory_unsynced = false;
	return true;
}

static void
publish_bytes(void)
{
	atomic_store(&gl_shared->directory_bytes, gl_files_bytes());
	atomic_fetch_add(&gl_shared->directory_generation, 1);
}

static void
list_add(const ListedFile *file)
{
	if (files == NULL)
	{
		file_capacity = 64;
		files = MemoryContextAlloc(TopMemoryContext, file_capacity * sizeof(ListedFile));
	}
	else if (file_count == file_capacity)
	{
		file_capacity *= 2;
		files = repalloc_huge(files, file_capacity * sizeof(ListedFile));
	}
	files[file_count++] = *file;
}

static void
list_drop_first(void)
{
	memmove(files, files + 1, --file_count * sizeof(ListedFile));
}

static void
publish_oldest(void)
{
	uint64		oldest = file_count > 0 ? files[0].first_lsn : gl_ring_durable_lsn(gl_ring());

	atomic_store(&gl_shared->oldest_lsn, oldest);
}

void
gl_files_start(const GlCatalog *catalog)
{
	file_count = 0;
	for (uint32 i = 0; i < catalog->map.count; i++)
	{
		const GlMapEntry *entry = &catalog->map.entries[i];
		ListedFile	file = {
			.number = entry->number,
			.first_lsn = entry->first_lsn,
			.end = entry->end,
			.bytes = entry->file_size,
			.nonce = entry->seed.nonce,
			.segment_size = entry->segment_size
		};

		list_add(&file);
	}
	last_file_number = Max(catalog->last_number, gl_control.last_number);
	other_bytes = GL_BLOCK;
	publish_oldest();
	publish_bytes();
}

uint64
gl_files_bytes(void)
{
	uint64		bytes = other_bytes + gl_spares_ready() * gl_spare_bytes();

	for (uint32 i = 0; i < file_count; i++)
		bytes += files[i].bytes;
	return bytes;
}

static bool
open_current(const char *path, GlError *error)
{
	int			flags = gl_sync_method_open_flags();

	gl_current.fd = gl_open_file(path, O_RDWR | flags);
	if (gl_current.fd < 0)
	{
		gl_error_set(error, gl_error_sqlstate(errno), errno, NULL,
					 "could not open file \"%s\": %s", path, strerror(errno));
		return false;
	}
	ReserveExternalFD();
	gl_current.direct = (flags & O_DIRECT) != 0;
	gl_current.dsync = (flags & O_DSYNC) != 0;
	atomic_store(&gl_shared->segment_flags, flags);
	return true;
}

void
gl_files_close(void)
{
	if (gl_current.fd < 0)
		return;
	close(gl_current.fd);
	ReleaseExternalFD();
	gl_current.fd = -1;
}

void
gl_files_abandon(void)
{
	GlRing	   *ring = gl_ring();

	/* What is not claimed yet waits for the next file. */
	gl_files_close();
	atomic_store(&ring->limit_lsn, gl_ring_insert_lsn(ring));
}

void
gl_files_set_limit(void)
{
	GlRing	   *ring = gl_ring();
	uint64		limit;

	/*
	 * Without a file, nothing may be claimed beyond what the file before it
	 * was ready for: where the limit stands.  The ring is never larger than a
	 * segment, so one spare is as good as many.
	 */
	if (gl_current.fd < 0)
		return;
	limit = gl_current.full_end;
	if (gl_spares_ready() > 0)
		limit += gl_shared->segment_size;
	if (limit != atomic_load(&ring->limit_lsn))
	{
		/* Never lower: a claim may have used it. */
		if (limit > atomic_load(&ring->limit_lsn))
			atomic_store(&ring->limit_lsn, limit);
		gl_wakeup_broadcast(&gl_shared->room, GL_WAKE_ALL);
	}
}

static void
fill_header(GlSegmentHeader *header, uint64 first_lsn, uint64 end_before)
{
	memset(header, 0, sizeof(*header));
	header->segment_size = gl_shared->segment_size;
	header->ring_size = gl_shared->ring_size;
	header->system_identifier = gl_control.system_identifier;
	header->log_id = gl_control.log_id;
	header->number = last_file_number + 1;
	header->timeline = gl_wal_timeline();
	header->first_lsn = first_lsn;
	header->end_before = end_before;
	header->epoch = atomic_load(&gl_shared->epoch);
	header->nonce = atomic_load(&gl_shared->nonce);
	header->nonce_before = file_count > 0 ? files[file_count - 1].nonce : 0;
	if (file_count > 0 && files[file_count - 1].number != last_file_number)
		header->follows = files[file_count - 1].number;
	header->next_xid = U64FromFullTransactionId(ReadNextFullTransactionId());
	header->created = GetCurrentTimestamp();
	gl_segment_header_seal(header);
}

/*
 * Open a spare to write a header into it.  It loses its ready name first: should
 * we die now, our write may land late, and nobody may use the file then.
 */
static bool
take_spare(char *path, uint64 first_lsn, GlError *error)
{
	bool		continuation = first_lsn % gl_shared->segment_size != 0;

	for (;;)
	{
		char		ready_path[MAXPGPATH];
		uint32		spare;

		if (!gl_spares_take(&spare))
		{
			if (!gl_spares_make_one(continuation, error))
				return false;
			continue;
		}
		gl_spare_path(ready_path, spare, true);
		gl_spare_path(path, spare, false);
		if (rename(ready_path, path) == 0)
		{
			if (open_current(path, error))
				return true;
			(void) unlink(path);
			return false;
		}
		if (errno != ENOENT)
			return gl_file_error(error, errno, "rename file", ready_path);
		/* Somebody has removed it: the next one, or a new one. */
	}
}

bool
gl_files_activate(uint64 first_lsn, uint64 end_before, GlError *error)
{
	GlRing	   *ring = gl_ring();
	char		spare_path[MAXPGPATH];
	char		path[MAXPGPATH];
	char	   *memory;
	char	   *blocks;
	uint64		base = gl_block_floor(first_lsn);
	uint64		cut;
	GlIoOp		op = {.kind = GL_IO_WRITE};
	ListedFile	file;
	GlError		hint_error;
	int			failed;

	gl_files_close();
	if (!settle_directory(error) || !take_spare(spare_path, first_lsn, error))
		return false;
	gl_segment_path(path, last_file_number + 1, first_lsn);

	/* Header, and what the block holds before first_lsn, in one write. */
	memory = palloc0(3 * GL_BLOCK);
	blocks = (char *) TYPEALIGN(GL_BLOCK, memory);
	fill_header((GlSegmentHeader *) blocks, first_lsn, end_before);
	if (first_lsn > base)
		gl_ring_read(ring, base, blocks + GL_BLOCK, first_lsn - base);

	op.fd = gl_current.fd;
	op.direct = gl_current.direct;
	op.sync_after = enableFsync && !gl_current.dsync;
	op.iovcnt = 1;
	op.iov[0].iov_base = blocks;
	op.iov[0].iov_len = first_lsn > base ? 2 * GL_BLOCK : GL_BLOCK;
	failed = gl_io_perform(&op);
	pfree(memory);
	if (failed != 0)
	{
		/* This file has failed a write: never again. */
		gl_files_close();
		(void) unlink(spare_path);
		gl_error_set(error, gl_error_sqlstate(failed), failed, NULL,
					 "could not write to file \"%s\": %s", spare_path, strerror(failed));
		return false;
	}

	if (rename(spare_path, path) != 0)
	{
		failed = errno;
		gl_files_close();
		(void) unlink(spare_path);
		gl_error_set(error, gl_error_sqlstate(failed), failed, NULL,
					 "could not rename file \"%s\" to \"%s\": %s", spare_path, path, strerror(failed));
		return false;
	}

	/*
	 * From here on the file counts, whether or not the directory sync succeeds:
	 * a crash may find it.  So it is in the list; but it is only used if the
	 * name is durable.
	 */
	file.number = ++last_file_number;
	file.first_lsn = first_lsn;
	file.end = gl_segment_full_end(first_lsn, gl_shared->segment_size);
	file.bytes = gl_spare_bytes();
	file.nonce = atomic_load(&gl_shared->nonce);
	file.segment_size = gl_shared->segment_size;

	cut = end_before == first_lsn ? base : end_before;
	for (uint32 i = 0; i < file_count; i++)
		files[i].end = Min(files[i].end, cut);
	list_add(&file);
	gl_current.number = file.number;
	gl_current.first_lsn = first_lsn;
	gl_current.full_end = file.end;
	atomic_store(&gl_shared->segment_number, file.number);
	atomic_store(&gl_shared->segment_first_lsn, first_lsn);
	if (file_count == 1)
		publish_oldest();
	publish_bytes();

	if (!enableFsync && unsynced_from == 0)
		unsynced_from = file.number;

	directory_unsynced = true;
	if (!settle_directory(error))
	{
		gl_files_close();
		return false;
	}

	/* So that it is missed if it goes.  A hint: it may be one behind. */
	gl_control.last_number = file.number;
	gl_control.last_lsn = first_lsn;
	if (!gl_control_write(&gl_control, &hint_error))
		gl_error_report(LOG, &hint_error);

	/*
	 * A file that is left behind in its middle gives back what it does not
	 * use.  It keeps what a continuation repeats of it: a base backup may get
	 * this file after, and the next one before it was made.
	 */
	if (file_count > 1)
	{
		ListedFile *before = &files[file_count - 2];
		uint64		end = Min(end_before, gl_segment_full_end(before->first_lsn, before->segment_size));
		uint64		size = end > gl_block_floor(before->first_lsn) ?
			gl_segment_offset(before->first_lsn, end) : GL_BLOCK;

		if (before->bytes > size)
		{
			GlError		trim_error;

			if (gl_segment_trim(before->number, before->first_lsn, end, &trim_error))
			{
				before->bytes = size;
				publish_bytes();
			}
			else
				gl_error_report(LOG, &trim_error);
		}
	}
	gl_files_set_limit();
	return true;
}

/* Removing the oldest file removes every record before this LSN. */
static uint64
oldest_file_end(void)
{
	/*
	 * A continuation answers from its block's beginning, but alone only from
	 * its first LSN on: what it repeats may begin in the middle of a record.
	 */
	if (files[1].nonce == files[0].nonce)
		return files[1].first_lsn;
	return files[0].end;
}

/*
 * Before the oldest file goes: so must files that are in nobody's list, since
 * they had no valid header when the log was ended before them.  It is a file
 * after them that says that they are not missed.
 */
static bool
begin_removal(uint64 *freed, GlError *error)
{
	*freed = 0;
	if (!settle_directory(error))
		return false;
	directory_unsynced = true;
	return gl_segment_remove_older(files[0].number, freed, error);
}

/*
 * The oldest LSN goes up before the file goes, so that a reader who finds
 * strange bytes sees that they are no longer the log's.
 */
static bool
remove_oldest(uint64 *freed, GlError *error)
{
	ListedFile	file = files[0];
	uint64		given_up;

	*freed = 0;
	if (!begin_removal(&given_up, error))
		return false;
	atomic_store(&gl_shared->oldest_lsn, files[1].first_lsn);
	if (gl_segment_remove(file.number, file.first_lsn, freed, error))
		directory_unsynced = false;
	else
	{
		char		path[MAXPGPATH];

		gl_segment_path(path, file.number, file.first_lsn);
		if (access(path, F_OK) == 0)
		{
			publish_oldest();
			return false;
		}
	}
	*freed += given_up;
	list_drop_first();
	publish_bytes();
	gl_stat_add(&gl_shared->stats.segments_removed, 1);
	return true;
}

bool
gl_files_truncate_one(uint64 before, bool *removed, uint64 *freed, GlError *error)
{
	*removed = false;
	*freed = 0;
	if (file_count < 2 || oldest_file_end() > before)
		return true;
	*removed = remove_oldest(freed, error);
	return *removed;
}

bool
gl_files_recyclable(void)
{
	return file_count > 1;
}

bool
gl_files_recycle_oldest(bool *became_spare, GlError *error)
{
	ListedFile	file = files[0];
	uint32		spare;
	uint64		given_up;
	bool		renamed;

	*became_spare = false;
	if (file.bytes != gl_spare_bytes() || gl_spares_ready() >= GL_SPARES_WANTED)
	{
		uint64		freed;

		return remove_oldest(&freed, error);
	}

	if (!begin_removal(&given_up, error))
		return false;
	atomic_store(&gl_shared->oldest_lsn, files[1].first_lsn);
	spare = gl_spares_next_number();
	*became_spare = gl_segment_recycle(file.number, file.first_lsn, spare, &renamed, error);
	if (!renamed)
	{
		publish_oldest();
		return false;
	}
	list_drop_first();
	if (*became_spare)
	{
		directory_unsynced = false;
		gl_spares_add(spare);
	}
	publish_bytes();
	gl_stat_add(&gl_shared->stats.segments_recycled, 1);
	return *became_spare;
}

void
gl_files_keep_budget(int64 now_us)
{
	static int64 retry_us = 0;
	GlError		error;
	uint64		freed;

	if (gl_on_full != GL_ON_FULL_RECYCLE || file_count < 2 || now_us < retry_us ||
		gl_files_bytes() <= gl_config_max_bytes())
		return;
	if (!remove_oldest(&freed, &error))
	{
		gl_error_report(LOG, &error);
		retry_us = now_us + BUDGET_RETRY_US;
	}
}

bool
gl_files_newest_full_at(uint64 lsn)
{
	const ListedFile *last;

	if (file_count == 0)
		return false;
	last = &files[file_count - 1];
	return gl_segment_full_end(last->first_lsn, last->segment_size) == lsn;
}

uint64
gl_files_slack(void)
{
	const ListedFile *last;
	uint64		durable = gl_ring_durable_lsn(gl_ring());
	uint64		used;

	if (file_count == 0)
		return 0;
	last = &files[file_count - 1];
	used = gl_segment_offset(last->first_lsn, Min(durable, last->end));
	return last->bytes > used ? last->bytes - used : 0;
}

bool
gl_files_sync_all(GlError *error)
{
	for (uint32 i = 0; i < file_count && unsynced_from != 0; i++)
	{
		if (files[i].number >= unsynced_from &&
			!gl_segment_sync(files[i].number, files[i].first_lsn, error))
			return false;
	}
	unsynced_from = 0;
	return gl_directory_sync(error);
}

bool
gl_files_reopen(GlError *error)
{
	char		path[MAXPGPATH];

	if (!enableFsync)
	{
		if (unsynced_from == 0)
			unsynced_from = Max(gl_current.number, 1);
	}
	else if (!gl_files_sync_all(error))
		return false;

	if (gl_current.fd < 0)
		return true;
	gl_files_close();
	gl_segment_path(path, gl_current.number, gl_current.first_lsn);
	return open_current(path, error);
}
