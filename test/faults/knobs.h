/*-------------------------------------------------------------------------
 *
 * knobs.h
 *		What faultfs is told to do wrong.
 *
 * Commands come over the socket, one line a connection, and are answered by
 * "ok ..." or "error ...":
 *
 *	fault N key=value ...	set fault N (0 to 7):
 *		on=		write, sync, read, open, create, rename, unlink, truncate, names
 *				(the sync of a directory), with commas between
 *		file=	segment, spare, control, other; default segment
 *		errno=	EIO, ENOSPC, EDQUOT, EROFS: the call fails
 *		bytes=	a write takes no more than so many
 *		delay=	microseconds that the call takes longer
 *		flip=1	one bit is not what it was: in what a write stores, in what a
 *				read brings
 *		lose=1	a write is said to be done, and nothing is stored
 *		cut=1	the power goes: a write has just arrived and is not synced, any
 *				other call has not happened
 *		skip=, count=	strike after so many calls, so often; else always
 *		chance=	of a million calls so many
 *	clear [N]				no fault any more
 *	hits N					how often it has struck
 *	space BYTES ERRNO		so much more can be written beyond the ends of files;
 *							-1: no limit
 *	readonly 0|1			everything that changes something fails with EROFS
 *	short 0|1				1: files that are opened with O_DIRECT from now on show
 *							their program a short write.  0: the kernel writes the rest.
 *							Not for io_uring, for which it then does that, too, but in
 *							the wrong place (seen with Linux 6.18).
 *	flip PATH OFFSET BIT	a bit of a file is another one from now on
 *	seed N
 *	cut KEEP UNIT			power cut; then all calls fail, until:
 *	power					... it is back
 *	plan KEEP UNIT			what remains after a cut=1
 *	image DIR KEEP UNIT [N]	what a power cut would leave now, into a new folder; at
 *							the N-th unit, not at any
 *	state
 *
 * KEEP is what of the unsynced the disk has nevertheless: nothing, all, first,
 * last, hole, one, any (disk.h); UNIT the bytes that land together, 512 or 4096.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAULTS_KNOBS_H
#define FAULTS_KNOBS_H

#include "disk.h"

enum
{
	ON_WRITE = 1,
	ON_SYNC = 2,
	ON_READ = 4,
	ON_OPEN = 8,
	ON_CREATE = 16,
	ON_RENAME = 32,
	ON_UNLINK = 64,
	ON_TRUNCATE = 128,
	ON_NAMES = 256
};

enum
{
	SEGMENT = 1,
	SPARE = 2,
	CONTROL = 4,
	OTHER = 8
};

/* What all the faults that strike do to one call. */
typedef struct Strike
{
	int			error;			/* errno, or 0 */
	long		bytes;			/* a write takes no more; -1: all */
	bool		flip;
	bool		lose;
	bool		cut;
} Strike;

/* Read and set with the lock held. */
extern long space;				/* bytes that files may still grow by; -1: any */
extern int	space_error;
extern bool read_only;
extern bool shows_short;
extern bool power_is_off;

/* The lock over everything here, and over disk.c. */
extern void lock(void);
extern int	unlock(int result);

/* Takes its delay without the lock; look at power_is_off afterwards. */
extern Strike strike(int on, int class);

/* Now, by the plan; everything fails from now on. */
extern void cut_power(void);

/* Answer commands, in a thread of its own.  0, or -errno. */
extern int	knobs_listen(const char *socket_path);

#endif							/* FAULTS_KNOBS_H */
