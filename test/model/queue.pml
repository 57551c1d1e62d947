/*
 * queue.pml
 *		The queue for room of src/ring.c, for spin.
 *
 * Sessions take tickets, wait for their turn or give up, and leave.  Checked: at
 * most one session has its turn, turns come in the order of the tickets, and the
 * queue never gets stuck on a ticket that was left (no invalid end state).
 *
 * -DBUG=n swaps or leaves out one step.
 */

#ifndef BUG
#define BUG 0
#endif

#define SIZE		2			/* of the array: fewer than sessions */
#define SESSIONS	3

byte next = 0;
byte serving = 0;
byte ticket[SIZE];				/* 0: never used; 2t+2: held; 2t+3: left */
byte left = 0;
byte last_turn = 0;
byte in_turn = 0;

#define HELD(t)	(2 * (t) + 2)
#define LEFT(t)	(2 * (t) + 3)

proctype session()
{
	byte mine, at;
	bool ok;

	do
	:: true ->
		mine = next;
		if
		:: mine - serving >= SIZE ->
			(next != mine || mine - serving < SIZE)
		:: else ->
			d_step {
				if
				:: next == mine -> next++; ok = true
				:: else -> ok = false
				fi
			}
			if
			:: ok -> break
			:: else
			fi
		fi
	od;
	ticket[mine % SIZE] = HELD(mine);

	/* its turn, or it gives up */
	if
	:: serving == mine ->
		assert(in_turn == 0);
		in_turn++;
		assert(mine >= last_turn);
		last_turn = mine;
		in_turn--
	:: true
	fi;

#if BUG == 1
	/* looks before it marks */
	at = serving;
	ok = (at == mine);
	ticket[mine % SIZE] = LEFT(mine);
	if
	:: ok -> 
	:: else -> goto out
	fi;
#else
	ticket[mine % SIZE] = LEFT(mine);
	at = serving;
#endif
	do
#if BUG == 2
	/* a mark without the ticket's number */
	:: ticket[at % SIZE] % 2 == 1 ->
#else
	:: ticket[at % SIZE] == LEFT(at) ->
#endif
		d_step {
			if
#if BUG == 3
			:: true -> serving++; at = serving
#else
			:: serving == at -> serving++; at = serving
			:: else -> at = serving
#endif
			fi
		}
		assert(serving <= next)
	:: else -> break
	od;
out:
	left++
}

init
{
	byte i = 0;

	atomic {
		do
		:: i < SESSIONS -> run session(); i++
		:: else -> break
		od
	}
	left == SESSIONS;
	assert(serving == SESSIONS)
}
