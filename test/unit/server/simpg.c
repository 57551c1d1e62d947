/*-------------------------------------------------------------------------
 *
 * simpg.c
 *		As much of PostgreSQL as grouplog's modules call, for sim_log.
 *
 * A process is a coroutine with static variables of its own: the modules' data
 * lie in one section (glstate, see the Makefile), which is copied in and out at
 * each switch, so that a process which ends and one that is forked are what they
 * are in a server.  Errors jump, interrupts are held and handled, exit callbacks
 * run, latches and futexes wake as they do there.
 *
 * What the modules call and this file lacks fails to link: add it here.
 *
 *-------------------------------------------------------------------------
 */
#include "simos.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

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

#define STACK_SIZE		(256 * 1024)

/* the modules' static variables */
extern char __start_glstate[];
extern char __stop_glstate[];

static char *pristine;			/* as in a program just started */
static char *postmaster;		/* as a fork finds them */
static ucontext_t simulation;
static void *shared_memory;
static int	next_pid = 1;

SimProcess *sim_self;
SimProcess	sim_process[SIM_PROCESSES];
bool		sim_crashed;
bool		sim_quiet;
bool		sim_verbose;
bool		sim_stopping;
bool		sim_fsync_wanted = true;
int64		sim_time_ns;
int64		sim_clock_offset_us;
uint64		sim_steps;
uint64		sim_steps_to_crash;
uint64		sim_random_state;
uint64		sim_ring_size;
uint64		sim_segment_size;
uint64		sim_max_bytes;

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

