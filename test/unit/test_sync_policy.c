/*-------------------------------------------------------------------------
 *
 * test_sync_policy.c
 *		Unit tests of src/sync_policy.c: the rule of each mode.
 *
 * The tests play the writer by hand, with a clock of their own.  How much the
 * adaptive mode gains over the others is bench/policy/policy_sim's matter.
 *
 *-------------------------------------------------------------------------
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "sync_policy.h"

#define PERIOD		INT64_C(1000000)
#define WINDOW		INT64_C(10000)
#define SYNC		INT64_C(4000)
#define RETURN		INT64_C(100)	/* from a release to the next append */

static GlPolicy policy;
static GlPolicyConfig config;
static GlPending pending;
static GlDecision decision;
static int64_t now;

static int
setup(void **state)
{
	(void) state;
	gl_policy_init(&policy);
	gl_pending_reset(&pending);
	config = (GlPolicyConfig)
	{
		.sync_period_us = PERIOD,
		.adaptive_window_us = WINDOW,
		.flush_bytes = 100000
	};
	now = 5000000;
	return 0;
}

static void
append(GlSyncMode mode)
{
	gl_pending_add(&pending, mode, mode != GL_SYNC_PERIODIC,
				   mode == GL_SYNC_GROUP ? now + WINDOW : now, 64);
}

static void
decide(bool urgent)
{
	decision = gl_policy_decide(&policy, &config, &pending, urgent, now);
}

static void
assert_syncs(GlFlushReason reason)
{
	decide(false);
	assert_true(decision.sync);
	assert_string_equal(gl_flush_reason_name(decision.reason), gl_flush_reason_name(reason));
}

static void
assert_sleeps(int64_t wake_us)
{
	decide(false);
	assert_false(decision.sync);
	assert_true(decision.wake_us == wake_us);
}

/* Sync what is pending, and look at once, as the writer does. */
static void
sync_group(int64_t took_us)
{
	gl_policy_cut(&policy, &pending, now);
	gl_pending_reset(&pending);
	now += took_us;
	gl_policy_done(&policy, &pending, now);
	decide(false);
}

/* The same, while adaptive sessions append halfway through the sync. */
static void
sync_group_with_arrivals(int64_t took_us, int arrivals)
{
	gl_policy_cut(&policy, &pending, now);
	gl_pending_reset(&pending);
	now += took_us / 2;
	for (int i = 0; i < arrivals; i++)
		append(GL_SYNC_ADAPTIVE);
	now += took_us - took_us / 2;
	gl_policy_done(&policy, &pending, now);
	decide(false);
}

static void
append_many(GlSyncMode mode, int count)
{
	for (int i = 0; i < count; i++)
		append(mode);
}

/*
 * Sleep as the decision says, until it syncs; sessions that append meanwhile are
 * not this function's matter.  Returns how long that took.
 */
static int64_t
sleep_until_sync(void)
{
	int64_t		start = now;

	for (int i = 0; i < 100; i++)
	{
		decide(false);
		if (decision.sync)
			return now - start;
		assert_true(decision.wake_us > now);
		assert_true(decision.wake_us != GL_NEVER);
		now = decision.wake_us;
	}
	fail_msg("does not come to an end");
	return 0;
}

/*
 * Pending: what the scan builds up
 */
static void
test_pending(void **state)
{
	(void) state;
	assert_true(pending.oldest_us == GL_NEVER && pending.adaptive_us == GL_NEVER &&
				pending.window_us == GL_NEVER);

	gl_pending_add(&pending, GL_SYNC_GROUP, true, 900, 10);
	gl_pending_add(&pending, GL_SYNC_GROUP, true, 700, 10);
	gl_pending_add(&pending, GL_SYNC_GROUP, true, 800, 10);
	assert_true(pending.window_us == 700);
	gl_pending_add(&pending, GL_SYNC_ADAPTIVE, true, 500, 1);
	gl_pending_add(&pending, GL_SYNC_ADAPTIVE, true, 450, 1);
	gl_pending_add(&pending, GL_SYNC_BATCH, true, 600, 1);
	assert_true(pending.adaptive_us == 450);
	assert_true(pending.joined_us == 500);
	gl_pending_add(&pending, GL_SYNC_PERIODIC, false, 400, 1);
	assert_true(pending.oldest_us == 400);
	assert_int_equal(pending.records, 7);
	assert_int_equal(pending.bytes, 34);
	assert_int_equal(pending.waiters, 6);
	assert_int_equal(pending.adaptive, 2);
	assert_int_equal(pending.batch, 1);

	gl_pending_reset(&pending);
	assert_int_equal(pending.records, 0);
	assert_true(pending.oldest_us == GL_NEVER);
}

