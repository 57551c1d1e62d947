/*-------------------------------------------------------------------------
 *
 * spares.c
 *		Files made ahead of need.
 *
 * A spare is zero-filled, not just allocated: an unwritten extent would cost a
 * journal commit at each sync.  It is filled in chunks, one in flight at a
 * time, beside the groups' own writes; the second spare is filled no faster
 * than the log grows towards needing it, so that the filling does not compete
 * for a slow device.
 *
 *-------------------------------------------------------------------------
 */
#include "spares.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compat.h"
#include "config.h"
#include "files.h"
#include "io_wait.h"
#include "miscadmin.h"
#include "shared.h"
#include "storage/fd.h"
#include "sync_method.h"
#include "utils/memutils.h"

#define CHUNK_SIZE		(1024 * 1024)
#define MAX_SPARES		8
#define RETRY_US		INT64CONST(1000000)

static uint32 ready[MAX_SPARES];
static uint32 ready_count = 0;
static uint32 last_number = 0;

/* The spare in the making; fd < 0: none. */
static int	fill_fd = -1;
static uint32 fill_number;
static uint64 fill_done;		/* bytes written */
static bool fill_syncing;
static GlIoOp fill_op;
static void *zeros = NULL;

/* After a failure: not before this time. */
static int64 retry_us = 0;
static int64 second_retry_us = 0;	/* the same for the second spare */

uint64
gl_spare_bytes(void)
{
	return gl_shared->segment_size + GL_BLOCK;
}

uint32
gl_spares_ready(void)
{
	return ready_count;
}

uint32
gl_spares_next_number(void)
{
	return ++last_number;
}

void
gl_spares_add(uint32 number)
{
	Assert(ready_count < MAX_SPARES);
	ready[ready_count++] = number;
}

bool
gl_spares_take(uint32 *number)
{
	if (ready_count == 0)
		return false;
	*number = ready[0];
	memmove(ready, ready + 1, --ready_count * sizeof(uint32));
	return true;
}

bool
gl_spares_start(GlError *error)
{
	DIR		   *dir = AllocateDir(gl_directory);
	struct dirent *de;

	if (dir == NULL)
	{
		gl_error_set(error, gl_error_sqlstate(errno), errno, NULL,
					 "could not open directory \"%s\": %s", gl_directory, strerror(errno));
		return false;
	}
	ready_count = 0;
	last_number = 0;
	while ((de = readdir(dir)) != NULL)
	{
		uint32		number;
		char		path[MAXPGPATH];
		struct stat st;
		bool		finished;

		if (!gl_spare_name_parse(de->d_name, &number, &finished))
			continue;
		gl_directory_path(path, de->d_name);
		if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		last_number = Max(last_number, number);
		if (finished && (uint64) st.st_size == gl_spare_bytes() && ready_count < GL_SPARES_WANTED)
			gl_spares_add(number);
		else if (unlink(path) != 0)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not remove file \"%s\": %m", path)));
	}
	FreeDir(dir);
	return true;
}

/*
 * Free space and budget.  min_free_space keeps room for the server's own WAL.
 */
static bool
spare_allowed(uint64 beyond, bool use_reserve, int *refusal, GlError *error)
{
	uint64		free_bytes;
	uint64		need = gl_spare_bytes();
	uint64		budget = gl_config_max_bytes();
	uint64		reserve = use_reserve ? 0 : (uint64) gl_min_free_space * 1024 * 1024;

	if (budget != PG_UINT64_MAX && gl_files_bytes() + need > budget + beyond)
	{
		*refusal = GL_REFUSE_MAX_SIZE;
		gl_error_set(error, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, 0,
					 "Remove old records with grouplog.truncate, raise \"grouplog.max_size\", or set \"grouplog.on_full\" to \"recycle\".",
					 "the log has reached \"grouplog.max_size\"");
		gl_error_detail(error, "The log's files take %llu kB of %llu kB, and the next one needs %llu kB.",
						(unsigned long long) (gl_files_bytes() >> 10),
						(unsigned long long) (gl_config_max_bytes() >> 10),
						(unsigned long long) (need >> 10));
		return false;
	}
	if (!gl_directory_free_bytes(&free_bytes, error))
	{
		*refusal = GL_REFUSE_NO_SPACE;
		return false;
	}
	if (free_bytes < reserve + need)
	{
		*refusal = GL_REFUSE_NO_SPACE;
		gl_error_set(error, ERRCODE_DISK_FULL, 0,
					 "Free disk space, remove old records with grouplog.truncate, or lower \"grouplog.min_free_space\".",
					 "no space for another file in log directory \"%s\"", gl_directory);
		gl_error_detail(error, "A file needs %llu MB, %llu MB are free, and \"grouplog.min_free_space\" keeps %d MB.",
						(unsigned long long) (need >> 20),
						(unsigned long long) (free_bytes >> 20), gl_min_free_space);
		return false;
	}
	return true;
}

