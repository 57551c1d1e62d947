/*-------------------------------------------------------------------------
 *
 * slow_sync.c
 *		Say in the server log when the device is slow.
 *
 * A sync that takes longer than grouplog.log_sync_min_duration is warned of
 * while it is still in progress, if the writer is free to look (with io_method =
 * sync the system call itself is the wait), or else when it is done.  There is
 * one such line in INTERVAL_NS; what is kept silent meanwhile is counted, and
 * said with the first sync after that, slow or not.  Only a line that says that
 * a sync is in progress is always followed by one that says that it is over.
 *
 * What is measured is write and sync together: that is what sessions wait for.
 *
 *-------------------------------------------------------------------------
 */
#include "slow_sync.h"

#include "config.h"
#include "shared.h"

#define INTERVAL_NS		INT64CONST(10000000000)

static int64 told_ns = 0;		/* the last line; 0: none yet */
static int64 in_progress_ns = 0;	/* start of the sync said to be in progress */
static uint32 silent = 0;		/* slow ones since the last line */
static int64 silent_max_ms = 0;

static int64
limit_ns(void)
{
	return gl_log_sync_min_duration < 0 ? PG_INT64_MAX :
		(int64) gl_log_sync_min_duration * 1000000;
}

static bool
may_tell(int64 now_ns)
{
	return told_ns == 0 || now_ns - told_ns >= INTERVAL_NS;
}

static void
told(int64 now_ns)
{
	told_ns = now_ns;
	silent = 0;
	silent_max_ms = 0;
}

static int
tell_silent(void)
{
	if (silent == 0)
		return 0;
	return errdetail_plural("%u more was slow since the last such message, it took %lld ms.",
							"%u more were slow since the last such message, the slowest took %lld ms.",
							silent, silent, (long long) silent_max_ms);
}

void
gl_slow_sync_in_progress(int64 start_ns)
{
	int64		now_ns = gl_now_ns();

	if (now_ns - start_ns < limit_ns() || in_progress_ns == start_ns || !may_tell(now_ns))
		return;
	ereport(WARNING,
			(errmsg("a sync of the log has not ended after %lld ms",
					(long long) ((now_ns - start_ns) / 1000000)),
			 tell_silent(),
			 errhint("Look at the device of \"grouplog.directory\".")));
	told(now_ns);
	in_progress_ns = start_ns;
}

void
gl_slow_sync_done(int64 start_ns)
{
	int64		now_ns = gl_now_ns();
	int64		took_ms = (now_ns - start_ns) / 1000000;
	bool		slow = now_ns - start_ns >= limit_ns();

	if (gl_log_sync_min_duration < 0)
		told(told_ns);			/* nobody wants to know any more */
	if (in_progress_ns == start_ns)
	{
		in_progress_ns = 0;
		ereport(LOG,
				(errmsg("the sync of the log ended after %lld ms", (long long) took_ms)));
	}
	else if (slow && may_tell(now_ns))
	{
		ereport(WARNING,
				(errmsg("a sync of the log took %lld ms", (long long) took_ms),
				 tell_silent(),
				 errhint("Look at the device of \"grouplog.directory\", or raise \"grouplog.log_sync_min_duration\".")));
		told(now_ns);
	}
	else if (slow)
	{
		silent++;
		silent_max_ms = Max(silent_max_ms, took_ms);
	}
	else if (silent > 0 && may_tell(now_ns))
	{
		ereport(LOG,
				(errmsg_plural("%u more sync of the log was slow, it took %lld ms",
							   "%u more syncs of the log were slow, the slowest took %lld ms",
							   silent, silent, (long long) silent_max_ms)));
		told(now_ns);
	}
}
