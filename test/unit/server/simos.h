/*-------------------------------------------------------------------------
 *
 * simos.h
 *		A simulated kernel and PostgreSQL, for sim_log.
 *
 * disk.c is the disk, simos.c has the system calls on it; simpg.c, simmemory.c and
 * simerror.c are as much of PostgreSQL as grouplog's modules call.  Processes are
 * coroutines (simproc.c): one runs at a time, and gives way at system calls, at
 * clocks and when it sleeps.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMOS_H
#define SIMOS_H

#include "compat.h"

#include <setjmp.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "simchance.h"
#include "storage/ipc.h"
#include "storage/latch.h"

/* ----- PostgreSQL versions (those of src/ are in src/compat.h) ----- */

/* 16 no longer names the kind of a failed assertion */
#if PG_VERSION_NUM >= 160000
#define SIM_ASSERTION_ARGS const char *condition, const char *file, int line
#else
#define SIM_ASSERTION_ARGS const char *condition, const char *kind, const char *file, int line
#endif

/* 18 no longer returns the handler before */
#if PG_VERSION_NUM >= 180000
#define SIM_PQSIGNAL_RESULT void
#define SIM_PQSIGNAL_NOTHING
#else
#define SIM_PQSIGNAL_RESULT pqsigfunc
#define SIM_PQSIGNAL_NOTHING NULL
#endif

/* ----- the disk ----- */

/* One call in so many fails; 0: none. */
typedef struct SimFaults
{
	uint32		write;			/* EIO; some sectors may have landed */
	uint32		sync;			/* EIO; what was dirty is clean then, landed or not */
	uint32		directory;		/* EIO when a directory is synced */
	uint32		read;			/* EIO */
	uint32		name;			/* EIO on open, rename, unlink, truncate */
	uint32		short_write;
	uint32		lost_write;		/* silent: reported as done */
	uint32		stray_write;	/* silent: goes somewhere else */
} SimFaults;

extern SimFaults sim_faults;
extern uint64 sim_capacity;		/* of the file system, bytes */
extern bool sim_direct_io;		/* has the file system got it? */
extern uint64 sim_silent_writes;	/* lost or stray so far */

extern void sim_disk_format(uint32 largest_file);
extern uint64 sim_disk_used(void);

/* The simulation can hold no more files: not a fault, an end. */
extern bool sim_disk_is_used_up(void);

/* power: the machine died; otherwise all processes did */
extern void sim_disk_crash(bool power);

/* Damage that nobody reports: says what it did, false if there was nothing. */
extern bool sim_disk_damage(char *what, Size size);

/* A process has ended: close its files; its I/O lands now, late or never. */
extern void sim_files_of_process_gone(int pid);

/* Writes of processes that are gone land when they like. */
extern void sim_disk_late_writes(void);

/* ----- PostgreSQL ----- */

typedef enum SimState
{
	SIM_RUNNABLE,
	SIM_ASLEEP,
	SIM_GONE
} SimState;

typedef struct SimProcess SimProcess;
struct SimProcess
{
	int			pid;
	void		(*main) (SimProcess *self);
	SimState	state;
	int			exit_code;
	int64		wake_us;		/* asleep until then, */
	void	   *futex;			/* or until this is woken, */
	uint32		topics;			/* for one of these */
	int64		stopped_until_us;	/* SIGSTOP */
	int64		stall_us;		/* asleep and nothing came of it, since then */

	/* signals */
	bool		terminate;
	bool		cancel;
	bool		reload;
	void		(*sigterm) (int, siginfo_t *, void *);	/* the writer's */

	/* the last error */
	int			elevel;
	int			sqlstate;
	char		message[512];

	/* the caller's */
	uint64		user[4];

	/* private */
	ucontext_t	context;
	char	   *stack;
	char	   *image;			/* the modules' static variables */
	Latch		latch;
	struct
	{
		pg_on_exit_callback function;
		Datum		arg;
	}			at_exit[8];
	int			at_exit_count;
	void	   *memory;			/* its contexts */
	sigjmp_buf *exception_stack;
	void	   *context_stack;
	uint32		holdoff;
	MemoryContext current;
	MemoryContext top;
	bool		reload_pending;
};

#define SIM_PROCESSES	16
#define SIM_POSTMASTER	100000	/* its pid */

extern SimProcess *sim_self;	/* NULL: the simulation itself */
extern SimProcess sim_process[SIM_PROCESSES];
extern bool sim_crashed;		/* all processes are to be forgotten */
extern bool sim_quiet;			/* no switch, no fault, no crash */
extern bool sim_verbose;
extern bool sim_stopping;		/* the server is going down */
extern bool sim_fsync_wanted;	/* what the next reload says */
extern int64 sim_time_ns;
extern int64 sim_clock_offset_us;	/* wall clock jumps */
extern uint64 sim_steps;
extern uint64 sim_steps_to_crash;
extern uint64 sim_ring_size;
extern uint64 sim_segment_size;
extern uint64 sim_max_bytes;

/* A new server: fresh static variables, new shared memory. */
extern void sim_server_start(void);
extern SimProcess *sim_fork(void (*main) (SimProcess *self));

/* Run a process until it gives way. */
extern void sim_switch_to(SimProcess *process);

/* Everything is gone at once. */
extern void sim_server_gone(void);

/* The caller has ended; its memory. */
pg_noreturn extern void sim_process_end(int code);
extern void sim_memory_free(SimProcess *process);

/* Call as a process, to the end and without a switch. */
extern void sim_call(void (*function) (void));

/* A system call: time passes, others may run, and it may all end here. */
extern void sim_step(void);

extern void violation(const char *format,...) pg_attribute_printf(1, 2);

#endif							/* SIMOS_H */