/* A session may stop before it publishes, and after that before anything else. */
void
sim_ring_publish(GlRing *ring, uint64_t lsn, uint32_t hint)
{
	sim_step();
	gl_ring_publish(ring, lsn, hint);
	sim_step();
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

static void
memory_free(SimProcess *process)
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

/* ----- processes ----- */

/* Not memcpy: a sanitizer would look between the variables. */
__attribute__((no_sanitize("address"), noinline, optimize("no-tree-loop-distribute-patterns")))
static void
copy_state(char *to, const char *from)
{
	Size		size = __stop_glstate - __start_glstate;
	Size		at = 0;

	for (; at + sizeof(uint64) <= size; at += sizeof(uint64))
		*(uint64 *) (to + at) = *(const uint64 *) (from + at);
	for (; at < size; at++)
		to[at] = from[at];
}

static char *
state_new(void)
{
	return malloc(__stop_glstate - __start_glstate + sizeof(uint64));
}

static void
give_way(void)
{
	swapcontext(&sim_self->context, &simulation);
}

static void pg_attribute_noreturn()
process_end(int code)
{
	sim_self->exit_code = code;
	sim_self->state = SIM_GONE;
	give_way();
	abort();
}

static void
process_main(unsigned int low, unsigned int high)
{
	SimProcess *self = (SimProcess *) (((uint64) high << 32) | low);

	self->main(self);
	proc_exit(0);
}

void
sim_server_start(void)
{
	if (pristine == NULL)
	{
		pristine = state_new();
		postmaster = state_new();
		copy_state(pristine, __start_glstate);
	}
	copy_state(__start_glstate, pristine);
	sim_stopping = sim_crashed = false;
	gl_shared_startup();
	copy_state(postmaster, __start_glstate);
}

SimProcess *
sim_fork(void (*main) (SimProcess *self))
{
	SimProcess *self = sim_self;
	SimProcess *process = NULL;

	for (int i = 0; i < SIM_PROCESSES && process == NULL; i++)
	{
		if (sim_process[i].pid == 0)
			process = &sim_process[i];
	}
	if (process->stack == NULL)
	{
		process->stack = malloc(STACK_SIZE);
		process->image = state_new();
	}
	process->pid = next_pid++;
	process->main = main;
	process->state = SIM_RUNNABLE;
	process->exit_code = -1;
	process->wake_us = process->stopped_until_us = process->stall_us = 0;
	process->futex = NULL;
	process->terminate = process->cancel = process->reload = process->reload_pending = false;
	process->sigterm = NULL;
	memset(process->user, 0, sizeof(process->user));
	memset(&process->latch, 0, sizeof(Latch));
	process->at_exit_count = 0;
	process->exception_stack = NULL;
	process->context_stack = NULL;
	process->holdoff = 0;
	process->memory = NULL;
	copy_state(process->image, postmaster);

	sim_self = process;
	process->top = AllocSetContextCreateInternal(NULL, "top", 0, 0, 0);
	process->current = process->top;
	sim_self = self;

	getcontext(&process->context);
	process->context.uc_stack.ss_sp = process->stack;
	process->context.uc_stack.ss_size = STACK_SIZE;
	process->context.uc_link = NULL;
	makecontext(&process->context, (void (*) (void)) process_main, 2,
				(unsigned int) (uint64) process, (unsigned int) ((uint64) process >> 32));
	return process;
}

static void
enter(SimProcess *process)
{
	sim_self = process;
	copy_state(__start_glstate, process->image);
	MyProcPid = process->pid;
	MyLatch = &process->latch;
	PG_exception_stack = process->exception_stack;
	error_context_stack = process->context_stack;
	InterruptHoldoffCount = process->holdoff;
	CurrentMemoryContext = process->current;
	TopMemoryContext = process->top;
	if (process->terminate && process->sigterm != NULL)
	{
		process->terminate = false;
		process->sigterm(SIGTERM);
	}
	if (process->reload)
	{
		process->reload = false;
		process->reload_pending = true;
	}
	ConfigReloadPending = process->reload_pending;
	InterruptPending = process->terminate || process->cancel;
}

static void
leave(SimProcess *process)
{
	copy_state(process->image, __start_glstate);
	process->exception_stack = PG_exception_stack;
	process->context_stack = error_context_stack;
	process->holdoff = InterruptHoldoffCount;
	process->current = CurrentMemoryContext;
	process->reload_pending = ConfigReloadPending;
	sim_self = NULL;
}

static void
forget(SimProcess *process)
{
	memory_free(process);
	process->pid = 0;
}

void
sim_switch_to(SimProcess *process)
{
	enter(process);
	swapcontext(&simulation, &process->context);
	leave(process);
	if (process->state == SIM_GONE && !sim_crashed)
	{
		sim_files_of_process_gone(process->pid);
		forget(process);
	}
}

void
sim_server_gone(void)
{
	for (int i = 0; i < SIM_PROCESSES; i++)
	{
		if (sim_process[i].pid != 0)
			forget(&sim_process[i]);
	}
}

static void (*called) (void);

static void
call_main(SimProcess *self)
{
	called();
}

void
sim_call(void (*function) (void))
{
	bool		quiet = sim_quiet;

	sim_quiet = true;
	called = function;
	sim_switch_to(sim_fork(call_main));
	sim_quiet = quiet;
}

void
sim_step(void)
{
	if (sim_quiet || sim_self == NULL)
		return;
	sim_steps++;
	sim_time_ns += sim_below(20000);
	if (sim_steps_to_crash > 0 && --sim_steps_to_crash == 0)
	{
		sim_crashed = true;
		give_way();
		abort();
	}
	if (sim_chance(3))
		give_way();
}

static void
sleep_until(int64 wake_us)
{
	if (sim_quiet)
		return;
	sim_steps++;
	sim_self->wake_us = wake_us;
	sim_self->state = SIM_ASLEEP;
	give_way();
	sim_self->futex = NULL;
}

/* ----- latches, futexes, timers ----- */

void
SetLatch(Latch *latch)
{
	latch->is_set = true;
	for (int i = 0; i < SIM_PROCESSES; i++)
	{
		if (&sim_process[i].latch == latch && sim_process[i].pid != 0 &&
			sim_process[i].state == SIM_ASLEEP && sim_process[i].futex == NULL)
			sim_process[i].state = SIM_RUNNABLE;
	}
}

void
ResetLatch(Latch *latch)
{
	latch->is_set = false;
}

static int64 timer_us;

int
sim_timerfd_create(int clock, int flags)
{
	return 5;
}

int
sim_timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before)
{
	timer_us = when->it_value.tv_sec * INT64CONST(1000000) + when->it_value.tv_nsec / 1000;
	return 0;
}

