/*-------------------------------------------------------------------------
 *
 * config.c
 *		The settings.
 *
 * What could weaken other users' data is not for users to set: a session
 * chooses the mode and window of its own appends, nothing more.
 *
 *-------------------------------------------------------------------------
 */
#include "config.h"

#include <limits.h>

#include "compat.h"
#include "segment_format.h"
#include "utils/guc.h"

int			gl_sync_mode = GL_SYNC_ADAPTIVE;
double		gl_group_window = 10.0;
int			gl_group_bytes = 512;
int			gl_sync_period = 1000;
int			gl_sync_lag_limit = 1500;
int			gl_max_size = -1;
int			gl_on_full = GL_ON_FULL_REFUSE;
int			gl_min_free_space = 512;
int			gl_log_sync_min_duration = 1000;
int			gl_buffers = 4096;
int			gl_segment_size = 64;
char	   *gl_directory = NULL;
int			gl_io_method = GL_IO_URING;
int			gl_sync_method = GL_SYNC_OPEN_DATASYNC;
bool		gl_adopt = false;

static const struct config_enum_entry sync_modes[] = {
	{"periodic", GL_SYNC_PERIODIC, false},
	{"batch", GL_SYNC_BATCH, false},
	{"group", GL_SYNC_GROUP, false},
	{"adaptive", GL_SYNC_ADAPTIVE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry on_full_actions[] = {
	{"refuse", GL_ON_FULL_REFUSE, false},
	{"recycle", GL_ON_FULL_RECYCLE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry io_methods[] = {
	{"io_uring", GL_IO_URING, false},
	{"sync", GL_IO_SYNC, false},
	{NULL, 0, false}
};

static const struct config_enum_entry sync_methods[] = {
	{"open_datasync", GL_SYNC_OPEN_DATASYNC, false},
	{"fdatasync", GL_SYNC_FDATASYNC, false},
	{NULL, 0, false}
};

static bool
check_power_of_two(int *newval, void **extra, GucSource source)
{
	if ((*newval & (*newval - 1)) == 0)
		return true;
	GUC_check_errdetail("The value must be a power of two.");
	return false;
}

static bool
check_directory(char **newval, void **extra, GucSource source)
{
	const char *name = *newval;

	if (name == NULL || name[0] == '\0')
	{
		GUC_check_errdetail("The name of the log directory must not be empty.");
		return false;
	}
	if (strlen(name) > MAXPGPATH / 2)
	{
		GUC_check_errdetail("The name of the log directory is too long.");
		return false;
	}
	return true;
}

bool
gl_config_parse_mode(const char *name, GlSyncMode *mode)
{
	const struct config_enum_entry *option;

	for (option = sync_modes; option->name != NULL; option++)
	{
		if (pg_strcasecmp(option->name, name) == 0)
		{
			*mode = (GlSyncMode) option->val;
			return true;
		}
	}
	return false;
}

uint64
gl_config_segment_size(void)
{
	return (uint64) gl_segment_size * 1024 * 1024;
}

uint64
gl_config_ring_size(void)
{
	uint64		size = (uint64) gl_buffers * 1024;

	return Min(size, gl_config_segment_size());
}

uint64
gl_config_max_bytes(void)
{
	if (gl_max_size < 0)
		return PG_UINT64_MAX;
	return Max((uint64) gl_max_size * 1024 * 1024,
			   3 * (gl_config_segment_size() + GL_BLOCK) + GL_BLOCK);
}

int64
gl_config_lag_limit_us(void)
{
	return (int64) Max(gl_sync_lag_limit, gl_sync_period) * 1000;
}

void
gl_config_define(void)
{
	DefineCustomEnumVariable("grouplog.sync_mode",
							 "Sets when an append returns and what it waits for.",
							 "periodic: at once, a sync follows within grouplog.sync_period; "
							 "batch: when durable, a sync starts at once; "
							 "group: when durable, a sync starts within grouplog.group_window; "
							 "adaptive: when durable, a sync starts when the sessions expected to join have joined.",
							 &gl_sync_mode, GL_SYNC_ADAPTIVE, sync_modes,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("grouplog.group_window",
							 "Sets the longest time that a record waits for company in sync mode group.",
							 NULL,
							 &gl_group_window, 10.0, 0.01, 10000.0,
							 PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("grouplog.group_bytes",
							"Sets the number of pending bytes at which a group is synced early.",
							"A quarter of grouplog.buffers is the limit in any case.",
							&gl_group_bytes, 512, 4, 1024 * 1024,
							PGC_SIGHUP, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("grouplog.sync_period",
							"Sets the longest time that a record appended in sync mode periodic stays without a sync.",
							NULL,
							&gl_sync_period, 1000, 1, 100 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("grouplog.sync_lag_limit",
							"Sets the age of the oldest record without a sync at which periodic appends wait.",
							"Values below grouplog.sync_period count as grouplog.sync_period.",
							&gl_sync_lag_limit, 1500, 1, 200 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("grouplog.buffers",
							"Sets the size of the ring in shared memory.",
							"A power of two; at most grouplog.segment_size. A record may take a quarter of it.",
							&gl_buffers, 4096, GL_RING_SIZE_MIN / 1024, GL_RING_SIZE_MAX / 1024,
							PGC_POSTMASTER, GUC_UNIT_KB, check_power_of_two, NULL, NULL);
	DefineCustomIntVariable("grouplog.segment_size",
							"Sets the size of the log's files.",
							"A power of two.",
							&gl_segment_size, 64, GL_SEGMENT_SIZE_MIN / (1024 * 1024),
							GL_SEGMENT_SIZE_MAX / (1024 * 1024),
							PGC_POSTMASTER, GUC_UNIT_MB, check_power_of_two, NULL, NULL);
	DefineCustomIntVariable("grouplog.max_size",
							"Sets the disk space that all files of the log may take.",
							"-1 means no limit; less than three segments count as three segments.",
							&gl_max_size, -1, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomEnumVariable("grouplog.on_full",
							 "Sets what happens when grouplog.max_size is reached.",
							 "refuse: appends fail; recycle: the oldest records are removed.",
							 &gl_on_full, GL_ON_FULL_REFUSE, on_full_actions,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("grouplog.min_free_space",
							"Sets the free space of the file system below which appends are refused.",
							NULL,
							&gl_min_free_space, 512, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	/* As log_autovacuum_min_duration: what the server does by itself, when it is slow. */
	DefineCustomIntVariable("grouplog.log_sync_min_duration",
							"Sets the time above which a sync of the log is warned of in the server log.",
							"-1 turns the warnings off; there is at most one in 10 seconds.",
							&gl_log_sync_min_duration, 1000, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomStringVariable("grouplog.directory",
							   "Sets the directory of the log's files.",
							   "Relative names lie in the data directory.",
							   &gl_directory, "grouplog",
							   PGC_POSTMASTER, GUC_SUPERUSER_ONLY, check_directory, NULL, NULL);
	DefineCustomEnumVariable("grouplog.io_method",
							 "Sets how the writer does its I/O.",
							 "Where io_uring is refused, sync is used.",
							 &gl_io_method, GL_IO_URING, io_methods,
							 PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("grouplog.sync_method",
							 "Sets how records are made durable.",
							 "open_datasync: direct I/O; where the file system has none, fdatasync is used.",
							 &gl_sync_method, GL_SYNC_OPEN_DATASYNC, sync_methods,
							 PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("grouplog.adopt",
							 "Takes over a log that another cluster wrote.",
							 "For one start, after pg_upgrade.",
							 &gl_adopt, false,
							 PGC_POSTMASTER, 0, NULL, NULL, NULL);

	MarkGUCPrefixReserved("grouplog");
}
