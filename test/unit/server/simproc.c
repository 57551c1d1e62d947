/*-------------------------------------------------------------------------
 *
 * simproc.c
 *		Processes that are coroutines; how they sleep, and wake each other.
 *
 * A process has static variables of its own: the modules' data lie in one section
 * (glstate, see the Makefile), which is copied in and out at each switch, so that
 * a process which ends and one that is forked are what they are in a server.
 *
 *-------------------------------------------------------------------------
 */
#include "simos.h"

#include "compat.h"
#include "group.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "shared.h"
#include "simcalls.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define STACK_SIZE		(256 * 1024)

/* the modules' static variables */
extern char __start_glstate[];
extern char __stop_glstate[];

static char *pristine;			/* as in a program just started */
static char *postmaster;		/* as a fork finds them */
static ucontext_t simulation;
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

/* ----- processes ----- */

/* Not memcpy: a sanitizer would look between the variables. */
#ifdef __clang__
#define NO_MEMCPY no_builtin("memcpy")
#else
#define NO_MEMCPY optimize("no-tree-loop-distribute-patterns")
#endif
__attribute__((no_sanitize("address"), noinline, NO_MEMCPY))
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

void
sim_process_end(int code)
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
		siginfo_t	info = {.si_pid = sim_stopping ? SIM_POSTMASTER : 0};

		process->terminate = false;
		process->sigterm(SIGTERM, &info, NULL);
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
	sim_memory_free(process);
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
gl_create_wait_event_set(int nevents)
{
	return palloc0(16);
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
	uint32		topics = FUTEX_BITSET_MATCH_ANY;

	if (number != SYS_futex)
		abort();
	va_start(args, number);
	futex = va_arg(args, uint32 *);
	operation = va_arg(args, int) & FUTEX_CMD_MASK;
	value = va_arg(args, uint32);
	timeout = va_arg(args, const struct timespec *);
	if (operation == FUTEX_WAIT_BITSET || operation == FUTEX_WAKE_BITSET)
	{
		(void) va_arg(args, void *);
		topics = va_arg(args, uint32);
	}
	va_end(args);

	if (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET)
	{
		sim_step();
		if (*(volatile uint32 *) futex != value)
			return -1;
		sim_self->futex = futex;
		sim_self->topics = topics;
		sleep_until((operation == FUTEX_WAIT ? sim_time_ns / 1000 : 0) +
					timeout->tv_sec * INT64CONST(1000000) + timeout->tv_nsec / 1000);
		return 0;
	}
	for (int i = 0; i < SIM_PROCESSES && value > 0; i++)
	{
		if (sim_process[i].pid == 0 || sim_process[i].futex != futex ||
			!(sim_process[i].topics & topics))
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

/* A session may stop before it publishes, and after that before anything else. */
void
sim_ring_publish(GlRing *ring, uint64_t lsn, uint32_t hint)
{
	sim_step();
	gl_ring_publish(ring, lsn, hint);
	sim_step();
}

/* ... before it looks at how far the log is claimed ... */
uint64_t
sim_insert_lsn(const GlRing *ring)
{
	sim_step();
	return gl_ring_insert_lsn(ring);
}

/* ... and before it takes the token, when all may have changed that it has seen. */
bool
sim_token_take(void)
{
	sim_step();
	return gl_token_take();
}