/* Records for which nobody waits bring no deadline but the period's. */
static void
test_pending_without_waiters(void **state)
{
	static const GlSyncMode modes[] = {GL_SYNC_BATCH, GL_SYNC_GROUP, GL_SYNC_ADAPTIVE};

	(void) state;
	for (int m = 0; m < 3; m++)
	{
		gl_pending_reset(&pending);
		gl_pending_add(&pending, modes[m], false, now, 10);
		assert_int_equal(pending.waiters, 0);
		assert_sleeps(now + PERIOD);
	}
}

/*
 * The simple modes
 */
static void
test_nothing_pending(void **state)
{
	(void) state;
	assert_sleeps(GL_NEVER);

	/* There is nothing that a request could ask for. */
	decide(true);
	assert_false(decision.sync);
	assert_true(decision.wake_us == GL_NEVER);
}

static void
test_batch(void **state)
{
	(void) state;
	append(GL_SYNC_BATCH);
	assert_syncs(GL_FLUSH_BATCH);
	sync_group(SYNC);
	assert_false(decision.sync);
	append(GL_SYNC_BATCH);
	assert_syncs(GL_FLUSH_BATCH);
}

static void
test_group(void **state)
{
	int64_t		end = now + WINDOW;

	(void) state;
	append(GL_SYNC_GROUP);
	assert_sleeps(end);
	now += WINDOW / 2;
	append(GL_SYNC_GROUP);
	assert_sleeps(end);
	now = end - 1;
	assert_sleeps(end);

	/* The clock equal to the deadline is late enough. */
	now = end;
	assert_syncs(GL_FLUSH_WINDOW);
}

/* One group client: exactly one window each time, whatever came before. */
static void
test_one_group_client(void **state)
{
	(void) state;
	for (int i = 0; i < 20; i++)
	{
		now += RETURN;
		append(GL_SYNC_GROUP);
		assert_int_equal(sleep_until_sync(), WINDOW);
		assert_int_equal(decision.reason, GL_FLUSH_WINDOW);
		sync_group(SYNC);
	}
}

static void
test_period(void **state)
{
	int64_t		oldest = now;

	(void) state;
	append(GL_SYNC_PERIODIC);
	assert_sleeps(oldest + PERIOD);
	now += PERIOD / 2;
	append(GL_SYNC_PERIODIC);
	now = oldest + PERIOD - 1;
	assert_sleeps(oldest + PERIOD);
	now++;
	assert_syncs(GL_FLUSH_PERIOD);
}

/* Counted from the oldest record, not from the last sync: an idle log lags nothing. */
static void
test_period_after_idling(void **state)
{
	(void) state;
	append(GL_SYNC_PERIODIC);
	sync_group(SYNC);
	now += 100 * PERIOD;
	append(GL_SYNC_PERIODIC);
	assert_sleeps(now + PERIOD);
}

/* Nor from the cut: records that came during the sync have aged already. */
static void
test_period_during_sync(void **state)
{
	int64_t		oldest;

	(void) state;
	append(GL_SYNC_PERIODIC);
	gl_policy_cut(&policy, &pending, now);
	gl_pending_reset(&pending);
	now += 10;
	oldest = now;
	append(GL_SYNC_PERIODIC);
	now += 3 * PERIOD;
	gl_policy_done(&policy, &pending, now);
	assert_syncs(GL_FLUSH_PERIOD);
	now = oldest + PERIOD - 1;
	assert_sleeps(oldest + PERIOD);
}

static void
test_endless_period(void **state)
{
	(void) state;
	config.sync_period_us = GL_NEVER;
	append(GL_SYNC_PERIODIC);
	assert_sleeps(GL_NEVER);
	now = GL_NEVER - 1;
	assert_sleeps(GL_NEVER);
}

static void
test_bytes(void **state)
{
	(void) state;
	gl_pending_add(&pending, GL_SYNC_PERIODIC, false, now, config.flush_bytes - 1);
	assert_sleeps(now + PERIOD);
	gl_pending_add(&pending, GL_SYNC_PERIODIC, false, now, 1);
	assert_syncs(GL_FLUSH_BYTES);
}

