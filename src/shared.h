/*-------------------------------------------------------------------------
 *
 * shared.h
 *		What the processes share: one struct in shared memory.
 *
 * Who writes what:
 *	- the ring (claim, publish): appenders, by atomics alone; see ring.h;
 *	- everything else about the log: the holder of the flush token, which is the
 *	  writer but for a lone appender's flush; others read it by atomics;
 *	- texts and the request slot: whoever holds the spinlock next to them.
 *
 * A crash restart of the server makes this memory anew: the files are then the
 * only truth.  A restart of the writer alone finds it as its predecessor left
 * it, and carries on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_SHARED_H
#define GROUPLOG_SHARED_H

#include "postgres.h"

#include <stdalign.h>
#include <stdatomic.h>

#include "error.h"
#include "record.h"
#include "ring.h"
#include "stats.h"
#include "storage/latch.h"
#include "storage/s_lock.h"
#include "storage/spin.h"
#include "wakeup.h"

/* The log as a whole. */
typedef enum GlState
{
	GL_STATE_STARTING = 0,		/* the writer has not opened it yet */
	GL_STATE_OPEN,				/* appends and reads */
	GL_STATE_CORRUPT,			/* reads only, until accept_end */
	GL_STATE_UNAVAILABLE,		/* neither: see problem */
	GL_STATE_CLOSED				/* shut down */
} GlState;

/* Why an open log takes no appends, or no more files. */
typedef enum GlRefusal
{
	GL_REFUSE_NOTHING = 0,
	GL_REFUSE_FREE_SPACE,		/* below min_free_space: every append */
	GL_REFUSE_DEVICE,			/* a write failed, and the retry too: every append */
	GL_REFUSE_NO_SPACE,			/* a file could not be made: what needs a new one */
	GL_REFUSE_MAX_SIZE			/* at the budget: what needs a new one */
} GlRefusal;

typedef enum GlRequestKind
{
	GL_REQUEST_TRUNCATE = 1,
	GL_REQUEST_ACCEPT_END
} GlRequestKind;

typedef enum GlRequestState
{
	GL_REQUEST_FREE = 0,
	GL_REQUEST_POSTED,
	GL_REQUEST_TAKEN,
	GL_REQUEST_DONE
} GlRequestState;

/* One thing that a session asks the writer to do. */
typedef struct GlRequest
{
	slock_t		mutex;
	GlRequestState state;
	bool		abandoned;		/* nobody waits for the answer */
	GlRequestKind kind;
	uint64		lsn;
	uint64		result;
	GlError		error;
} GlRequest;

/* A join_target: no adaptive append is pending, the next one counts. */
#define GL_FIRST_ADAPTIVE	PG_UINT64_MAX

