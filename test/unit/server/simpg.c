/*-------------------------------------------------------------------------
 *
 * simpg.c
 *		As much of PostgreSQL as grouplog's modules call, for sim_log.
 *
 * Errors jump, interrupts are held and handled, exit callbacks run, as they do
 * in a server; memory contexts are lists.  For processes see simproc.c.
 *
 * What the modules call and this file lacks fails to link: add it here.
 *
 *-------------------------------------------------------------------------
 */
#include "simos.h"

#include <errno.h>
#include <stdarg.h>

#include "access/parallel.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
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
#include "utils/memutils.h"
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
int			MaxBackends = 32;
BackendId	MyBackendId = 1;
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

/* ----- memory: contexts are lists ----- */

typedef struct Chunk
{
	struct Chunk *next;
	struct Chunk *before;
	Size		size;
	Size		filler;			/* what follows is aligned to 16 bytes */
} Chunk;

typedef struct Context
{
	MemoryContextData header;	/* nothing of it is used */
	Chunk		list;
	struct Context *next;		/* of the process */
	MemoryContextCallback *callback;
} Context;

static void
list_init(Chunk *list)
{
	list->next = list->before = list;
}

static void *
chunk_new(MemoryContext context, Size size)
{
	Chunk	   *list = &((Context *) context)->list;
	Chunk	   *chunk = malloc(sizeof(Chunk) + size);

	chunk->size = size;
	chunk->next = list->next;
	chunk->before = list;
	chunk->next->before = list->next = chunk;
	return chunk + 1;
}

static void
chunk_free(Chunk *chunk)
{
	chunk->next->before = chunk->before;
	chunk->before->next = chunk->next;
	free(chunk);
}

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	return chunk_new(context, size);
}

void *
MemoryContextAllocHuge(MemoryContext context, Size size)
{
	return chunk_new(context, size);
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return memset(chunk_new(context, size), 0, size);
}

void *
MemoryContextAllocExtended(MemoryContext context, Size size, int flags)
{
	return chunk_new(context, size);
}

void *
palloc(Size size)
{
	return chunk_new(CurrentMemoryContext, size);
}

void *
palloc0(Size size)
{
	return memset(palloc(size), 0, size);
}

void *
palloc_extended(Size size, int flags)
{
	return palloc(size);
}

void
pfree(void *pointer)
{
	chunk_free((Chunk *) pointer - 1);
}

void *
repalloc_huge(void *pointer, Size size)
{
	Chunk	   *old = (Chunk *) pointer - 1;
	Chunk	   *chunk = malloc(sizeof(Chunk) + size);

	memcpy(chunk + 1, old + 1, Min(old->size, size));
	chunk->size = size;
	chunk->next = old->next;
	chunk->before = old;
	chunk->next->before = old->next = chunk;
	chunk_free(old);
	return chunk + 1;
}

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size minContextSize,
							  Size initBlockSize, Size maxBlockSize)
{
	Context    *context = calloc(1, sizeof(Context));

	list_init(&context->list);
	context->next = sim_self->memory;
	sim_self->memory = context;
	return &context->header;
}

void
MemoryContextReset(MemoryContext header)
{
	Context    *context = (Context *) header;

	while (context->callback != NULL)
	{
		MemoryContextCallback *callback = context->callback;

		context->callback = callback->next;
		callback->func(callback->arg);
	}
	while (context->list.next != &context->list)
		chunk_free(context->list.next);
}

void
MemoryContextDelete(MemoryContext header)
{
	void	  **at = &sim_self->memory;

	MemoryContextReset(header);
	while (*at != (void *) header)
		at = (void **) &((Context *) *at)->next;
	*at = ((Context *) header)->next;
	free(header);
}

void
MemoryContextRegisterResetCallback(MemoryContext header, MemoryContextCallback *callback)
{
	callback->next = ((Context *) header)->callback;
	((Context *) header)->callback = callback;
}

void
MemoryContextSetParent(MemoryContext context, MemoryContext parent)
{
}

void
sim_memory_free(SimProcess *process)
{
	for (Context *context = process->memory, *next; context != NULL; context = next)
	{
		next = context->next;
		while (context->list.next != &context->list)
			chunk_free(context->list.next);
		free(context);
	}
	process->memory = NULL;
}

/* ----- errors and interrupts ----- */

static bool
error_start(int elevel)
{
	sim_self->elevel = elevel;
	sim_self->sqlstate = ERRCODE_INTERNAL_ERROR;
	sim_self->message[0] = '\0';
	return true;
}

bool
errstart(int elevel, const char *domain)
{
	return error_start(elevel);
}

