/*-------------------------------------------------------------------------
 *
 * sync_policy.c
 *		When to sync: the four modes as deadlines.
 *
 * Periodic, batch and group are one comparison each; what follows is about the
 * adaptive mode.
 *
 * Why wait at all.  N sessions append, wait for the sync, and append again.  If
 * each sync starts as soon as something is pending, those who were not in it
 * form the next group, and two half groups take turns for ever: N/2 records a
 * sync.  Whoever waits a moment until those just released are back gets N.
 *
 * Whom to expect.  There are two situations when a sync is done:
 *
 *	crowd	 somebody is pending.  Expect them, and a share of those just
 *			 released.  The share is learnt: some think for long, some have left.
 *	quiet	 nobody is.  When the first comes, expect as many as came together
 *			 the last time: the waiters of that group and those who missed it by
 *			 a moment.  For sessions in a tight loop these are the ones just
 *			 released; but bursts of independent arrivals are met as well.
 *
 * A lone session is all there is to expect, so it never waits.
 *
 * How long.  At most half a sync, the point where waiting for the other half
 * group costs what it brings; and while nobody joins, at most a sync time times
 * the part that is missing: if one of eight has left, the seven lose an eighth.
 * A silence much longer than the arrivals before it took ends a wait too, as who
 * returns at all returns in a bunch.
 *
 * Does it pay.  A wait of d sync times, with p waiters pending and j joining,
 * saves 1 - d for each who joined: without it they would have spent the rest of
 * a sync in progress and then one more.  It costs d for each of the p, and for
 * each of the m who would have caught the next sync, as that starts later by d:
 *
 *		j (1 - d)  against  (p + m) d
 *
 * is known when the sync is done, and smoothed.  With arrivals that come anyway
 * (open loop) j is d times a sync's arrivals and p is a full sync's, so waiting
 * never pays.  On a machine short of CPU the released come back in a slow stream:
 * when it takes them longer than a sync, m is what the wait missed, and syncing
 * at once wins, since one part of the sessions computes while the other's sync
 * runs.  Then waits stop, except for a probe after 1, 2, 4 ... groups; and as old
 * experience fades meanwhile, the first probe that pays brings them back.
 *
 * Where sync times vary much, a sync in progress is likely to be a long one, and
 * the rest of it, which the joiners are spared, is longer than 1 - d: the part
 * that is left after half the usual time is measured, and d's other values lie
 * on the line through it.
 *
 * Only sessions that wait are counted, never records: a session that appends a
 * thousand records without waiting is nobody's company.
 *
 * A volume that counts syncs, see sync_meter.c, is paced: there the next sync starts
 * when what the last one uses up has passed, or when all sessions about have come;
 * after a pause, while syncs are left over from it, when nobody comes any more.
 *
 *-------------------------------------------------------------------------
 */
#include "sync_policy.h"

#include <assert.h>

/* A new sample's weight in all smoothed values is one in so many. */
#define SMOOTHING		16

/*
 * One sync counts as at most so many times the usual: a disk that stalls for a
 * second must not make the next wait last half a second.
 */
#define SYNC_CLAMP		8

/* The share follows disappointment faster, as each costs everybody a wait. */
#define SHARE_SMOOTHING	4

/* A probe asks at least for this share of the candidates. */
#define PROBE_SHARE		0.5

/* At most so many groups between two probes. */
#define MAX_BACKOFF		64

/* Before anything was learnt: waiting for one's partners usually pays. */
#define PRIOR_GAIN		0.2

/* A silence of so many times the time in which the others came ends a wait ... */
#define SILENCE			3

/* ... but this part of a sync is too short to be called a silence. */
#define SHORT_SILENCE	16

/*
 * Where syncs are counted and some are left over, this part of the time in which
 * the others came is a silence.
 */
#define METERED_SILENCE	4

/* Who comes within this part of a sync after a cut would have been company. */
#define MISSED_BY		8

enum
{
	QUIET = 0,
	CROWD = 1
};