/*
 * What the server log was told last: refusal itself is taken back whenever there
 * is hope (see gl_spares_retry), which is no news.
 */
static uint32 told = GL_REFUSE_NOTHING;

static void
set_refusal(int refusal, const GlError *error)
{
	uint32		before = atomic_load(&gl_shared->refusal);

	/* A failing device and a full file system are the main loop's business. */
	if (before == GL_REFUSE_DEVICE || before == GL_REFUSE_FREE_SPACE)
		return;
	if (refusal != GL_REFUSE_NOTHING)
	{
		gl_shared_set_error(&gl_shared->problem, error);
		if (before != (uint32) refusal && told != (uint32) refusal)
			gl_error_report(LOG, error);
	}
	else if (before != GL_REFUSE_NOTHING || told != GL_REFUSE_NOTHING)
		ereport(LOG, (errmsg("grouplog can make new files again")));
	told = (uint32) refusal;
	atomic_store(&gl_shared->refusal, (uint32) refusal);
	if (before != (uint32) refusal)
		gl_wakeup_broadcast(&gl_shared->room, GL_WAKE_ALL);
}

static bool
fill_failed(int os_error, const char *what, GlError *error)
{
	char		path[MAXPGPATH];

	gl_spare_path(path, fill_number, false);
	gl_error_set(error, gl_error_sqlstate(os_error), os_error,
				 os_error == ENOSPC || os_error == EDQUOT ? "Free disk space; appends go on by themselves when there is some." : NULL,
				 "could not %s file \"%s\": %s", what, path, strerror(os_error));
	/* One that could not be opened may have been made all the same. */
	if (fill_fd < 0)
		(void) unlink(path);
	else
	{
		close(fill_fd);
		ReleaseExternalFD();
		if (unlink(path) != 0 && errno != ENOENT)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not remove file \"%s\": %m", path)));
	}
	fill_fd = -1;
	retry_us = gl_now_us() + RETRY_US;
	return false;
}

static bool
fill_begin(GlError *error)
{
	char		path[MAXPGPATH];
	int			direct = gl_sync_method_open_flags() & O_DIRECT;

	if (zeros == NULL)
	{
		zeros = (void *) TYPEALIGN(GL_BLOCK, MemoryContextAlloc(TopMemoryContext, CHUNK_SIZE + GL_BLOCK));
		memset(zeros, 0, CHUNK_SIZE);
	}
	fill_number = gl_spares_next_number();
	fill_done = 0;
	fill_syncing = false;
	memset(&fill_op, 0, sizeof(fill_op));
	gl_spare_path(path, fill_number, false);
	fill_fd = gl_open_file(path, O_RDWR | O_CREAT | O_TRUNC | direct);
	if (fill_fd < 0)
		return fill_failed(errno, "create", error);
	ReserveExternalFD();
	fill_op.direct = direct != 0;
	return true;
}

static void
fill_submit(void)
{
	uint64		rest = gl_spare_bytes() - fill_done;

	fill_op.fd = fill_fd;
	if (rest > 0)
	{
		fill_op.kind = GL_IO_WRITE;
		fill_op.offset = fill_done;
		fill_op.iovcnt = 1;
		fill_op.iov[0].iov_base = zeros;
		fill_op.iov[0].iov_len = Min(rest, CHUNK_SIZE);
	}
	else
	{
		fill_op.kind = GL_IO_FSYNC;
		fill_syncing = true;
	}
	gl_io_submit(gl_io_engine(), &fill_op);
}

/* An operation is done.  *finished: the spare is ready. */
static bool
fill_advance(bool *finished, GlError *error)
{
	*finished = false;
	fill_op.state = GL_IO_IDLE;
	if (fill_op.error != 0)
		return fill_failed(fill_op.error, fill_syncing ? "fsync" : "write to", error);
	if (fill_op.kind == GL_IO_WRITE)
		fill_done += fill_op.iov[0].iov_len;

	if (fill_syncing || (fill_done == gl_spare_bytes() && !enableFsync))
	{
		char		tmp[MAXPGPATH];
		char		path[MAXPGPATH];

		gl_spare_path(tmp, fill_number, false);
		gl_spare_path(path, fill_number, true);
		/* The directory is synced when the spare becomes a segment. */
		if (rename(tmp, path) != 0)
			return fill_failed(errno, "rename", error);
		close(fill_fd);
		ReleaseExternalFD();
		fill_fd = -1;
		gl_spares_add(fill_number);
		gl_stat_add(&gl_shared->stats.segments_created, 1);
		*finished = true;
	}
	return true;
}