static void
test_urgent(void **state)
{
	(void) state;
	append(GL_SYNC_PERIODIC);
	assert_sleeps(now + PERIOD);
	decide(true);
	assert_true(decision.sync);
	assert_int_equal(decision.reason, GL_FLUSH_REQUEST);
}

/* The earliest deadline counts, whoever brought it. */
static void
test_mixes(void **state)
{
	int64_t		start = now;

	(void) state;
	append(GL_SYNC_PERIODIC);
	append(GL_SYNC_GROUP);
	assert_sleeps(start + WINDOW);
	now = start + WINDOW - 10;
	append(GL_SYNC_BATCH);
	assert_syncs(GL_FLUSH_BATCH);
	sync_group(SYNC);

	/* A period that ends before a window. */
	start = now;
	append(GL_SYNC_PERIODIC);
	now = start + PERIOD - WINDOW / 2;
	append(GL_SYNC_GROUP);
	assert_sleeps(start + PERIOD);
	now = start + PERIOD;
	assert_syncs(GL_FLUSH_PERIOD);
}

/* Where several reasons hold, the first in the header's order is given. */
static void
test_precedence(void **state)
{
	(void) state;

	append(GL_SYNC_PERIODIC);
	append(GL_SYNC_GROUP);
	append(GL_SYNC_ADAPTIVE);
	append(GL_SYNC_BATCH);
	pending.bytes = config.flush_bytes;
	now += 2 * PERIOD;
	decide(true);
	assert_int_equal(decision.reason, GL_FLUSH_REQUEST);
	assert_syncs(GL_FLUSH_BYTES);
	pending.bytes--;
	assert_syncs(GL_FLUSH_BATCH);
	pending.batch = 0;
	assert_syncs(GL_FLUSH_WINDOW);
	pending.window_us = GL_NEVER;
	assert_syncs(GL_FLUSH_PERIOD);
	pending.oldest_us = GL_NEVER;
	assert_syncs(GL_FLUSH_JOINED);
}

static void
test_names(void **state)
{
	(void) state;
	for (int i = 0; i < GL_FLUSH_REASONS; i++)
		for (int j = 0; j < i; j++)
			assert_string_not_equal(gl_flush_reason_name((GlFlushReason) i),
									gl_flush_reason_name((GlFlushReason) j));
	assert_string_equal(gl_sync_mode_name(GL_SYNC_PERIODIC), "periodic");
	assert_string_equal(gl_sync_mode_name(GL_SYNC_BATCH), "batch");
	assert_string_equal(gl_sync_mode_name(GL_SYNC_GROUP), "group");
	assert_string_equal(gl_sync_mode_name(GL_SYNC_ADAPTIVE), "adaptive");
	assert_string_equal(gl_flush_reason_name((GlFlushReason) 99), "unknown");
}

/*
 * Adaptive
 */
static void
test_adaptive_first(void **state)
{
	(void) state;
	append(GL_SYNC_ADAPTIVE);
	assert_syncs(GL_FLUSH_JOINED);
}

/* A lone session never waits, however fast or slow it and the disk are. */
static void
test_adaptive_alone(void **state)
{
	static const int64_t thinks[] = {0, RETURN, SYNC / 2, SYNC, 50 * SYNC, 1000 * SYNC};
	static const int64_t syncs[] = {1, 20, SYNC, 5 * SYNC, 1000 * SYNC};

	(void) state;
	for (int i = 0; i < 3000; i++)
	{
		assert_true(decision.join_target <= 1);
		now += thinks[i % 6];
		append(GL_SYNC_ADAPTIVE);
		assert_syncs(GL_FLUSH_JOINED);
		sync_group(syncs[i % 5]);
		assert_false(decision.sync);
		assert_true(decision.wake_us == GL_NEVER);
	}
}

/* ... nor when it is back before anybody has looked, after a sync much shorter than most. */
static void
test_adaptive_alone_is_back(void **state)
{
	static const int64_t syncs[] = {50 * SYNC, 20, SYNC, 1};

	(void) state;
	for (int i = 0; i < 3000; i++)
	{
		append(GL_SYNC_ADAPTIVE);
		assert_syncs(GL_FLUSH_JOINED);
		gl_policy_cut(&policy, &pending, now);
		gl_pending_reset(&pending);
		now += syncs[i % 4];
		gl_policy_done(&policy, &pending, now);
		now += i % 3;
	}
}

