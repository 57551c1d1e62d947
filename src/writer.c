/*-------------------------------------------------------------------------
 *
 * writer.c
 *		The background worker that writes and syncs.
 *
 * One loop: take in finished I/O, acknowledge, do what was asked, work ahead on
 * spares, scan what was published, ask the policy, start a group or sleep.  It
 * never waits inside a sync: while I/O is in flight it handles interrupts,
 * reloads and requests (with io_method = sync the kernel call itself is the
 * wait).
 *
 * Sleeping: the writer announces until when it means to sleep (sleep_until_us,
 * join_target), then looks once more at what was published, then sleeps; an
 * appender publishes first, then looks at the announcement.  Each has a full
 * barrier in between, so one of them sees the other.
 *
 * SIGTERM comes for two reasons.  From the postmaster it means a shutdown:
 * everything published is made durable, and the log ends with a close record.
 * From anybody else (pg_terminate_backend) the writer just goes: it is started
 * again within a second, finds the ring as it left it, and carries on in a
 * continuation file.  Not so while the server is stopping, as the status line in
 * postmaster.pid says.  A smart shutdown waits for sessions, which need the log:
 * the writer stays as long as they do.
 *
 *-------------------------------------------------------------------------
 */
#include "writer.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "close.h"
#include "compat.h"
#include "config.h"
#include "failure.h"
#include "files.h"
#include "flush.h"
#include "group.h"
#include "io_wait.h"
#include "miscadmin.h"
#include "open.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "serve.h"
#include "shared.h"
#include "slow_sync.h"
#include "spares.h"
#include "tail.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/procsignal.h"
#include "sync_method.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define TIMER_SLACK_NS		2000UL
#define POLL_MIN_US			INT64CONST(50)
#define POLL_MAX_US			INT64CONST(10000)
#define LONE_CHECK_US	INT64CONST(1000000)
#define SPACE_CHECK_US		INT64CONST(1000000)
#define REOPEN_US			INT64CONST(5000000)
#define FSYNC_RETRY_US		INT64CONST(10000000)
#define RESUME_US			INT64CONST(1000000)

static bool fsync_changed = false;	/* the setting; the files still have to follow */
static int64 fsync_retry_us = 0;
static int64 space_checked_us = 0;
static int64 reopen_at_us = 0;
static GlError open_error;		/* as last reported */

/* Claimed but not published: how long the next look waits. */
static int64 poll_us = POLL_MIN_US;

/* SIGTERM from the postmaster; from another while the server is stopping. */
static volatile sig_atomic_t shutdown_requested = false;
static bool leaving = false;

static void
handle_sigterm(int signal_number, siginfo_t *info, void *context)
{
	int			save_errno = errno;

	if (info->si_pid == PostmasterPid)
		shutdown_requested = true;
	gl_stop_requested = true;
	SetLatch(MyLatch);
	errno = save_errno;
}