void
gl_spares_retry(void)
{
	uint32		refusal = atomic_load(&gl_shared->refusal);

	/* Appends wait for the outcome then, rather than hear of the last one. */
	retry_us = second_retry_us = 0;
	if (refusal == GL_REFUSE_NO_SPACE || refusal == GL_REFUSE_MAX_SIZE)
		atomic_store(&gl_shared->refusal, GL_REFUSE_NOTHING);
}

/* How far the second spare may be filled: twice as far as the log has come. */
static uint64
fill_allowance(void)
{
	uint64		used;

	if (ready_count == 0 || gl_current.fd < 0)
		return gl_spare_bytes();
	used = gl_ring_durable_lsn(gl_ring());
	used = used > gl_current.first_lsn ? used - gl_current.first_lsn : 0;
	return 2 * used + CHUNK_SIZE;
}

bool
gl_spares_step(int64 now_us, int64 *pause_us)
{
	GlError		error;
	int			refusal;
	bool		finished = false;

	*pause_us = GL_NEVER;

	if (fill_fd >= 0)
	{
		if (fill_op.state == GL_IO_IN_FLIGHT)
			return false;
		if (fill_op.state == GL_IO_DONE)
		{
			if (!fill_advance(&finished, &error))
			{
				if (ready_count == 0)
					set_refusal(GL_REFUSE_NO_SPACE, &error);
				*pause_us = retry_us;
				return true;
			}
			if (finished)
			{
				set_refusal(GL_REFUSE_NOTHING, NULL);
				*pause_us = now_us;
				return true;
			}
		}
		/* With the limit moving as groups come in, no timer is needed. */
		if (fill_done < fill_allowance() || fill_done == gl_spare_bytes())
			fill_submit();
		if (fill_op.state == GL_IO_DONE)
			*pause_us = now_us;
		return false;
	}

	if (ready_count > 0)
		set_refusal(GL_REFUSE_NOTHING, NULL);
	if (ready_count >= GL_SPARES_WANTED)
		return false;
	if (now_us < retry_us)
	{
		*pause_us = retry_us;
		return false;
	}

	/* The second one only when the first file is in use: no space for nothing. */
	if (ready_count > 0 && gl_current.fd < 0)
		return false;
	if (ready_count > 0 && now_us < second_retry_us)
	{
		*pause_us = second_retry_us;
		return false;
	}

	if (!spare_allowed(0, false, &refusal, &error))
	{
		/* History goes only when there is no spare left. */
		if (refusal == GL_REFUSE_MAX_SIZE && gl_on_full == GL_ON_FULL_RECYCLE &&
			gl_files_recyclable() && ready_count == 0)
		{
			bool		became_spare;

			if (gl_files_recycle_oldest(&became_spare, &error))
			{
				*pause_us = now_us;
				return true;
			}
			refusal = GL_REFUSE_NO_SPACE;
		}
		/* With a spare in hand nobody need know yet. */
		if (ready_count > 0)
		{
			*pause_us = second_retry_us = now_us + RETRY_US;
			return false;
		}
		*pause_us = retry_us = now_us + RETRY_US;
		set_refusal(refusal, &error);
		return true;
	}

	if (!fill_begin(&error))
	{
		if (ready_count == 0)
			set_refusal(GL_REFUSE_NO_SPACE, &error);
		*pause_us = retry_us;
		return true;
	}
	*pause_us = now_us;
	return false;
}

bool
gl_spares_make_one(bool continuation, GlError *error)
{
	int			refusal;

	while (ready_count == 0)
	{
		bool		finished;

		if (fill_fd < 0)
		{
			if (!spare_allowed(gl_spare_bytes() + gl_files_slack(), continuation, &refusal, error))
			{
				bool		became_spare;

				if (refusal != GL_REFUSE_MAX_SIZE || gl_on_full != GL_ON_FULL_RECYCLE ||
					!gl_files_recyclable())
				{
					set_refusal(refusal, error);
					return false;
				}
				if (!gl_files_recycle_oldest(&became_spare, error))
					return false;
				continue;
			}
			if (!fill_begin(error))
			{
				set_refusal(GL_REFUSE_NO_SPACE, error);
				return false;
			}
		}
		if (fill_op.state == GL_IO_IDLE)
			fill_submit();
		while (fill_op.state == GL_IO_IN_FLIGHT)
		{
			gl_io_check_interrupts();
			gl_io_wait_sleep(gl_now_us() + GL_SLEEP_SLICE_MS * 1000, gl_wait_event(GL_WAIT_WRITER_IO));
		}
		if (!fill_advance(&finished, error))
		{
			set_refusal(GL_REFUSE_NO_SPACE, error);
			return false;
		}
	}
	set_refusal(GL_REFUSE_NOTHING, NULL);
	return true;
}