/* ... nor with any number of records beside it for which nobody waits. */
static void
test_adaptive_counts_waiters(void **state)
{
	(void) state;
	for (int i = 0; i < 300; i++)
	{
		now += RETURN;
		append_many(GL_SYNC_PERIODIC, i % 7);
		for (int k = 0; k < i % 11; k++)
			gl_pending_add(&pending, GL_SYNC_ADAPTIVE, false, now, 64);
		append(GL_SYNC_ADAPTIVE);
		assert_syncs(GL_FLUSH_JOINED);
		sync_group(SYNC);
	}
}

/* Two half groups become one, and stay one. */
static void
test_adaptive_joins_half_groups(void **state)
{
	(void) state;
	append_many(GL_SYNC_ADAPTIVE, 4);
	assert_syncs(GL_FLUSH_JOINED);
	sync_group_with_arrivals(SYNC, 4);

	/* The other four are pending: these four are expected back. */
	assert_false(decision.sync);
	assert_int_equal(decision.join_target, 8);
	assert_true(decision.wake_us == now + SYNC / 2);
	now += RETURN;
	append_many(GL_SYNC_ADAPTIVE, 3);
	decide(false);
	assert_false(decision.sync);
	append(GL_SYNC_ADAPTIVE);
	assert_syncs(GL_FLUSH_JOINED);

	for (int i = 0; i < 100; i++)
	{
		sync_group(SYNC);
		assert_false(decision.sync);

		/* For a moment, only the last of them need wake the writer. */
		assert_int_equal(decision.join_target, 8);
		now += RETURN;
		append_many(GL_SYNC_ADAPTIVE, 7);
		decide(false);
		assert_false(decision.sync);
		assert_int_equal(decision.join_target, 8);
		append(GL_SYNC_ADAPTIVE);
		assert_syncs(GL_FLUSH_JOINED);
	}
}

/* While the writer sleeps with nothing pending, the first append wakes it. */
static void
test_adaptive_wakes_idle_writer(void **state)
{
	(void) state;
	append_many(GL_SYNC_ADAPTIVE, 2);
	decide(false);
	sync_group(SYNC);
	assert_int_equal(decision.join_target, 2);
	assert_true(decision.wake_us > now && decision.wake_us < now + SYNC / 2);
	now = decision.wake_us;
	decide(false);
	assert_false(decision.sync);
	assert_int_equal(decision.join_target, 0);
	assert_true(decision.wake_us == GL_NEVER);

	/* Group waiters keep their window meanwhile. */
	append(GL_SYNC_GROUP);
	decide(false);
	assert_int_equal(decision.join_target, 0);
	assert_true(decision.wake_us == now + WINDOW);
}

/* Never longer than half a sync, nor than the window; deadline met exactly. */
static void
test_adaptive_patience(void **state)
{
	(void) state;
	for (int narrow = 0; narrow < 2; narrow++)
	{
		int64_t		limit = narrow ? 500 : SYNC / 2;

		setup(NULL);
		if (narrow)
			config.adaptive_window_us = limit;
		append(GL_SYNC_ADAPTIVE);
		decide(false);
		sync_group_with_arrivals(SYNC, 1);
		assert_false(decision.sync);
		assert_true(decision.wake_us == now + limit);
		now += limit - 1;
		assert_sleeps(now + 1);
		now++;
		assert_syncs(GL_FLUSH_PATIENCE);
	}
}

/* Other modes' deadlines cut a wait short. */
static void
test_adaptive_in_company(void **state)
{
	(void) state;
	append(GL_SYNC_ADAPTIVE);
	decide(false);
	sync_group_with_arrivals(SYNC, 1);
	assert_false(decision.sync);
	gl_pending_add(&pending, GL_SYNC_GROUP, true, now + 50, 64);

	/* Counted as a waiter, it makes the group complete. */
	assert_syncs(GL_FLUSH_JOINED);

	sync_group_with_arrivals(SYNC, 2);
	assert_false(decision.sync);
	gl_pending_add(&pending, GL_SYNC_GROUP, true, now + 50, 64);
	assert_sleeps(now + 50);
	append(GL_SYNC_BATCH);
	assert_syncs(GL_FLUSH_BATCH);
}