static inline int64_t
min_time(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t
max_time(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* time + delta, with GL_NEVER for what does not come. */
static inline int64_t
time_after(int64_t time, int64_t delta)
{
	return delta > 0 && time > GL_NEVER - delta ? GL_NEVER : time + delta;
}

void
gl_pending_reset(GlPending *pending)
{
	*pending = (GlPending)
	{
		.oldest_us = GL_NEVER,
		.adaptive_us = GL_NEVER,
		.window_us = GL_NEVER
	};
}

void
gl_pending_add(GlPending *pending, GlSyncMode mode, bool waits,
			   int64_t time_us, uint64_t bytes)
{
	pending->bytes += bytes;
	pending->records++;
	pending->oldest_us = min_time(pending->oldest_us, time_us);
	if (!waits || mode == GL_SYNC_PERIODIC)
		return;

	pending->waiters++;
	switch (mode)
	{
		case GL_SYNC_PERIODIC:
			break;
		case GL_SYNC_BATCH:
			pending->batch++;
			break;
		case GL_SYNC_GROUP:
			pending->window_us = min_time(pending->window_us, time_us);
			break;
		case GL_SYNC_ADAPTIVE:
			pending->adaptive++;
			if (time_us < pending->released_us)
				pending->others++;
			pending->adaptive_us = min_time(pending->adaptive_us, time_us);
			pending->joined_us = max_time(pending->joined_us, time_us);
			break;
	}
}

void
gl_policy_init(GlPolicy *policy)
{
	*policy = (GlPolicy)
	{
		.tail = 0.5,
		.lessons = {
			[QUIET] = {.gain = PRIOR_GAIN, .share = 1.0},
			[CROWD] = {.gain = PRIOR_GAIN, .share = 1.0}
		}
	};
}

static inline void
smooth(double *average, double value, int smoothing)
{
	*average += (value - *average) / smoothing;
}

static inline bool
waiting_pays(const GlPolicyLesson *lesson)
{
	return lesson->gain >= lesson->cost;
}

/*
 * Of those who came during the sync: how many would have caught the next one,
 * had this one begun when its wait did?  Their arrivals are taken as even.
 */
static double
delayed(const GlPolicy *policy, const GlPending *pending)
{
	double		next_us = (double) (policy->cut_us - policy->waited_us) + policy->sync_us;
	double		first_us = (double) pending->adaptive_us;
	double		last_us = (double) pending->joined_us;
	double		part;

	if (pending->adaptive == 0 || first_us >= next_us)
		return 0;
	part = last_us <= next_us ? 1.0 : (next_us - first_us) / (last_us - first_us);
	return part * pending->waiters;
}

/* Experience of a situation in which nobody waits, or that does not come, fades. */
static void
fade(GlPolicyLesson *lesson)
{
	if (lesson->skip == 0)
		return;
	lesson->skip--;
	smooth(&lesson->gain, 0, SMOOTHING);
	smooth(&lesson->cost, 0, SMOOTHING);
}

/*
 * The last group is durable, and these missed it: did its wait pay?
 */
static void
learn(GlPolicy *policy, const GlPending *pending)
{
	GlPolicyLesson *lesson = &policy->lessons[policy->crowd ? CROWD : QUIET];

	if (policy->waited)
	{
		double		d = policy->waited_syncs;
		double		joined = policy->waited_joined;
		double		before = policy->waited_before;
		double		spared = 1.0 - 2.0 * d * (1.0 - policy->tail);

		smooth(&lesson->gain, joined * spared / (before + joined), SMOOTHING);
		smooth(&lesson->cost, (before + delayed(policy, pending)) * d / (before + joined), SMOOTHING);

		if (policy->waited_probing)
		{
			if (waiting_pays(lesson))
				lesson->backoff = 0;
			else if (lesson->backoff == 0)
				lesson->backoff = 1;
			else if (lesson->backoff < MAX_BACKOFF)
				lesson->backoff *= 2;
			lesson->skip = lesson->backoff;
		}
	}
	else
		fade(lesson);
	fade(&policy->lessons[policy->crowd ? QUIET : CROWD]);
}

/* The first look after a sync: learn from it, and settle whom to expect. */
static void
expect(GlPolicy *policy, const GlPending *pending)
{
	GlPolicyLesson *lesson;

	/* That wait, or none, was for a meter, though the sync may just have refuted it. */
	if (!policy->paced)
		learn(policy, pending);

	/* How many come together?  A crowd may be several bursts, or one grown. */
	if (policy->crowd)
	{
		if (policy->burst < policy->released)
			policy->burst = policy->released;
	}
	else
	{
		policy->burst = policy->released;
		/* After the sync, it may be one of those released, back already. */
		if (pending->adaptive > 0 && pending->adaptive_us < policy->done_us &&
			pending->adaptive_us - policy->cut_us < policy->sync_us / MISSED_BY)
			policy->burst += pending->waiters;
	}

	policy->fresh = false;
	policy->waited = false;
	policy->waiting = false;
	policy->probing = false;

	/* Who appended after the sync was done is one of those it released. */
	policy->crowd = pending->adaptive > 0 && pending->adaptive_us < policy->done_us;
	policy->carried = policy->crowd ? pending->waiters : pending->waiters - pending->adaptive;
	policy->candidates = policy->crowd ? policy->released : policy->burst;
	policy->expected = policy->carried;

	if (policy->meter.cost_us > 0)
	{
		/*
		 * Those released who are back already are not counted again: with one
		 * expected too many, every group would wait for its whole pace.
		 */
		uint32_t	company = policy->released + pending->others +
			pending->waiters - pending->adaptive;

		if (policy->company < company)
			policy->company = company;
		else
			smooth(&policy->company, company, SMOOTHING);
		policy->expected = (uint32_t) (policy->company + 0.5);
		return;
	}

	lesson = &policy->lessons[policy->crowd ? CROWD : QUIET];
	if (!waiting_pays(lesson))
	{
		if (lesson->skip > 0)
			return;
		policy->probing = true;
		if (lesson->share < PROBE_SHARE)
			lesson->share = PROBE_SHARE;
	}
	if (policy->crowd)
	{
		uint32_t	joiners = (uint32_t) (lesson->share * policy->candidates + 0.5);

		policy->expected += joiners == 0 && policy->candidates > 0 ? 1 : joiners;
	}
	else if (policy->expected < policy->candidates)
		policy->expected = policy->candidates;
}

/* On a volume that counts syncs: when the next may start at no loss. */
static int64_t
pace_us(const GlPolicy *policy, const GlPolicyConfig *config)
{
	return policy->done_us + min_time((int64_t) (policy->meter.cost_us - policy->sync_us),
									  config->adaptive_window_us);
}

/*
 * ... and if some are there since join_us: with syncs left over from a pause, as
 * soon as nobody comes for a while.
 */
static int64_t
pace_with_waiters_us(const GlPolicy *policy, const GlPolicyConfig *config, int64_t join_us)
{
	int64_t		silence_us = max_time((int64_t) policy->sync_us,
									  (join_us - policy->wait_start_us) / METERED_SILENCE);
	int64_t		deadline_us = pace_us(policy, config);

	return policy->meter.saved < 1 ? deadline_us : min_time(deadline_us, join_us + silence_us);
}

/* Adaptive waiters are pending: sync, or until when to wait. */
static GlDecision
decide_adaptive(GlPolicy *policy, const GlPolicyConfig *config,
				const GlPending *pending, int64_t now_us)
{
	GlDecision	decision = {.wake_us = GL_NEVER};
	int64_t		patience_us = min_time((int64_t) (policy->sync_us / 2), config->adaptive_window_us);
	int64_t		join_us;
	int64_t		silence_us;
	int64_t		deadline_us;

	/* That they were there at the first look is a wait too, and a good one. */
	if (!policy->waiting && policy->expected > (policy->carried > 0 ? policy->carried : 1))
	{
		policy->waiting = true;
		policy->wait_start_us = max_time(policy->done_us, pending->adaptive_us);
		policy->wait_before = policy->carried > 0 ? policy->carried : 1;
	}

	if (pending->waiters >= policy->expected)
	{
		decision.sync = true;
		decision.reason = GL_FLUSH_JOINED;
		return decision;
	}

	join_us = max_time(policy->wait_start_us, pending->joined_us);
	silence_us = (int64_t) (policy->sync_us * (policy->expected - pending->waiters) /
							policy->expected);
	if (pending->waiters > policy->wait_before)
		silence_us = min_time(silence_us, SILENCE * (join_us - policy->wait_start_us));
	silence_us = max_time(silence_us, (int64_t) (policy->sync_us / SHORT_SILENCE));
	deadline_us = min_time(policy->wait_start_us + patience_us, join_us + silence_us);
	if (policy->meter.cost_us > 0)
		deadline_us = pace_with_waiters_us(policy, config, join_us);

	if (deadline_us <= now_us)
	{
		decision.sync = true;
		decision.reason = GL_FLUSH_PATIENCE;
		return decision;
	}
	decision.wake_us = deadline_us;
	decision.join_target = policy->expected;
	return decision;
}

GlDecision
gl_policy_decide(GlPolicy *policy, const GlPolicyConfig *config,
				 const GlPending *pending, bool urgent, int64_t now_us)
{
	GlDecision	decision = {.wake_us = GL_NEVER};
	int64_t		period_us = GL_NEVER;

	if (policy->fresh)
		expect(policy, pending);

	if (pending->records > 0)
	{
		period_us = time_after(pending->oldest_us, config->sync_period_us);

		decision.sync = true;
		if (urgent)
			decision.reason = GL_FLUSH_REQUEST;
		else if (pending->bytes >= config->flush_bytes)
			decision.reason = GL_FLUSH_BYTES;
		else if (pending->batch > 0)
			decision.reason = GL_FLUSH_BATCH;
		else if (pending->window_us <= now_us)
			decision.reason = GL_FLUSH_WINDOW;
		else if (period_us <= now_us)
			decision.reason = GL_FLUSH_PERIOD;
		else
			decision.sync = false;
		if (decision.sync)
			return decision;
	}

	if (pending->adaptive > 0)
	{
		decision = decide_adaptive(policy, config, pending, now_us);
		if (decision.sync)
			return decision;
	}
	else if (policy->expected > pending->waiters + 1)
	{
		/*
		 * Those just released will be back in a moment: the first of them need
		 * not wake the writer.
		 */
		int64_t		look_us = policy->meter.cost_us > 0 ? pace_us(policy, config) :
			policy->done_us + (int64_t) (policy->sync_us / MISSED_BY);

		if (now_us < look_us)
		{
			decision.wake_us = look_us;
			decision.join_target = policy->expected;
		}
	}

	decision.wake_us = min_time(decision.wake_us, min_time(pending->window_us, period_us));
	return decision;
}

void
gl_policy_cut(GlPolicy *policy, const GlPending *pending, int64_t now_us)
{
	/* Between two cuts pending only grows. */
	assert(!policy->waiting || pending->waiters >= policy->wait_before);

	/* Before the first sync there is nothing to measure a wait by. */
	policy->waited = policy->waiting && policy->sync_us > 0;
	policy->waiting = false;
	policy->paced = policy->meter.cost_us > 0;
	policy->cut_us = now_us;
	gl_meter_sync_starts(&policy->meter, (double) (now_us - policy->done_us));
	policy->released = pending->waiters;

	if (policy->waited)
	{
		int64_t		wait_us = max_time(now_us - policy->wait_start_us, 0);
		GlPolicyLesson *lesson = &policy->lessons[policy->crowd ? CROWD : QUIET];

		policy->waited_probing = policy->probing;
		policy->waited_us = wait_us;
		policy->waited_syncs = (double) wait_us / policy->sync_us;
		policy->waited_before = policy->wait_before;
		policy->waited_joined = pending->waiters - policy->wait_before;

		/* If all came, more might have.  A meter's waits are for all there are. */
		if (pending->waiters >= policy->expected)
			smooth(&lesson->share, 1.0, SMOOTHING);
		else if (policy->candidates > 0 && !policy->paced)
			smooth(&lesson->share,
				   (double) (pending->waiters - policy->carried) / policy->candidates,
				   SHARE_SMOOTHING);
	}
}

void
gl_policy_done(GlPolicy *policy, GlPending *pending, int64_t now_us)
{
	double		took_us = now_us > policy->cut_us ? (double) (now_us - policy->cut_us) : 1.0;

	if (policy->sync_us == 0)
		policy->sync_us = took_us;
	else
	{
		bool		metered = policy->meter.cost_us > 0;

		gl_meter_sync_done(&policy->meter, policy->sync_us, took_us, now_us);
		if (!metered)
			policy->company = 0;
		if (took_us > policy->sync_us * SYNC_CLAMP)
			took_us = policy->sync_us * SYNC_CLAMP;
		smooth(&policy->tail,
			   took_us > policy->sync_us / 2 ? took_us / policy->sync_us - 0.5 : 0,
			   SMOOTHING);
		smooth(&policy->sync_us, took_us, SMOOTHING);
	}
	policy->done_us = now_us;
	policy->fresh = true;
	pending->released_us = now_us;
	pending->others = pending->adaptive;
}

/* Its waiters got an error, and who knows what they do next: expect nobody. */
void
gl_policy_failed(GlPolicy *policy)
{
	policy->released = 0;
	policy->burst = 0;
	policy->carried = 0;
	policy->candidates = 0;
	policy->expected = 0;
	policy->crowd = false;
	policy->probing = false;
	policy->waiting = false;
	policy->waited = false;
	policy->fresh = false;
}

const char *
gl_flush_reason_name(GlFlushReason reason)
{
	switch (reason)
	{
		case GL_FLUSH_REQUEST:
			return "request";
		case GL_FLUSH_BYTES:
			return "bytes";
		case GL_FLUSH_BATCH:
			return "batch";
		case GL_FLUSH_WINDOW:
			return "window";
		case GL_FLUSH_PERIOD:
			return "period";
		case GL_FLUSH_JOINED:
			return "joined";
		case GL_FLUSH_PATIENCE:
			return "patience";
		case GL_FLUSH_LONE:
			return "lone";
	}
	return "unknown";
}

const char *
gl_sync_mode_name(GlSyncMode mode)
{
	switch (mode)
	{
		case GL_SYNC_PERIODIC:
			return "periodic";
		case GL_SYNC_BATCH:
			return "batch";
		case GL_SYNC_GROUP:
			return "group";
		case GL_SYNC_ADAPTIVE:
			return "adaptive";
	}
	return "unknown";
}