typedef struct GlShared
{
	/* Constant after startup. */
	uint64		ring_size;
	uint64		segment_size;
	size_t		ring_offset;	/* of the GlRing from the struct's start */

	/* The log; written by the writer. */
	_Atomic uint32 state;		/* GlState */
	_Atomic uint32 refusal;		/* GlRefusal */
	_Atomic uint32 fsync_on;	/* enableFsync, as the writer last saw it */
	_Atomic uint64 log_id;
	_Atomic uint64 epoch;
	_Atomic uint64 nonce;
	_Atomic uint64 run_start;	/* first LSN of this server run */
	_Atomic uint64 end_before;	/* end of the log before this run */
	_Atomic uint64 before_number;	/* newest file before this run */
	_Atomic uint64 holes_end;	/* holes below it are known: see GlControl */
	_Atomic uint64 oldest_lsn;	/* the first LSN that is kept */
	_Atomic uint64 last_lsn;	/* of the last durable record; 0: there is none */
	_Atomic uint64 directory_generation;	/* moves with every file that comes or goes */
	_Atomic uint64 directory_bytes; /* on disk, all files of the log */
	_Atomic uint64 segment_number;	/* the file being written; 0: none yet */
	_Atomic uint64 segment_first_lsn;
	_Atomic int segment_flags;	/* it is open with these beside O_RDWR */
	_Atomic uint64 failed_lsn;	/* records before it that are not durable: outcome
								 * unknown; 0: none */
	_Atomic uint32 io_method;	/* GlIoMethod in use */
	_Atomic uint32 sync_method; /* GlSyncMethod in use */

	/* The writer itself. */
	alignas(GL_CACHE_LINE) Latch *_Atomic writer_latch; /* NULL: no writer */
	_Atomic int writer_pid;
	_Atomic int64 writer_gone_us;	/* monotonic time when it left; 0: it is there */
	_Atomic uint32 need_segment;	/* somebody waits for a file */

	/* Who flushes; see group.h and lone.c. */
	alignas(GL_CACHE_LINE) _Atomic int flush_token; /* pid of the flusher, 0: nobody */
	_Atomic uint32 token_wanted;	/* the writer waits for it */
	_Atomic uint32 lone_offered;	/* a lone appender may take it */
	_Atomic int lone_error;		/* errno of a lone flush that failed, 0: none */
	_Atomic uint32 lone_syncing;	/* ... at its sync */
	_Atomic uint64 lone_flushes;	/* the lone flushes so far, and of the last one */
	_Atomic int64 lone_cut_us;	/* ... when it began */
	_Atomic int64 lone_done_us; /* ... and when it was durable */
	_Atomic uint64 lone_others; /* waiters, beside the flushers, that they covered */
	_Atomic int64 lone_began_us;	/* a lone write began; 0: none is in progress */
	_Atomic uint32 lone_slow;	/* one took longer than log_sync_min_duration */
	_Atomic int64 writer_looked_us; /* when the writer last did its other work */

	/*
	 * How the writer sleeps: until sleep_until_us (0: it is awake, or waits for
	 * I/O, and looks at everything before it sleeps), or until `joins`, the
	 * count of all waiting appends ever published, reaches join_target (or, at
	 * GL_FIRST_ADAPTIVE, with the first append in mode adaptive).  An appender
	 * that finds its wish earlier takes sleep_until_us by an exchange with 0 and
	 * sets the latch.
	 */
	alignas(GL_CACHE_LINE) _Atomic int64 sleep_until_us;
	_Atomic uint64 join_target;
	_Atomic uint64 urgent_lsn;	/* somebody wants all before it durable now */
	alignas(GL_CACHE_LINE) _Atomic uint64 joins;

	GlWakeup	durable;		/* durable_lsn moved, or state or failed_lsn did */
	GlWakeup	room;			/* room or files came, or a ticket was left */
	GlWakeup	answered;		/* a request is done */

	GlRequest	request;

	/* Texts, under their spinlock. */
	slock_t		text_mutex;
	GlError		problem;		/* why state or refusal is what it is */
	GlError		last_error;		/* last I/O error, kept after it is over */
	char		io_reason[160]; /* why this I/O method */
	char		sync_reason[160];	/* why this sync method */
	char		recovery[256];	/* what the last recovery found */

	GlStats		stats;
} GlShared;

extern GlShared *gl_shared;		/* NULL: the library is not preloaded */

static inline GlRing *
gl_ring(void)
{
	return (GlRing *) ((char *) gl_shared + gl_shared->ring_offset);
}

extern Size gl_shared_size(void);
extern void gl_shared_startup(void);

/*
 * Who sleeps for a record to become durable is woken by the group that has it,
 * not by those before: the topics of gl_shared->durable for the LSNs from start
 * up to end.
 */
extern uint32 gl_durable_topics(uint64 start, uint64 end);

/* The seed of this run's records. */
extern GlSeed gl_shared_seed(void);

/* Copy a text out, or in, under the spinlock. */
extern void gl_shared_get_error(const GlError *from, GlError *to);
extern void gl_shared_set_error(GlError *to, const GlError *from);
extern void gl_shared_get_text(const char *from, char *to, Size size);
extern void gl_shared_set_text(char *to, const char *from, Size size);

/* Wake the writer, whatever it sleeps for. */
extern void gl_shared_wake_writer(void);

/* Wake every sleeping session, to look again. */
extern void gl_shared_wake_everybody(void);

/* Ask that everything before lsn be made durable now. */
extern void gl_shared_urge(uint64 lsn);

extern const char *gl_state_name(GlState state);

/* Monotonic microseconds and nanoseconds. */
extern int64 gl_now_us(void);
extern int64 gl_now_ns(void);

#endif							/* GROUPLOG_SHARED_H */