/* Who has left costs one short wait: an eighth of a sync for one of eight. */
static void
test_adaptive_departed(void **state)
{
	int64_t		waited;

	(void) state;
	append_many(GL_SYNC_ADAPTIVE, 8);
	decide(false);
	for (int i = 0; i < 10; i++)
	{
		sync_group(SYNC);
		now += RETURN;
		append_many(GL_SYNC_ADAPTIVE, 8);
		assert_syncs(GL_FLUSH_JOINED);
	}

	sync_group(SYNC);
	now += RETURN;
	append_many(GL_SYNC_ADAPTIVE, 7);
	waited = sleep_until_sync();
	assert_true(waited > 0 && waited <= SYNC / 7);
	for (int i = 0; i < 10; i++)
	{
		sync_group(SYNC);
		now += RETURN;
		append_many(GL_SYNC_ADAPTIVE, 7);
		assert_syncs(GL_FLUSH_JOINED);
	}

	/* All but one leave, and it goes on alone. */
	sync_group(SYNC);
	now += RETURN;
	append(GL_SYNC_ADAPTIVE);
	waited = sleep_until_sync();
	assert_true(waited <= SYNC / 2);
	for (int i = 0; i < 100; i++)
	{
		sync_group(SYNC);
		now += RETURN;
		append(GL_SYNC_ADAPTIVE);
		assert_syncs(GL_FLUSH_JOINED);
	}
}

/*
 * Arrivals that do not depend on releases: after a few tries hardly any wait.
 */
static void
test_adaptive_open_loop(void **state)
{
	int64_t		waited = 0;
	int			waits = 0;

	(void) state;
	append_many(GL_SYNC_ADAPTIVE, 3);
	decide(false);
	for (int i = 0; i < 1000; i++)
	{
		int64_t		us;

		sync_group_with_arrivals(SYNC, 3);
		us = sleep_until_sync();
		if (i >= 100)
		{
			waited += us;
			waits += us > 0;
		}
	}
	assert_true(waits > 0);		/* it still probes */
	assert_true(waits <= 900 / 64 + 1);
	assert_true(waited <= 900 * SYNC / 100);
}

/* ... and a single probe notices that this has changed. */
static void
test_adaptive_probes(void **state)
{
	int			groups = 0;

	(void) state;
	append_many(GL_SYNC_ADAPTIVE, 4);
	decide(false);
	for (int i = 0; i < 1000; i++)
	{
		sync_group_with_arrivals(SYNC, 4);
		sleep_until_sync();
	}

	/* Two half groups in turn from now on, back at once when released. */
	for (; pending.waiters < 8 && groups < 200; groups++)
	{
		sync_group_with_arrivals(SYNC, 4);
		if (!decision.sync)
		{
			now += RETURN;
			append_many(GL_SYNC_ADAPTIVE, 4);
		}
		decide(false);
	}
	assert_true(groups <= 65);
	for (int i = 0; i < 100; i++)
	{
		sync_group(SYNC);
		now += RETURN;
		append_many(GL_SYNC_ADAPTIVE, 8);
		assert_syncs(GL_FLUSH_JOINED);
	}
}

/* Arrivals in bursts out of quiet are synced together. */
static void
test_adaptive_bursts(void **state)
{
	(void) state;

	/* The first time nothing is known: one alone, four who missed it by a moment. */
	append(GL_SYNC_ADAPTIVE);
	assert_syncs(GL_FLUSH_JOINED);
	sync_group(SYNC);
	now += 100 * SYNC;
	append(GL_SYNC_ADAPTIVE);
	assert_syncs(GL_FLUSH_JOINED);
	gl_policy_cut(&policy, &pending, now);
	gl_pending_reset(&pending);
	now += RETURN;
	append_many(GL_SYNC_ADAPTIVE, 4);
	now += SYNC;
	gl_policy_done(&policy, &pending, now);
	sleep_until_sync();

	for (int i = 0; i < 20; i++)
	{
		sync_group(SYNC);
		now += 100 * SYNC;
		append(GL_SYNC_ADAPTIVE);
		decide(false);
		assert_false(decision.sync);
		assert_int_equal(decision.join_target, 5);
		for (int k = 1; k < 5; k++)
		{
			now += 30;
			append(GL_SYNC_ADAPTIVE);
		}
		assert_syncs(GL_FLUSH_JOINED);
	}
}

