/*
 * wakeup.pml
 *		How the writer and the sessions sleep and wake, for spin.
 *
 * The protocol of src/writer.c (sleep_until_us, join_target), src/append.c
 * (wake_if_earlier) and src/wakeup.c (generation, sleepers).  Nobody
 * has a time-out here, but the writer while not all whom it waits for have
 * joined: a wake-up that gets lost leaves somebody asleep for ever, which spin
 * reports as an invalid end state.  In the product each sleep is a short slice;
 * so this is about delay, not about loss.
 *
 * Some sessions are in batch mode (their deadline is now), some in adaptive mode
 * (the writer waits for all of them to join: join_target).
 *
 * Statements are sequentially consistent in spin, as the product's are through
 * its full barriers.  -DBUG=n swaps or leaves out one step, which is what a
 * missing barrier does; test/model/run sees each of them found.
 */

#ifndef BUG
#define BUG 0
#endif

/* sessions; test/model/run searches two mixes */
#ifndef BATCH
#define BATCH		2
#endif
#ifndef ADAPTIVE
#define ADAPTIVE	0
#endif
#define SESSIONS	(BATCH + ADAPTIVE)
#ifndef ROUNDS
#define ROUNDS		2
#endif
#define FIRST		255			/* GL_FIRST_ADAPTIVE */

/* the writer's announcement */
bool sleeping = false;			/* sleep_until_us is not 0 */
byte join_target = 0;
byte joins = 0;
bool latch = false;

/* the log: records, counted */
byte published_batch = 0;
byte published_adaptive = 0;
byte durable_batch = 0;
byte durable_adaptive = 0;

/* the futex */
byte generation = 0;
byte sleepers = 0;

byte done = 0;

inline broadcast()
{
#if BUG == 1
	if
	:: seen_sleepers > 0 -> generation++
	:: else
	fi
#else
	if
	:: sleepers > 0 -> generation++
	:: else
	fi
#endif
}

active proctype writer()
{
	byte scanned_batch, scanned_adaptive, cut = 0;
	byte seen_sleepers;
	bool is_due = false;

	do
	:: true ->
		scanned_batch = published_batch;
		scanned_adaptive = published_adaptive;
decide:
		if
		:: scanned_batch > durable_batch ||
		   (scanned_adaptive - durable_adaptive >= ADAPTIVE && ADAPTIVE > 0) ||
		   (scanned_adaptive > durable_adaptive && is_due) ->
			/* a group: all that was scanned */
#if BUG == 1
			/* looks for sleepers before the records are durable */
			seen_sleepers = sleepers;
#endif
			is_due = false;
			cut = scanned_batch + scanned_adaptive;
			durable_batch = scanned_batch;
			durable_adaptive = scanned_adaptive;
			broadcast()
		:: else ->
			if
			:: scanned_adaptive > durable_adaptive ->
				join_target = cut + ADAPTIVE
			:: else ->
				join_target = FIRST
			fi;
#if BUG == 2
			/* looks once more before it announces */
			if
			:: scanned_batch != published_batch || scanned_adaptive != published_adaptive -> goto next
			:: else
			fi;
			sleeping = true;
#else
			sleeping = true;
#if BUG != 3
			/* and looks once more */
			if
			:: scanned_batch != published_batch || scanned_adaptive != published_adaptive ->
				sleeping = false;
				goto next
			:: else
			fi;
#endif
#endif
end_sleep:
			if
			:: latch -> latch = false
			:: join_target != FIRST && published_adaptive - durable_adaptive < ADAPTIVE ->
				/* the deadline of those who wait for company that may not come */
				is_due = true
			fi;
			sleeping = false
		fi;
next:
		skip
	od
}

inline wake_writer()
{
	d_step {
		if
		:: sleeping -> sleeping = false; woke = true
		:: else -> woke = false
		fi
	}
	if
	:: woke -> latch = true
	:: else
	fi
}

inline wait_for(condition)
{
	do
	:: true ->
#if BUG == 4
		/* reads the generation before it announces itself */
		seen = generation;
		if
		:: condition -> break
		:: else
		fi;
		sleepers++;
#else
		sleepers++;
#if BUG == 5
		/* reads the generation after it looked */
		if
		:: condition -> sleepers--; break
		:: else
		fi;
		seen = generation;
#else
		seen = generation;
		if
		:: condition -> sleepers--; break
		:: else
		fi;
#endif
#endif
		(generation != seen);
		sleepers--
	od
}

proctype batch()
{
	byte round = 0, seen, mine;
	bool woke;

	do
	:: round < ROUNDS ->
#if BUG == 6
		/* looks at the announcement before it publishes */
		woke = sleeping;
		d_step { published_batch++; mine = published_batch };
		joins++;
		if
		:: woke -> wake_writer()
		:: else
		fi;
#else
		d_step { published_batch++; mine = published_batch };
		joins++;
		if
		:: sleeping -> wake_writer()
		:: else
		fi;
#endif
		wait_for(durable_batch >= mine);
		round++
	:: else -> break
	od;
	done++
}

proctype adaptive()
{
	byte round = 0, seen, mine, joined;
	bool woke;

	do
	:: round < ROUNDS ->
		d_step { published_adaptive++; mine = published_adaptive };
#if BUG == 7
		/* counts after it looked */
		joined = joins + 1;
		if
		:: sleeping && (join_target == FIRST || joins >= join_target) -> wake_writer()
		:: else
		fi;
		joins++;
#else
		d_step { joins++; joined = joins };
		if
		:: sleeping ->
			if
#if BUG == 8
			/* only the target counts, not the first adaptive append */
			:: join_target != FIRST && joined >= join_target -> wake_writer()
#else
			:: join_target == FIRST || joined >= join_target -> wake_writer()
#endif
			:: else
			fi
		:: else
		fi;
#endif
		wait_for(durable_adaptive >= mine);
		round++
	:: else -> break
	od;
	done++
}

init
{
	byte i = 0;

	atomic {
		do
		:: i < BATCH -> run batch(); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < ADAPTIVE -> run adaptive(); i++
		:: else -> break
		od
	}
	/* all end: nobody sleeps for ever */
	done == SESSIONS
}