WaitEventSet *
CreateWaitEventSet(MemoryContext context, int nevents)
{
	return MemoryContextAllocZero(context, 16);
}

int
AddWaitEventToSet(WaitEventSet *set, uint32 events, pgsocket fd, Latch *latch, void *user_data)
{
	return 0;
}

/* Latch, timer, time-out, or I/O, which may be done at any time. */
int
WaitEventSetWait(WaitEventSet *set, long timeout, WaitEvent *occurred_events, int nevents,
				 uint32 event)
{
	int64		now_us = sim_time_ns / 1000;
	int64		until_us = timeout < 0 ? PG_INT64_MAX : now_us + timeout * 1000;

	if (timer_us > now_us)
		until_us = Min(until_us, timer_us);
	timer_us = 0;
	if (!MyLatch->is_set)
		sleep_until(Min(until_us, now_us + 1 + sim_below(3000)));
	memset(occurred_events, 0, sizeof(WaitEvent));
	if (!MyLatch->is_set)
		return 0;
	occurred_events[0].events = WL_LATCH_SET;
	return 1;
}

int
WaitLatch(Latch *latch, int events, long timeout, uint32 event)
{
	if (!latch->is_set)
		sleep_until(sim_time_ns / 1000 + timeout * 1000);
	return 0;
}

long
sim_syscall(long number,...)
{
	va_list		args;
	uint32	   *futex;
	int			operation;
	uint32		value;
	const struct timespec *timeout;

	if (number != SYS_futex)
		abort();
	va_start(args, number);
	futex = va_arg(args, uint32 *);
	operation = va_arg(args, int) & FUTEX_CMD_MASK;
	value = va_arg(args, uint32);
	timeout = va_arg(args, const struct timespec *);
	va_end(args);

	if (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET)
	{
		sim_step();
		if (*(volatile uint32 *) futex != value)
			return -1;
		sim_self->futex = futex;
		sleep_until(sim_time_ns / 1000 + timeout->tv_sec * INT64CONST(1000000) +
					timeout->tv_nsec / 1000);
		return 0;
	}
	for (int i = 0; i < SIM_PROCESSES && value > 0; i++)
	{
		if (sim_process[i].pid == 0 || sim_process[i].futex != futex)
			continue;
		sim_process[i].state = SIM_RUNNABLE;
		sim_process[i].futex = NULL;
		value--;
	}
	return 0;
}

void
pg_usleep(long microsec)
{
	sleep_until(sim_time_ns / 1000 + microsec);
}

int
sim_clock_gettime(clockid_t clock, struct timespec *now)
{
	sim_time_ns += 1 + sim_below(1000);
	if (!sim_quiet && sim_self != NULL && sim_chance(4))
		sim_step();
	now->tv_sec = sim_time_ns / INT64CONST(1000000000);
	now->tv_nsec = sim_time_ns % INT64CONST(1000000000);
	return 0;
}

TimestampTz
GetCurrentTimestamp(void)
{
	if (!sim_quiet && sim_self != NULL && sim_chance(8))
		sim_step();
	return sim_time_ns / 1000 + sim_clock_offset_us;
}

ssize_t
sim_read(int fd, void *buf, size_t size)
{
	return -1;
}

int
sim_prctl(int option,...)
{
	return 0;
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
	process_end(code);
}

pqsigfunc
pqsignal(int signo, pqsigfunc func)
{
	if (signo == SIGTERM)
		sim_self->sigterm = func;
	return NULL;
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
	shared_memory = malloc(size);
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