/* Asking often changes nothing. */
static void
test_adaptive_idempotent(void **state)
{
	GlPolicy	before;
	int64_t		end;

	(void) state;
	append_many(GL_SYNC_ADAPTIVE, 2);
	decide(false);
	sync_group_with_arrivals(SYNC, 2);
	assert_false(decision.sync);
	end = decision.wake_us;
	before = policy;
	for (int i = 0; i < 50; i++)
	{
		now++;
		assert_sleeps(end);
		assert_memory_equal(&before, &policy, sizeof(policy));
	}
}

/* One stalled sync does not make the next wait long. */
static void
test_adaptive_stall(void **state)
{
	(void) state;
	config.sync_period_us = GL_NEVER;
	config.adaptive_window_us = GL_NEVER;
	for (int i = 0; i < 50; i++)
	{
		append(GL_SYNC_ADAPTIVE);
		decide(false);
		sync_group(SYNC);
	}
	append(GL_SYNC_ADAPTIVE);
	decide(false);
	sync_group_with_arrivals(1000 * SYNC, 1);
	assert_false(decision.sync);
	assert_true(decision.wake_us <= now + SYNC);
}

/*
 * So many sessions, each back at once, on a volume that lets 20 syncs pass and
 * then stalls; returns the waiters of all groups between two stalls.
 */
static uint32_t
meter_period(uint32_t sessions)
{
	uint32_t	total = 0;

	for (int i = 0; i < 20; i++)
	{
		now += RETURN;
		append_many(GL_SYNC_ADAPTIVE, (int) (sessions - pending.waiters));
		sleep_until_sync();
		total += pending.waiters;
		sync_group(i == 19 ? 90000 : 200);
	}
	return total;
}

/* What a sync uses up is known after a few stalls, and waits may last nearly so long. */
static void
test_adaptive_meter(void **state)
{
	(void) state;
	for (int i = 0; i < 6; i++)
		meter_period(8);
	assert_true(policy.meter.cost_us > 4000 && policy.meter.cost_us < 5500);

	/* A slow return is waited for, though a usual sync is over long before. */
	append(GL_SYNC_ADAPTIVE);
	decide(false);
	assert_false(decision.sync);
	assert_int_equal(decision.join_target, 8);
	assert_true(decision.wake_us > now + 3000 && decision.wake_us < now + 5500);
	now += 3000;
	append_many(GL_SYNC_ADAPTIVE, 7);
	assert_syncs(GL_FLUSH_JOINED);

	/* Never longer than the window. */
	sync_group(200);
	config.adaptive_window_us = 700;
	append(GL_SYNC_ADAPTIVE);
	decide(false);
	assert_true(decision.wake_us == now + 700);
	config.adaptive_window_us = WINDOW;
	sync_group(200);

	/* Alone, nobody waits; and after quiet neither, as the time was used up in it. */
	for (int i = 0; i < 200; i++)
	{
		now += 50;
		append(GL_SYNC_ADAPTIVE);
		sleep_until_sync();
		sync_group(200);
	}
	append(GL_SYNC_ADAPTIVE);
	assert_syncs(GL_FLUSH_JOINED);
	sync_group(200);

	/* Without stalls it is forgotten. */
	for (int i = 0; i < 1000; i++)
	{
		append(GL_SYNC_ADAPTIVE);
		sleep_until_sync();
		sync_group(200);
	}
	assert_true(policy.meter.cost_us == 0);
}

/* Quiet costs nothing: what is known of a meter outlasts a pause and a lone period. */
static void
test_adaptive_meter_outlasts_quiet(void **state)
{
	(void) state;
	for (int i = 0; i < 6; i++)
		meter_period(8);
	for (int i = 0; i < 5; i++)
	{
		now += 1000000;
		meter_period(8);
		assert_true(policy.meter.cost_us > 4000 && policy.meter.cost_us < 5500);
	}

	/* Of what a lone session flushed by itself the last counts as a group. */
	now += 10000000;
	gl_pending_reset(&pending);
	append(GL_SYNC_ADAPTIVE);
	sync_group(200);
	meter_period(8);
	assert_true(policy.meter.cost_us > 4000 && policy.meter.cost_us < 5500);
}

