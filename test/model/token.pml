/*
 * token.pml
 *		The flush token between the writer and lone appenders, for spin.
 *
 * The protocol of src/lone.c, src/flush.c (offer, take back) and src/writer.c
 * (have_token, doze): the writer offers the token before it sleeps, an appender
 * that is alone takes it and flushes by itself, and whoever is not alone wakes the
 * writer, which takes it back.  A flush may fail, once.
 *
 * Checked: one flusher at a time; the durable position never goes back; a file in
 * which a write has failed is not written again; no more than one flush begins
 * while the writer wants the token; every record becomes durable, and the writer
 * gets its token back (no invalid end state: nobody has a time-out here, only
 * the writer may wake by itself, once).
 *
 * -DBUG=n swaps or leaves out one step; test/model/run sees each of them found.
 */

#ifndef BUG
#define BUG 0
#endif

#define APPENDERS	2
#define ROUNDS		2
#define NOBODY		0
#define WRITER		1

byte token = WRITER;
bool offered = false;
bool wanted = false;
bool lone_error = false;

/* the writer's announcement, and its latch */
bool sleeping = false;
bool latch = false;

/* the log: records, counted */
byte published = 0;
byte durable = 0;

/* truth */
byte flushing = 0;
byte overtaken = 0;				/* flushes begun since the writer wants the token */
bool bad = false;				/* the file has failed */
bool has_failed = false;
byte done = 0;

inline flush_to(end)
{
	flushing++;
	assert(flushing == 1);
	assert(!bad);
	assert(end > durable);
	if
	:: !has_failed -> has_failed = true; bad = true; failed = true
	:: durable = end; failed = false
	fi;
	flushing--
}

active proctype writer()
{
	byte scanned = 0;
	byte wakes = 0;
	bool failed;

	do
	:: true ->
		/* have_token */
		if
		:: token == WRITER
		:: else ->
#if BUG == 1
			/* looks before it says that it wants it */
			if
			:: atomic { token == NOBODY -> token = WRITER }
			:: else ->
				wanted = true;
				latch -> latch = false;
				goto again
			fi;
#else
			wanted = true;
			if
			:: atomic { token == NOBODY -> token = WRITER }
			:: else ->
				latch -> latch = false;
				goto again
			fi;
#endif
			/* take back */
			overtaken = 0;
			offered = false;
			if
			:: lone_error -> lone_error = false; bad = false
			:: else
			fi
		fi;

		/* a group */
		scanned = published;
		if
		:: scanned > durable ->
			flush_to(scanned);
			/* another file takes over */
			bad = false;
			goto again
		:: else
		fi;

		/* doze */
#if BUG == 2
		/* looks once more before it announces */
		if
		:: published != scanned -> goto again
		:: else
		fi;
		sleeping = true;
#else
		sleeping = true;
		if
		:: published != scanned -> sleeping = false; goto again
		:: else
		fi;
#endif
		if
		:: true ->
			wanted = false;
			offered = true;
			token = NOBODY
		:: true
		fi;
end_sleep:
		if
		:: latch -> latch = false
		:: wakes < 1 -> wakes++
		fi;
		sleeping = false;
again:
		skip
	od
}

proctype appender(byte me)
{
	byte round = 0, mine;
	bool flushed, failed, was_wanted, woke;

	do
	:: round < ROUNDS ->
		d_step { published++; mine = published };
		flushed = false;

		/* alone? */
		if
		:: offered && !wanted && published == mine ->
			if
			:: atomic { token == NOBODY -> token = me } ->
#if BUG == 3
				/* does not care who wants it */
				was_wanted = false;
#else
				was_wanted = wanted;
#endif
				if
				:: was_wanted || !offered
#if BUG == 4
				/* somebody else has flushed it meanwhile, and more */
				:: !was_wanted && offered ->
#else
				:: !was_wanted && offered && durable >= mine -> flushed = true
				:: !was_wanted && offered && durable < mine ->
#endif
					d_step {
						if
						:: wanted -> overtaken++
						:: else
						fi;
						assert(overtaken <= 1)
					}
					flush_to(mine);
					if
					:: failed ->
#if BUG != 5
						offered = false;
#endif
						lone_error = true
					:: else -> flushed = true
					fi
				fi;
				token = NOBODY;
#if BUG != 6
				if
				:: wanted -> latch = true
				:: else
				fi
#endif
			:: else
			fi
		:: else
		fi;

		/* the writer's, then */
		if
		:: !flushed ->
			d_step { woke = sleeping; sleeping = false };
			if
			:: woke -> latch = true
			:: else
			fi
		:: else
		fi;
		durable >= mine;
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
		:: i < APPENDERS -> run appender(WRITER + 1 + i); i++
		:: else -> break
		od
	}
	/* all end: nobody waits for ever */
	done == APPENDERS
}
