/*-------------------------------------------------------------------------
 *
 * io_wait.c
 *		How the writer waits: latch, I/O, timer and postmaster in one sleep.
 *
 * A wait event set counts in milliseconds; windows below that, and above it
 * whatever is not a round number, come from a timerfd in the same set.
 *
 *-------------------------------------------------------------------------
 */
#include "io_wait.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "compat.h"
#include "miscadmin.h"
#include "shared.h"
#include "slow_sync.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

/* Beyond this the set's own timeout is exact enough, and costs no call. */
#define TIMER_LIMIT_US	INT64CONST(100000)

/* How long a hung device may hold up a shutdown. */
#define STOP_PATIENCE_US	INT64CONST(60000000)

volatile sig_atomic_t gl_stop_requested = false;

static GlIo *engine = NULL;
static WaitEventSet *wait_set = NULL;
static int	timer_fd = -1;

void
gl_io_wait_open(GlIoMethod wanted, GlIoMethod *got, char *reason, Size reason_size)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	engine = gl_io_open(wanted, got, reason, reason_size);
	if (engine == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));

	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (timer_fd < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not create a timer: %m")));

	wait_set = gl_create_wait_event_set(4);
	AddWaitEventToSet(wait_set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(wait_set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(wait_set, WL_SOCKET_READABLE, timer_fd, NULL, NULL);
	if (gl_io_fd(engine) >= 0)
		AddWaitEventToSet(wait_set, WL_SOCKET_READABLE, gl_io_fd(engine), NULL, NULL);
	MemoryContextSwitchTo(old);
}

void
gl_io_wait_close(void)
{
	if (engine != NULL)
		gl_io_close(engine);
	engine = NULL;
}

GlIo *
gl_io_engine(void)
{
	return engine;
}

void
gl_io_wait_sleep(int64 until_us, uint32 wait_event)
{
	WaitEvent	events[4];
	long		timeout = -1;
	int			count;

	if (until_us != GL_NEVER)
	{
		int64		rest = until_us - gl_now_us();

		if (rest <= 0)
			timeout = 0;
		else if (rest < TIMER_LIMIT_US)
		{
			struct itimerspec when = {
				.it_value = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000}
			};

			(void) timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
		}
		else
			timeout = rest / 1000 > 60000 ? 60000 : (long) (rest / 1000);
	}

	count = WaitEventSetWait(wait_set, timeout, events, lengthof(events), wait_event);
	for (int i = 0; i < count; i++)
	{
		if (events[i].events & WL_LATCH_SET)
			ResetLatch(MyLatch);
		else if ((events[i].events & WL_SOCKET_READABLE) && events[i].fd == timer_fd)
		{
			uint64		expired;

			/* Empty it, or it would wake us again. */
			if (read(timer_fd, &expired, sizeof(expired)) < 0)
				continue;
		}
	}
	gl_io_reap(engine);
}

void
gl_io_wait_complete(uint32 wait_event)
{
	bool		waited;

	pgstat_report_wait_start(wait_event);
	waited = gl_io_wait(engine, GL_SLEEP_SLICE_MS * 1000);
	pgstat_report_wait_end();
	if (!waited)
		gl_io_wait_sleep(gl_now_us() + GL_SLEEP_SLICE_MS * 1000, wait_event);
	else if (!PostmasterIsAlive())
		proc_exit(1);
}

void
gl_io_check_interrupts(void)
{
	static int64 asked_us = 0;

	CHECK_FOR_INTERRUPTS();
	if (!gl_stop_requested)
	{
		asked_us = 0;
		return;
	}
	if (asked_us == 0)
		asked_us = gl_now_us();
	else if (gl_now_us() - asked_us > STOP_PATIENCE_US)
	{
		ereport(LOG, (errmsg("grouplog writer ends without waiting for its device any longer")));
		proc_exit(1);
	}
}

int
gl_io_perform(GlIoOp *op)
{
	/* Not on a stack: the kernel may complete it after an error has unwound that. */
	static GlIoOp running;
	int64		start_ns = gl_now_ns();

	running = *op;
	running.state = GL_IO_IDLE;
	gl_io_submit(engine, &running);
	while (running.state != GL_IO_DONE)
	{
		gl_io_check_interrupts();
		gl_slow_sync_in_progress(start_ns);
		gl_io_wait_sleep(gl_now_us() + GL_SLEEP_SLICE_MS * 1000, gl_wait_event(GL_WAIT_WRITER_IO));
	}
	if (running.error == 0)
		gl_slow_sync_done(start_ns);

	/* What else set the latch meanwhile is for the main loop. */
	SetLatch(MyLatch);
	return running.error;
}

int
gl_io_fsync(int fd)
{
	GlIoOp		op = {.kind = GL_IO_FSYNC, .fd = fd};

	return gl_io_perform(&op);
}