/* Who is released and back before anybody looks is not counted twice. */
static void
test_adaptive_meter_counts_once(void **state)
{
	(void) state;
	for (int i = 0; i < 6; i++)
		meter_period(8);
	for (int i = 0; i < 10; i++)
	{
		/* Five are in the group, three miss it, and four of the five are back at once. */
		append_many(GL_SYNC_ADAPTIVE, 5);
		gl_policy_cut(&policy, &pending, now);
		gl_pending_reset(&pending);
		now += 50;
		append_many(GL_SYNC_ADAPTIVE, 2);
		gl_policy_done(&policy, &pending, now += 150);
		gl_pending_add(&pending, GL_SYNC_ADAPTIVE, true, now - 10, 64);
		now += RETURN;
		append_many(GL_SYNC_ADAPTIVE, 4);
		decide(false);
		assert_false(decision.sync);
		assert_int_equal(decision.join_target, 8);
		append(GL_SYNC_ADAPTIVE);
		assert_syncs(GL_FLUSH_JOINED);
		sync_group(200);
	}
}

/* What a pause left over is spent without waiting for who does not come; no more. */
static void
test_adaptive_meter_saves(void **state)
{
	(void) state;
	for (int i = 0; i < 6; i++)
		meter_period(8);

	/* Nothing is left over.  Of the eight one always comes late. */
	append_many(GL_SYNC_ADAPTIVE, 7);
	assert_true(sleep_until_sync() > 3000);
	sync_group(200);
	for (int pauses = 0; pauses < 2; pauses++)
	{
		int			quick = 0;

		/* The first is not kept waiting, the others wait a moment for the eighth. */
		now += 10 * 5000;
		append(GL_SYNC_ADAPTIVE);
		assert_syncs(GL_FLUSH_PATIENCE);
		sync_group_with_arrivals(200, 7);
		for (;;)
		{
			int64_t		waited;

			waited = sleep_until_sync();
			if (waited > 3000)
				break;
			assert_true(waited < 1000);
			assert_true(++quick <= 20);
			sync_group_with_arrivals(200, 1);
			now += RETURN;
			append_many(GL_SYNC_ADAPTIVE, 6);
		}
		assert_true(quick >= 7);
		sync_group(200);
	}

	/* Not more than passes between two stalls; and a stall shows that all is spent. */
	now += 1000 * 5000;
	append(GL_SYNC_ADAPTIVE);
	sleep_until_sync();
	sync_group(200);
	assert_true(policy.meter.saved <= 20);
	append_many(GL_SYNC_ADAPTIVE, 7);
	sleep_until_sync();
	sync_group_with_arrivals(90000, 1);
	assert_true(policy.meter.cost_us > 0);
	assert_true(policy.meter.saved == 0);
	append_many(GL_SYNC_ADAPTIVE, 6);
	assert_true(sleep_until_sync() > 3000);
}

/* It is found though there is a pause before each stall; of those at first, too. */
static void
test_adaptive_meter_in_bursts(void **state)
{
	(void) state;
	for (int i = 0; i < 5; i++)
	{
		now += 1000000;
		meter_period(8);
	}
	assert_true(policy.meter.cost_us > 0);
	meter_period(8);
	assert_true(policy.meter.cost_us > 4000 && policy.meter.cost_us < 5500);
}

/* A wait for a meter teaches nothing of waits without one. */
static void
test_adaptive_meter_waits_teach_nothing(void **state)
{
	GlPolicyLesson before[2];

	(void) state;
	for (int i = 0; i < 6; i++)
		meter_period(8);
	for (int i = 0; i < 9; i++)
	{
		append(GL_SYNC_ADAPTIVE);
		assert_true(sleep_until_sync() > 3000);
		assert_true(policy.meter.cost_us > 0);
		memcpy(before, policy.lessons, sizeof(before));
		sync_group(i == 8 ? 40000 : 200);
	}
	assert_true(policy.meter.cost_us == 0);
	assert_memory_equal(before, policy.lessons, sizeof(before));
}

/* A stall now and then is no meter. */
static void
test_adaptive_stalls_are_no_meter(void **state)
{
	(void) state;
	for (int i = 0; i < 3000; i++)
	{
		now += RETURN;
		append_many(GL_SYNC_ADAPTIVE, 4);
		decide(false);
		sync_group(i == 1500 ? 250 * SYNC : i % 37 == 36 ? 9 * SYNC : SYNC);
		assert_true(policy.meter.cost_us == 0);
	}
}

/*
 * Bad experience that nothing contradicts, as all come without a wait, does not
 * stay for the day on which one is late.
 */
