/*
 * ring.pml
 *		Claim, publish, scan, room and seal of src/ring.c, for spin.
 *
 * One element of a position is one granule; the ring has RING of them, a file
 * SEGMENT.  A producer claims SPAN granules at a time, pads the rest of a file,
 * and may be stopped between any two steps.  The flusher scans what is
 * published, copies it (the write), then moves the durable position.  The closer
 * seals.
 *
 * Checked: what the flusher copies is what the record's owner wrote; nothing is
 * overwritten before it is durable; nobody claims behind the seal; all that was
 * claimed becomes durable, and nobody is left waiting (no invalid end state).
 *
 * -DBUG=n leaves out or swaps one step; test/model/run sees each of them found.
 */

#ifndef BUG
#define BUG 0
#endif

#define RING		4
#define SEGMENT		6
#define PRODUCERS	2
#define RECORDS		2			/* of each producer */
#define MAX			24			/* positions that can be reached */
#define NOBODY		255

short insert = 0;
bool sealed = false;
short durable = 0;

/* of each granule of the ring */
byte content[RING];				/* whose record: producer and number */
byte content_at[RING];			/* the position it was written for */
byte slot[RING];				/* lap of the record that begins here, 0: none */
byte length[RING];				/* its header */

/* truth */
byte owner[MAX];				/* of each claimed position */
byte begins[MAX];				/* span of the record that begins here */
short end_of_log = -1;			/* where the close record ends */
byte producers_done = 0;

inline record_span(who, n, result)
{
	result = 1 + (who + n) % 2
}

/* claim: position was loaded before; one compare-and-swap */
proctype producer(byte me)
{
	byte n = 0;
	byte span, i;
	short position, seen;
	bool padding;

	do
	:: n < RECORDS ->
again:
		position = insert;
		if
#if BUG == 3
		/* the seal is no part of the position */
		:: insert < 0 -> goto out
#else
		:: sealed -> goto out
#endif
		:: else
		fi;
		record_span(me, n, span);
		padding = false;
		if
		:: span > SEGMENT - position % SEGMENT ->
			span = SEGMENT - position % SEGMENT;
			padding = true
		:: else
		fi;
#if BUG == 1
		/* room for one too many */
		seen = durable + 1;
#else
		seen = durable;
#endif
		if
		:: position + span > seen + RING ->
			/* no room: wait until there is, and look again */
			(position + span <= durable + RING || sealed || insert != position);
			goto again
		:: else
		fi;
		assert(position + span < MAX);
#if BUG == 2
		/* the compare-and-swap is two steps */
		if
		:: insert == position && !sealed -> skip
		:: else -> goto again
		fi;
		insert = position + span;
		d_step {
			begins[position] = span; i = 0;
			do :: i < span -> owner[position + i] = me; i++ :: else -> break od;
		}
#else
		d_step {
			if
#if BUG == 3
			:: insert == position ->
#else
			:: insert == position && !sealed ->
#endif
				assert(end_of_log < 0);
				insert = position + span;
				begins[position] = span;
				i = 0;
				do
				:: i < span -> owner[position + i] = me; i++
				:: else -> break
				od;
				seen = 1
			:: else -> seen = 0
			fi
		}
		if
		:: seen == 0 -> goto again
		:: else
		fi;
#endif
#if BUG == 4
		/* published before the bytes are there */
		slot[position % RING] = position / RING + 1;
#endif
		i = 0;
		do
		:: i < span ->
			content[(position + i) % RING] = me;
			content_at[(position + i) % RING] = position + i;
			i++
		:: else -> break
		od;
		length[position % RING] = span;
#if BUG == 5
		/* no lap: the slot of an earlier use looks the same */
		slot[position % RING] = 1;
#elif BUG != 4
		slot[position % RING] = position / RING + 1;
#endif
		if
		:: padding
		:: else -> n++
		fi
	:: else -> break
	od;
out:
	producers_done++
}

proctype flusher()
{
	short scan = 0;
	short at;
	byte span;

	do
	:: scan < insert &&
#if BUG == 5
	   slot[scan % RING] == 1 ->
#else
	   slot[scan % RING] == scan / RING + 1 ->
#endif
		span = length[scan % RING];
		assert(span == begins[scan]);
#if BUG == 6
		/* durable before it is written */
		durable = scan + span;
#endif
		/* the copy: nobody may have touched it meanwhile */
		at = scan;
		do
		:: at < scan + span ->
			assert(content_at[at % RING] == at && content[at % RING] == owner[at]);
			at++
		:: else -> break
		od;
		scan = scan + span;
#if BUG != 6
		durable = scan
#endif
	:: end_of_log >= 0 && durable == end_of_log -> break
	od;
	assert(durable == insert)
}

/* All before it durable, then the close record and the seal, in one step. */
proctype closer()
{
	short position;

	do
	:: true ->
		position = insert;
		(durable == position || insert != position);
		d_step {
			if
			:: insert == position && durable == position && position % SEGMENT != 0 ->
				insert = position + 1;
				begins[position] = 1;
				owner[position] = NOBODY;
				sealed = true;
				end_of_log = insert
			:: else -> position = -1
			fi
		}
		if
		:: position >= 0 -> break
		:: else
		fi;
		/* at the beginning of a file, or somebody was faster */
		(insert % SEGMENT != 0 || producers_done == PRODUCERS);
		if
		:: producers_done == PRODUCERS && insert % SEGMENT == 0 ->
			d_step {
				position = insert;
				insert = position + 1;
				begins[position] = 1;
				owner[position] = NOBODY;
				sealed = true;
				end_of_log = insert
			}
			break
		:: else
		fi
	od;
	(position + 1 <= durable + RING);
	content[position % RING] = NOBODY;
	content_at[position % RING] = position;
	length[position % RING] = 1;
#if BUG == 5
	slot[position % RING] = 1
#else
	slot[position % RING] = position / RING + 1
#endif
}

init
{
	byte i = 0;

	atomic {
		do
		:: i < PRODUCERS -> run producer(i); i++
		:: else -> break
		od;
		run flusher();
		run closer()
	}
}