bool
errstart_cold(int elevel, const char *domain)
{
	return error_start(elevel);
}

int
errcode(int sqlerrcode)
{
	sim_self->sqlstate = sqlerrcode;
	return 0;
}

int
errcode_for_file_access(void)
{
	return 0;
}

#define FORMAT_MESSAGE() \
	do { \
		va_list		args; \
		va_start(args, fmt); \
		vsnprintf(sim_self->message, sizeof(sim_self->message), fmt, args); \
		va_end(args); \
	} while (0)

int
errmsg(const char *fmt,...)
{
	if (sim_verbose || sim_self->elevel >= ERROR)
		FORMAT_MESSAGE();
	return 0;
}

int
errmsg_plural(const char *fmt_singular, const char *fmt_plural, unsigned long n,...)
{
	va_list		args;

	va_start(args, n);
	vsnprintf(sim_self->message, sizeof(sim_self->message), n == 1 ? fmt_singular : fmt_plural, args);
	va_end(args);
	return 0;
}

int
errdetail_plural(const char *fmt_singular, const char *fmt_plural, unsigned long n,...)
{
	return 0;
}

int
errmsg_internal(const char *fmt,...)
{
	if (sim_verbose || sim_self->elevel >= ERROR)
		FORMAT_MESSAGE();
	return 0;
}

int
errdetail(const char *fmt,...)
{
	return 0;
}

int
errdetail_internal(const char *fmt,...)
{
	return 0;
}

int
errhint(const char *fmt,...)
{
	return 0;
}

int
errcontext_msg(const char *fmt,...)
{
	return 0;
}

int
set_errcontext_domain(const char *domain)
{
	return 0;
}

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	int			elevel = sim_self->elevel;

	if (sim_verbose)
		printf("%10.3f ms  process %d  %s%s\n", (double) sim_time_ns / 1e6, sim_self->pid,
			   elevel >= FATAL ? "FATAL: " : elevel >= ERROR ? "ERROR: " : "", sim_self->message);
	if (elevel < ERROR)
		return;
	for (ErrorContextCallback *context = error_context_stack; context != NULL; context = context->previous)
		context->callback(context->arg);
	InterruptHoldoffCount = 0;
	if (elevel >= FATAL || PG_exception_stack == NULL)
		proc_exit(1);
	siglongjmp(*PG_exception_stack, 1);
}

void
pg_re_throw(void)
{
	if (PG_exception_stack == NULL)
		proc_exit(1);
	siglongjmp(*PG_exception_stack, 1);
}

void
ExceptionalCondition(const char *conditionName, const char *errorType, const char *fileName,
					 int lineNumber)
{
	violation("assertion failed: %s, %s:%d", conditionName, fileName, lineNumber);
	fflush(stdout);
	abort();
}

void
ProcessInterrupts(void)
{
	if (InterruptHoldoffCount != 0)
		return;
	InterruptPending = false;
	if (sim_self->terminate)
	{
		sim_self->terminate = false;
		ereport(FATAL, (errcode(ERRCODE_ADMIN_SHUTDOWN), errmsg("terminating connection")));
	}
	if (sim_self->cancel)
	{
		sim_self->cancel = false;
		ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED), errmsg("canceling statement")));
	}
}

void
before_shmem_exit(pg_on_exit_callback function, Datum arg)
{
	int			i = sim_self->at_exit_count++;

	if (i >= lengthof(sim_self->at_exit))
		abort();
	sim_self->at_exit[i].function = function;
	sim_self->at_exit[i].arg = arg;
}

void
cancel_before_shmem_exit(pg_on_exit_callback function, Datum arg)
{
	int			last = sim_self->at_exit_count - 1;

	if (last >= 0 && sim_self->at_exit[last].function == function && sim_self->at_exit[last].arg == arg)
		sim_self->at_exit_count--;
}

void
proc_exit(int code)
{
	PG_exception_stack = NULL;
	error_context_stack = NULL;
	while (sim_self->at_exit_count > 0)
	{
		int			i = --sim_self->at_exit_count;

		sim_self->at_exit[i].function(code, sim_self->at_exit[i].arg);
	}
	sim_process_end(code);
}

pqsigfunc
pqsignal(int signo, pqsigfunc func)
{
	return NULL;
}

int
sim_sigaction(int signo, const struct sigaction *action, struct sigaction *before)
{
	if (signo == SIGTERM)
		sim_self->sigterm = action->sa_sigaction;
	return 0;
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

PgBackendStatus *
pgstat_fetch_stat_beentry(int number)
{
	static PgBackendStatus session = {.st_backendType = B_BACKEND};
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

TimeLineID
GetWALInsertionTimeLine(void)
{
	return 1;
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