static void
test_adaptive_forgets(void **state)
{
	(void) state;
	append_many(GL_SYNC_ADAPTIVE, 8);
	decide(false);
	for (int k = 0; k < 2; k++)
		policy.lessons[k] = (GlPolicyLesson) {.gain = 0, .cost = 2, .share = 0.1, .backoff = 64, .skip = 64};
	for (int i = 0; i < 300; i++)
	{
		sync_group(SYNC);
		now += RETURN;
		append_many(GL_SYNC_ADAPTIVE, 8);
		assert_syncs(GL_FLUSH_JOINED);
	}
	for (int k = 0; k < 2; k++)
		assert_int_equal(policy.lessons[k].skip, 0);
	assert_true(policy.lessons[0].gain > policy.lessons[0].cost);
	assert_true(policy.lessons[1].cost < 0.1);
}

/* A failed group: its waiters are not expected, and nothing is learnt from it. */
static void
test_adaptive_failure(void **state)
{
	(void) state;
	append_many(GL_SYNC_ADAPTIVE, 8);
	decide(false);
	sync_group(SYNC);
	now += RETURN;
	append_many(GL_SYNC_ADAPTIVE, 8);
	assert_syncs(GL_FLUSH_JOINED);
	gl_policy_cut(&policy, &pending, now);
	gl_pending_reset(&pending);
	now += 1000 * SYNC;
	gl_policy_failed(&policy);
	assert_true(policy.sync_us == SYNC);
	assert_sleeps(GL_NEVER);
	append(GL_SYNC_ADAPTIVE);
	assert_syncs(GL_FLUSH_JOINED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_pending, setup),
		cmocka_unit_test_setup(test_pending_without_waiters, setup),
		cmocka_unit_test_setup(test_nothing_pending, setup),
		cmocka_unit_test_setup(test_batch, setup),
		cmocka_unit_test_setup(test_group, setup),
		cmocka_unit_test_setup(test_one_group_client, setup),
		cmocka_unit_test_setup(test_period, setup),
		cmocka_unit_test_setup(test_period_after_idling, setup),
		cmocka_unit_test_setup(test_period_during_sync, setup),
		cmocka_unit_test_setup(test_endless_period, setup),
		cmocka_unit_test_setup(test_bytes, setup),
		cmocka_unit_test_setup(test_urgent, setup),
		cmocka_unit_test_setup(test_mixes, setup),
		cmocka_unit_test_setup(test_precedence, setup),
		cmocka_unit_test_setup(test_names, setup),
		cmocka_unit_test_setup(test_adaptive_first, setup),
		cmocka_unit_test_setup(test_adaptive_alone, setup),
		cmocka_unit_test_setup(test_adaptive_alone_is_back, setup),
		cmocka_unit_test_setup(test_adaptive_counts_waiters, setup),
		cmocka_unit_test_setup(test_adaptive_joins_half_groups, setup),
		cmocka_unit_test_setup(test_adaptive_wakes_idle_writer, setup),
		cmocka_unit_test_setup(test_adaptive_patience, setup),
		cmocka_unit_test_setup(test_adaptive_in_company, setup),
		cmocka_unit_test_setup(test_adaptive_departed, setup),
		cmocka_unit_test_setup(test_adaptive_open_loop, setup),
		cmocka_unit_test_setup(test_adaptive_probes, setup),
		cmocka_unit_test_setup(test_adaptive_bursts, setup),
		cmocka_unit_test_setup(test_adaptive_idempotent, setup),
		cmocka_unit_test_setup(test_adaptive_stall, setup),
		cmocka_unit_test_setup(test_adaptive_meter, setup),
		cmocka_unit_test_setup(test_adaptive_meter_outlasts_quiet, setup),
		cmocka_unit_test_setup(test_adaptive_meter_counts_once, setup),
		cmocka_unit_test_setup(test_adaptive_meter_saves, setup),
		cmocka_unit_test_setup(test_adaptive_meter_in_bursts, setup),
		cmocka_unit_test_setup(test_adaptive_meter_waits_teach_nothing, setup),
		cmocka_unit_test_setup(test_adaptive_stalls_are_no_meter, setup),
		cmocka_unit_test_setup(test_adaptive_forgets, setup),
		cmocka_unit_test_setup(test_adaptive_failure, setup)
	};

	return cmocka_run_group_tests_name("sync_policy", tests, NULL, NULL);
}
