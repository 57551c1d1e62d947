/*-------------------------------------------------------------------------
 *
 * simpg.c
 *		As much of PostgreSQL as grouplog's modules call, for sim_log.
 *
 * Memory is in simmemory.c, errors are in simerror.c, processes in simproc.c.
 * What the modules call and none of them has fails to link: add it here.
 *
 *-------------------------------------------------------------------------
 */
#include "simos.h"

#include "access/parallel.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "compat.h"
#include "config.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "shared.h"
#include "simcalls.h"
#include "storage/fd.h"
#include "storage/lwlock.h"
#include "storage/pmsignal.h"
#include "storage/shmem.h"
#include "stream.h"
#include "utils/guc.h"
#include "utils/pidfile.h"
#include "utils/timestamp.h"

uint64		sim_ring_size;
uint64		sim_segment_size;
uint64		sim_max_bytes;
static void *shared_memory;

/* ----- PostgreSQL's variables ----- */

volatile uint32 InterruptHoldoffCount;
volatile uint32 QueryCancelHoldoffCount;
volatile uint32 CritSectionCount;
volatile sig_atomic_t InterruptPending;
volatile sig_atomic_t ConfigReloadPending;
volatile sig_atomic_t postmaster_possibly_dead;
bool		XactReadOnly;
bool		enableFsync = true;
ProcNumber	MyProcNumber = 1;
int			MyProcPid;
int			PostmasterPid = SIM_POSTMASTER;
Latch	   *MyLatch;
sigjmp_buf *PG_exception_stack;
ErrorContextCallback *error_context_stack;
MemoryContext CurrentMemoryContext;
MemoryContext TopMemoryContext;
MemoryContext CacheMemoryContext;
static LWLockPadded lwlocks[64];
LWLockPadded *MainLWLockArray = lwlocks;
static uint32 wait_event_info;
uint32	   *my_wait_event_info = &wait_event_info;

/* ----- src/compat.c ----- */

void
gl_wait_events_define(void)
{
}

uint32
gl_wait_event(GlWaitEvent event)
{
	return 0;
}

int
gl_max_backends(void)
{
	return 32;
}

TimeLineID
gl_wal_timeline(void)
{
	return 1;
}

/* ----- grouplog's settings (src/config.c) ----- */

int			gl_sync_mode;
double		gl_group_window = 1;
int			gl_group_bytes = 512;
int			gl_log_sync_min_duration = 1000;
int			gl_sync_period = 100;
int			gl_sync_lag_limit = 150;
int			gl_max_size = -1;
int			gl_on_full;
int			gl_min_free_space;
int			gl_buffers;
int			gl_segment_size;
char	   *gl_directory = gl_directory_name;
int			gl_io_method;
int			gl_sync_method;
bool		gl_adopt;

uint64
gl_config_ring_size(void)
{
	return sim_ring_size;
}

uint64
gl_config_segment_size(void)
{
	return sim_segment_size;
}

uint64
gl_config_max_bytes(void)
{
	return sim_max_bytes;
}

int64
gl_config_lag_limit_us(void)
{
	return Max(gl_sync_lag_limit, gl_sync_period) * INT64CONST(1000);
}

/* Whose record: each append has a stream of its own here. */
uint64
gl_stream_id(void)
{
	return sim_self->user[0];
}

/* ----- who is connected ----- */

void
pgstat_clear_backend_activity_snapshot(void)
{
}

int
pgstat_fetch_stat_numbackends(void)
{
	return SIM_PROCESSES;
}

LocalPgBackendStatus *
pgstat_get_local_beentry_by_index(int number)
{
	static LocalPgBackendStatus session = {.backendStatus = {.st_backendType = B_BACKEND}};
	SimProcess *process = &sim_process[number - 1];

	return process->pid != 0 && process->sigterm == NULL ? &session : NULL;
}

void
SignalHandlerForConfigReload(SIGNAL_ARGS)
{
}

void
ProcessConfigFile(GucContext context)
{
	enableFsync = sim_fsync_wanted;
}

/* ----- files and memory ----- */

int
BasicOpenFile(const char *path, int flags)
{
	return sim_open(path, flags);
}

int
MakePGDirectory(const char *path)
{
	return 0;
}

DIR *
AllocateDir(const char *path)
{
	return palloc0(sizeof(int));
}

int
FreeDir(DIR *dir)
{
	pfree(dir);
	return 0;
}

FILE *
AllocateFile(const char *name, const char *mode)
{
	static char stopping[] = "1\n/data\n0\n5432\n/tmp\n*\n0 0\n" PM_STATUS_STOPPING "\n";

	return sim_stopping ? fmemopen(stopping, strlen(stopping), "r") : NULL;
}

int
FreeFile(FILE *file)
{
	return fclose(file);
}

void
ReserveExternalFD(void)
{
}

bool
AcquireExternalFD(void)
{
	return true;
}

void
ReleaseExternalFD(void)
{
}

void *
ShmemInitStruct(const char *name, Size size, bool *found)
{
	free(shared_memory);
	/* not zeros, which would help; the same each time, since payloads are made of it, too */
	shared_memory = memset(malloc(size), 0x5A, size);
	*found = false;
	return shared_memory;
}

Size
add_size(Size a, Size b)
{
	return a + b;
}

bool
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	return true;
}

void
LWLockRelease(LWLock *lock)
{
}

int
s_lock(volatile slock_t *lock, const char *file, int line, const char *func)
{
	violation("a spinlock is held for ever");
	abort();
}

/* ----- the rest ----- */

bool
pg_strong_random(void *buf, size_t length)
{
	for (size_t i = 0; i < length; i++)
		((uint8 *) buf)[i] = (uint8) (sim_random() >> 13);
	return true;
}

bool
RecoveryInProgress(void)
{
	return false;
}

bool
IsInParallelMode(void)
{
	return false;
}

bool
PostmasterIsAliveInternal(void)
{
	return true;
}

uint64
GetSystemIdentifier(void)
{
	return 77;
}

FullTransactionId
ReadNextFullTransactionId(void)
{
	return FullTransactionIdFromU64(1000);
}

void
RegisterBackgroundWorker(BackgroundWorker *worker)
{
}

void
BackgroundWorkerUnblockSignals(void)
{
}

void
BackgroundWorkerInitializeConnection(const char *dbname, const char *username, uint32 flags)
{
}