void
gl_writer_register(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 1;
	strlcpy(worker.bgw_library_name, "grouplog", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "grouplog_writer_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "grouplog writer", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "grouplog writer", sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}

static void
writer_gone(int code, Datum arg)
{
	atomic_store(&gl_shared->writer_latch, NULL);
	atomic_store(&gl_shared->writer_pid, 0);
	atomic_store(&gl_shared->writer_gone_us, gl_now_us());
	atomic_store(&gl_shared->sleep_until_us, 0);
	atomic_store(&gl_shared->lone_offered, 0);
	atomic_store(&gl_shared->token_wanted, 0);
	gl_io_wait_close();
	gl_token_release();
	gl_shared_wake_everybody();
}

/* --- settings and space --- */

/* With nothing in flight. */
static void
fsync_setting_changed(void)
{
	GlError		error;

	if (!gl_files_reopen(&error))
	{
		/* A continuation file takes over; what could not be synced is tried again. */
		if (fsync_retry_us == 0)
			gl_error_report(LOG, &error);
		gl_failure_note(&error);
		gl_files_abandon();
		fsync_retry_us = gl_now_us() + FSYNC_RETRY_US;
		return;
	}
	if (fsync_retry_us != 0)
		ereport(LOG, (errmsg("grouplog could sync its files at last")));
	fsync_retry_us = 0;
	fsync_changed = false;
	if (enableFsync)
		atomic_store(&gl_shared->fsync_on, 1);
}

static void
check_free_space(int64 now_us)
{
	uint64		free_bytes;
	uint64		reserve = (uint64) gl_min_free_space * 1024 * 1024;
	uint32		refusal = atomic_load(&gl_shared->refusal);
	GlError		error;

	space_checked_us = now_us;
	if (refusal == GL_REFUSE_DEVICE || !gl_directory_free_bytes(&free_bytes, &error))
		return;
	if (free_bytes < reserve)
	{
		gl_error_set(&error, ERRCODE_DISK_FULL, 0,
					 "Free disk space, remove old records with grouplog.truncate, or lower \"grouplog.min_free_space\".",
					 "the file system of log directory \"%s\" is nearly full", gl_directory);
		gl_error_detail(&error, "%llu MB are free, and \"grouplog.min_free_space\" keeps %d MB.",
						(unsigned long long) (free_bytes >> 20), gl_min_free_space);
		gl_shared_set_error(&gl_shared->problem, &error);
		if (refusal != GL_REFUSE_FREE_SPACE)
		{
			atomic_store(&gl_shared->refusal, GL_REFUSE_FREE_SPACE);
			gl_error_report(LOG, &error);
			gl_wakeup_broadcast(&gl_shared->room, GL_WAKE_ALL);
		}
	}
	else if (refusal == GL_REFUSE_FREE_SPACE)
	{
		atomic_store(&gl_shared->refusal, GL_REFUSE_NOTHING);
		ereport(LOG, (errmsg("grouplog accepts appends again: there is free space")));
		gl_wakeup_broadcast(&gl_shared->room, GL_WAKE_ALL);
	}
}

static void
policy_config(GlPolicyConfig *config)
{
	config->sync_period_us = (int64) gl_sync_period * 1000;
	config->adaptive_window_us = (int64) (gl_group_window * 1000);
	config->flush_bytes = Min((uint64) gl_group_bytes * 1024, gl_shared->ring_size / 4);
}

static void
handle_signals(void)
{
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		bool		fsync_before = enableFsync;

		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
		if (enableFsync != fsync_before)
			fsync_changed = true;

		/*
		 * Off: appenders stop proving anything before the durable LSN stops
		 * meaning anything.  On: the other way round, see
		 * fsync_setting_changed.
		 */
		if (!enableFsync)
			atomic_store(&gl_shared->fsync_on, 0);
		space_checked_us = 0;
		gl_spares_retry();
	}
}

/* --- the loop --- */

static bool
may_offer(void)
{
	return !fsync_changed && atomic_load(&gl_shared->refusal) == GL_REFUSE_NOTHING &&
		!gl_failure_retrying() && gl_flush_may_offer();
}

/*
 * Sleep, unless something has come by now.  urgent: urgent_lsn as it was when we
 * looked.
 */
static void
doze(int64 now_us, int64 until_us, uint64 join_target, uint64 urgent)
{
	atomic_store(&gl_shared->join_target, join_target);
	atomic_store(&gl_shared->sleep_until_us, until_us);
	atomic_thread_fence(memory_order_seq_cst);
	if (!gl_flush_scan(now_us) &&
		atomic_load(&gl_shared->urgent_lsn) == urgent &&
		!(gl_current.fd < 0 && atomic_load(&gl_shared->need_segment)) &&
		!gl_serve_wanted())
	{
		if (may_offer())
			gl_flush_offer();
		gl_io_wait_sleep(until_us, gl_wait_event(GL_WAIT_WRITER_MAIN));
	}
	atomic_store(&gl_shared->sleep_until_us, 0);
}

/* One look at everything while the log is open. */
static void
work(void)
{
	GlRing	   *ring = gl_ring();
	GlPolicyConfig config;
	GlDecision	decision;
	GlError		error;
	int64		now_us = gl_now_us();
	int64		until_us;
	int64		pause_us;
	bool		changed;
	const GlPending *pending = gl_flush_pending();
	uint64		urgent;
	int64		retry_at_us;
	bool		refusing;
	GlFlushStatus status;

	gl_io_reap(gl_io_engine());
	status = gl_flush_poll(now_us, &error);
	if (status == GL_FLUSH_FAILED)
		gl_failure_write(&error);
	else if (status == GL_FLUSH_ACKNOWLEDGED)
	{
		gl_failure_over();

		/* A lone session that is back at once is to find the token free. */
		if (may_offer())
		{
			doze(now_us, now_us + GL_SLEEP_SLICE_MS * 1000, GL_FIRST_ADAPTIVE,
				 atomic_load(&gl_shared->urgent_lsn));
			return;
		}
	}

	gl_serve();
	atomic_store(&gl_shared->writer_looked_us, now_us);

	if (now_us - space_checked_us > SPACE_CHECK_US)
		check_free_space(now_us);
	gl_files_keep_budget(now_us);
	changed = gl_spares_step(now_us, &pause_us);
	gl_files_set_limit();
	if (changed)
		gl_wakeup_broadcast(&gl_shared->room, GL_WAKE_ALL);

	if (gl_flush_scan(now_us))
		poll_us = POLL_MIN_US;

	if (status == GL_FLUSH_IN_FLIGHT)
	{
		/* Awake in the sense of sleep_until_us: nobody need set the latch. */
		if (pause_us < now_us + GL_SLEEP_SLICE_MS * 1000)
			gl_io_wait_sleep(pause_us, gl_wait_event(GL_WAIT_WRITER_IO));
		else
			gl_io_wait_complete(gl_wait_event(GL_WAIT_WRITER_IO));
		return;
	}

	if (fsync_changed && now_us >= fsync_retry_us)
		fsync_setting_changed();

	until_us = pause_us;
	if (fsync_changed)
		until_us = Min(until_us, fsync_retry_us);
	memset(&decision, 0, sizeof(decision));
	decision.wake_us = GL_NEVER;
	urgent = atomic_load(&gl_shared->urgent_lsn);

	refusing = gl_failure_refusing(&retry_at_us);
	if (refusing && now_us < retry_at_us)
		decision.wake_us = retry_at_us;
	else
	{
		policy_config(&config);
		decision = gl_policy_decide(gl_flush_policy(), &config, pending,
									urgent > gl_ring_durable_lsn(ring) || refusing ||
									gl_failure_retrying() || gl_flush_fills_file(),
									now_us);
		if (decision.sync)
		{
			if (gl_group_file(&error))
				gl_flush_begin(decision.reason, now_us);
			else
				gl_failure_give_up(&error);
			return;
		}

		/* The first append of this run, or room that only a new file gives. */
		if (pending->bytes == 0 && gl_current.fd < 0 &&
			(refusing || atomic_load(&gl_shared->need_segment)))
		{
			if (gl_group_file(&error))
				gl_failure_over();
			else
				gl_failure_no_file(&error);
			return;
		}
	}

	until_us = Min(until_us, decision.wake_us);
	/* Who flushes by himself may hang at the device: somebody has to say so. */
	if (gl_flush_lone_at_work())
		until_us = Min(until_us, now_us + LONE_CHECK_US);
	if (gl_flush_unpublished())
	{
		until_us = Min(until_us, now_us + poll_us);
		poll_us = Min(poll_us * 2, POLL_MAX_US);
	}
	if (gl_ring_insert_lsn(ring) != gl_ring_durable_lsn(ring) ||
		atomic_load(&gl_shared->refusal) != 0 || leaving)
		until_us = Min(until_us, now_us + SPACE_CHECK_US);

	doze(now_us, until_us, decision.join_target == 0 ? GL_FIRST_ADAPTIVE :
		 gl_flush_waiters_cut() + decision.join_target, urgent);
}

/*
 * The token, back from whoever flushes just now.  False: not yet, after a sleep
 * of at most 100 ms; handle signals, then try again.
 */
static bool
have_token(void)
{
	GlError		error;

	if (gl_token_held())
		return true;

	atomic_store(&gl_shared->token_wanted, 1);
	atomic_thread_fence(memory_order_seq_cst);
	if (!gl_token_take())
	{
		int64		began_us = atomic_load(&gl_shared->lone_began_us);

		if (began_us != 0)
			gl_slow_sync_in_progress(began_us * 1000);
		gl_io_wait_sleep(gl_now_us() + GL_SLEEP_SLICE_MS * 1000, gl_wait_event(GL_WAIT_WRITER_IO));
		gl_io_check_interrupts();
		return false;
	}
	atomic_store(&gl_shared->token_wanted, 0);
	if (atomic_load(&gl_shared->state) == GL_STATE_OPEN &&
		gl_flush_take_back(gl_now_us(), &error) == GL_FLUSH_FAILED)
		gl_failure_write(&error);
	return true;
}

/* The log is not open: try again, answer, wait. */
static void
idle(void)
{
	GlState		state = (GlState) atomic_load(&gl_shared->state);
	int64		now_us = gl_now_us();

	gl_serve();
	state = (GlState) atomic_load(&gl_shared->state);
	if (state == GL_STATE_OPEN)
		return;
	if ((state == GL_STATE_STARTING || state == GL_STATE_UNAVAILABLE) && now_us >= reopen_at_us)
	{
		GlError		error;

		gl_log_open(&error);
		reopen_at_us = gl_now_us() + REOPEN_US;
		state = (GlState) atomic_load(&gl_shared->state);
		if (error.sqlstate != 0)
		{
			gl_failure_note(&error);
			/* Once for each reason, not once for each try. */
			if (strcmp(error.message, open_error.message) != 0)
				gl_error_report(WARNING, &error);
			open_error = error;
		}
		if (state == GL_STATE_OPEN)
		{
			gl_error_clear(&open_error);
			gl_flush_start();
		}
		return;
	}
	gl_io_wait_sleep(state == GL_STATE_STARTING || state == GL_STATE_UNAVAILABLE ? reopen_at_us :
					 leaving ? now_us + SPACE_CHECK_US : GL_NEVER,
					 gl_wait_event(GL_WAIT_WRITER_MAIN));
}

/* A predecessor in this server run left an open log: carry on with its ring. */
static bool
resume(GlError *error)
{
	bool		exists;
	GlCatalog  *catalog;

	if (!gl_directory_open(&gl_control, &exists, error))
		return false;
	if (!exists)
	{
		gl_error_set(error, ERRCODE_DATA_CORRUPTED, 0, NULL,
					 "the control file of log directory \"%s\" is gone", gl_directory);
		return false;
	}
	catalog = gl_catalog_read(gl_control.holes_end, error);
	if (catalog == NULL)
		return false;
	if (!gl_tail_sync(&catalog->map, error))
		return false;
	atomic_store(&gl_shared->fsync_on, enableFsync ? 1 : 0);
	gl_files_start(catalog);
	gl_sync_method_probe();
	if (!gl_spares_start(error))
		return false;
	gl_flush_start();
	ereport(LOG,
			(errmsg("grouplog writer carries on at LSN " GL_LSN, LSN_FORMAT_ARGS(gl_ring_durable_lsn(gl_ring())))));
	return true;
}

/* Until it succeeds, nobody may wait for an answer that does not come. */
static void
try_resume(bool *resumed)
{
	GlError		error;

	*resumed = resume(&error);
	if (*resumed)
		return;
	gl_failure_give_up(&error);
	gl_io_wait_sleep(gl_now_us() + RESUME_US, gl_wait_event(GL_WAIT_WRITER_MAIN));
}

/* Asked to end: returns if it is too early for that. */
static void
stop(bool resumed)
{
	static int64 look_again_us = 0;
	GlError		error;

	if (leaving && !shutdown_requested && gl_now_us() < look_again_us)
	{
		gl_stop_requested = false;
		return;
	}
	if (!shutdown_requested && !gl_server_is_stopping() && !shutdown_requested)
	{
		ereport(LOG, (errmsg("grouplog writer ends by request; another one carries on")));
		proc_exit(1);
	}

	/*
	 * The postmaster's signal may be lost in one that was pending already, so
	 * we do not rely on it.
	 */
	if (!shutdown_requested && gl_sessions_remain())
	{
		if (!leaving)
			ereport(LOG, (errmsg("grouplog writer ends with the last session, as the server is shutting down")));
		leaving = true;
		look_again_us = gl_now_us() + GL_SLEEP_SLICE_MS * 1000;
		gl_stop_requested = false;
		return;
	}

	/* From here on, the device has a minute. */
	gl_stop_requested = true;
	while (!have_token())
		CHECK_FOR_INTERRUPTS();
	if (!resumed && !resume(&error))
	{
		gl_error_report(LOG, &error);
		proc_exit(1);
	}
	gl_log_close();
	proc_exit(0);
}

static void
open_io(void)
{
	GlIoMethod	got;
	char		reason[sizeof(gl_shared->io_reason)] = "";

	gl_io_wait_open((GlIoMethod) gl_io_method, &got, reason, sizeof(reason));
	atomic_store(&gl_shared->io_method, (uint32) got);
	gl_shared_set_text(gl_shared->io_reason, reason, sizeof(gl_shared->io_reason));
	if ((int) got != gl_io_method)
		ereport(LOG,
				(errmsg("grouplog uses I/O method \"sync\" in place of \"io_uring\": %s", reason),
				 errhint("Build grouplog with liburing and allow io_uring to the server's processes, or set \"grouplog.io_method\" to \"sync\".")));
}

void
grouplog_writer_main(Datum arg)
{
	bool		resumed;
	struct sigaction on_sigterm = {.sa_sigaction = handle_sigterm,.sa_flags = SA_SIGINFO | SA_RESTART};

	sigemptyset(&on_sigterm.sa_mask);
	(void) sigaction(SIGTERM, &on_sigterm, NULL);	/* before 19, pqsignal does not say who sent it */
	pqsignal(SIGINT, PG_SIG_IGN);	/* there is no statement to cancel */
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();

	/* The kernel may delay timers by 50 us to save wake-ups: windows are that short. */
	(void) prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	MemoryContextSwitchTo(AllocSetContextCreate(TopMemoryContext, "grouplog writer",
												ALLOCSET_DEFAULT_SIZES));
	before_shmem_exit(writer_gone, (Datum) 0);
	atomic_store(&gl_shared->writer_pid, MyProcPid);
	atomic_store(&gl_shared->writer_latch, MyLatch);
	atomic_store(&gl_shared->writer_gone_us, 0);
	while (!gl_token_take())
	{
		/* A lone appender is at its flush. */
		gl_io_check_interrupts();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 100,
						 gl_wait_event(GL_WAIT_WRITER_MAIN));
		ResetLatch(MyLatch);
	}
	open_io();
	gl_segment_fsync = gl_io_fsync;
	if (!enableFsync)
		atomic_store(&gl_shared->fsync_on, 0);
	gl_serve_orphan();

	/* What a predecessor found corrupt is found again; an open log goes on. */
	if (atomic_load(&gl_shared->state) == GL_STATE_CORRUPT)
		atomic_store(&gl_shared->state, GL_STATE_STARTING);
	resumed = atomic_load(&gl_shared->state) != GL_STATE_OPEN;

	for (;;)
	{
		MemoryContextReset(CurrentMemoryContext);
		handle_signals();
		if (gl_stop_requested || shutdown_requested || leaving)
			stop(resumed);
		if (!have_token())
			continue;
		if (!resumed)
			try_resume(&resumed);
		else if (atomic_load(&gl_shared->state) == GL_STATE_OPEN)
			work();
		else
			idle();
	}
}
