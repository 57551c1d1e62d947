/*-------------------------------------------------------------------------
 *
 * sim_log.c
 *		The whole log, in a simulated server on a simulated disk.
 *
 *	SIM_SEED=n SIM_STEPS=n SIM_VERBOSE=1 sim_log
 *
 * The modules are the real ones, writer and appenders, from the ring to the
 * files; PostgreSQL and the kernel are simulated (server/).  Many processes
 * run, one at a time, switched at random at system calls, clocks and sleeps, so
 * also between claim and publish.  What is done to them:
 *
 *	- power cuts and crashes of the server between any two steps, those of
 *	  starting included; what was in flight lands, or in part, or not;
 *	- EIO on reads, writes, syncs, directory syncs, opens and renames; short writes; a
 *	  full disk; the budget, with and without recycling;
 *	- the writer ends and another one carries on, while writes of the first may
 *	  still land; it or a session stops for a while; sessions are cancelled and
 *	  terminated; clocks jump; clean shutdowns;
 *	- and, in some worlds, silent damage: bits flip, sectors are zeros, garbage or
 *	  other sectors, writes are lost or go astray.
 *
 * Every append has a stream of its own, so whatever is read is known.  Checked
 * whenever the log opens, and now and then in between:
 *	- acknowledged records are there, byte for byte, in order, once;
 *	- so is every record that was read before, after a crash too;
 *	- nothing else is there but what was sent; what was refused never is, and
 *	  what was lost in a crash never comes back;
 *	- no LSN is handed out twice, and the durable LSN never goes back;
 *	- a segment in which a write or sync has failed is not written again;
 *	- without silent damage nothing is ever called corrupt, and after a clean
 *	  shutdown the log is called clean;
 *	- with it, what is damaged is reported: the log does not open, or is corrupt,
 *	  or a reader stops there; what may go unreported is the end of the log, if no
 *	  record that is left proves that there was more (doc/design.md);
 *	- when all faults are over, every call ends.
 *
 * A world is a log from its making to its end; its seed alone replays it.
 *
 *-------------------------------------------------------------------------
 */
#include "server/ledger.h"

#include <inttypes.h>
#include <stdarg.h>
#include <time.h>

#include "config.h"
#include "miscadmin.h"
#include "request.h"
#include "shared.h"
#include "writer.h"

#define APPENDERS		5

/* the writer's */
static SimProcess *writer;
static int64 writer_due_us;

/* as it was at the last look */
static uint64 durable_before;

void
violation(const char *format,...)
{
	va_list		args;

	violations++;
	if (violations > 20)
		return;
	printf("run %u, step %" PRIu64 ": ", run, sim_steps - world_steps_at);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("%s%s\n    replay: SIM_SEED=%" PRIu64 " SIM_STEPS=1\n", damage[0] ? ", after damage: " : "",
		   damage, world_seed);
	fflush(stdout);
}

static void
writer_main(SimProcess *self)
{
	grouplog_writer_main((Datum) 0);
}

/* ----- what is done to them ----- */

static SimProcess *
random_appender(void)
{
	SimProcess *process = &sim_process[sim_below(SIM_PROCESSES)];

	return process->pid != 0 && process != writer ? process : NULL;
}

static void
end_faults(void)
{
	memset(&sim_faults, 0, sizeof(sim_faults));
	sim_capacity = UINT64_MAX;
	for (int i = 0; i < SIM_PROCESSES; i++)
		sim_process[i].stopped_until_us = 0;
}

static void
do_harm(void)
{
	SimProcess *process = random_appender();
	int64		now_us = sim_time_ns / 1000;

	sim_disk_late_writes();
	switch (sim_below(14))
	{
		case 0:
		case 1:
			/* once, or a while */
			memset(&sim_faults, 0, sizeof(sim_faults));
			switch (sim_below(8))
			{
				case 0:
					sim_faults.write = 1 + sim_below(5);
					break;
				case 1:
					sim_faults.sync = 1 + sim_below(5);
					break;
				case 2:
					sim_faults.directory = 1 + sim_below(3);
					break;
				case 3:
					sim_faults.name = 1 + sim_below(5);
					break;
				case 4:
					sim_faults.write = sim_faults.sync = sim_faults.directory = 1;
					break;
				case 5:
					sim_faults.read = 1 + sim_below(5);
					break;
				default:
					sim_faults.short_write = 1 + sim_below(4);
					break;
			}
			counts.io_errors++;
			break;
		case 2:
		case 3:
		case 4:
			end_faults();
			break;
		case 5:
			sim_capacity = sim_disk_used() + sim_below((uint32) sim_segment_size * 2);
			break;
		case 6:
		case 7:
			if (process != NULL)
				process->cancel = true;
			break;
		case 8:
			if (process != NULL && sim_chance(3))
				process->terminate = true;
			break;
		case 9:
			if (process != NULL)
				process->stopped_until_us = now_us + sim_below(2000000);
			break;
		case 10:
			if (writer != NULL && sim_chance(2))
				writer->terminate = true;
			break;
		case 11:
			if (writer != NULL)
				writer->stopped_until_us = now_us + sim_below(300000);
			break;
		case 12:
			if (writer != NULL)
				writer->reload = true;
			break;
		case 13:
			sim_clock_offset_us += (int64) sim_below(2000000000) - 1000000000;
			if (silent_world && sim_chance(3) && was_opened)
			{
				sim_faults.lost_write = sim_chance(2) ? 3 : 0;
				sim_faults.stray_write = sim_faults.lost_write ? 0 : 3;
			}
			break;
	}
}

/* An administrator ends a corrupt log where it says that it is corrupt. */
static void
accept_end(void)
{
	unsigned int high;
	unsigned int low;
	const GlError *problem = &gl_shared->problem;
	const char *at = strstr(problem->detail, "ended at ");
	uint64		lsn;

	if (at != NULL)
		at += strlen("ended at ");
	else if ((at = strstr(problem->message, "at LSN ")) != NULL)
		at += strlen("at LSN ");
	if (at == NULL || sscanf(at, "%X/%X", &high, &low) != 2)
	{
		violation("the log is corrupt and does not say where: %s", problem->message);
		return;
	}
	lsn = ((uint64) high << 32) | low;
	(void) gl_request(GL_REQUEST_ACCEPT_END, lsn);
	still_corrupt = false;
	for (uint32 i = 0; i < record_count; i++)
	{
		if (records[i].run < run && (records[i].outcome == SENT || records[i].lsn >= lsn))
			records[i].outcome = LOST;
	}
	counts.ends_accepted++;
}

static void
admin_main(SimProcess *self)
{
	sigjmp_buf	jump;

	PG_exception_stack = &jump;
	if (sigsetjmp(jump, 0) == 0)
		accept_end();
	else if (atomic_load(&gl_shared->state) != GL_STATE_OPEN)
		is_over = true;
	sound_from = Max(sound_from, atomic_load(&gl_shared->run_start));
}

/* The log has just been opened, or was found corrupt. */
static void
after_open(GlState state)
{
	uint64		run_start = atomic_load(&gl_shared->run_start);

	was_opened = true;
	opening = true;
	if (run_start < handed_out)
		violation("the run begins at %" PRIX64 ", and LSNs up to %" PRIX64 " were handed out",
				  run_start, handed_out);
	if (state == GL_STATE_CORRUPT && !damaged && !still_corrupt)
		violation("the log is corrupt: %s", gl_shared->problem.message);
	still_corrupt = state == GL_STATE_CORRUPT;
	damaged = damaged || still_corrupt;
	if (closed && !damaged && state == GL_STATE_OPEN &&
		strncmp(gl_shared->recovery, "clean", 5) != 0)
		violation("the log was closed, and is called %s", gl_shared->recovery);
	reported = state == GL_STATE_CORRUPT;
	sim_call(check_now);
	opening = false;
	if (damaged)
	{
		counts.damages++;
		counts.damages_reported += reported;
		damaged = false;
		damage[0] = '\0';
		sim_silent_writes = 0;
		sound_from = run_start;
	}
	if (state == GL_STATE_CORRUPT)
	{
		if (sim_chance(2))
			sim_fork(admin_main);
		else
			is_over = true;
	}
}

/* Whose turn is it?  NULL: everybody sleeps. */
static SimProcess *
choose(void)
{
	int64		now_us = sim_time_ns / 1000;
	int64		next_us = PG_INT64_MAX;
	int			start = (int) sim_below(SIM_PROCESSES);

	for (int i = 0; i < SIM_PROCESSES; i++)
	{
		SimProcess *process = &sim_process[(start + i) % SIM_PROCESSES];

		if (process->pid == 0)
			continue;
		if (process->stopped_until_us > now_us)
		{
			next_us = Min(next_us, process->stopped_until_us);
			continue;
		}
		if (process->state == SIM_RUNNABLE || process->wake_us <= now_us || sim_chance(500))
		{
			process->state = SIM_RUNNABLE;
			return process;
		}
		next_us = Min(next_us, process->wake_us);
	}
	if (writer == NULL && writer_due_us > now_us)
		next_us = Min(next_us, writer_due_us);
	if (next_us == PG_INT64_MAX)
		return NULL;
	sim_time_ns = Max(sim_time_ns, next_us * 1000);
	return NULL;
}

static void
look_at_state(void)
{
	GlState		state = (GlState) atomic_load(&gl_shared->state);

	if (was_opened && state == GL_STATE_OPEN)
	{
		uint64		durable = gl_ring_durable_lsn(gl_ring());

		if (durable < durable_before)
			violation("the durable LSN has gone back from %" PRIX64 " to %" PRIX64,
					  durable_before, durable);
		durable_before = durable;
	}

	if (was_opened)
		return;
	if (state == GL_STATE_OPEN || state == GL_STATE_CORRUPT)
		after_open(state);
	else if (state == GL_STATE_UNAVAILABLE && damaged &&
			 gl_shared->problem.sqlstate != ERRCODE_IO_ERROR)
	{
		/* it says why */
		counts.damages++;
		counts.damages_reported++;
		is_over = true;
	}
}

/* Let them finish what they are at, without any more faults. */
static bool
is_settled(void)
{
	for (int i = 0; i < SIM_PROCESSES; i++)
	{
		if (sim_process[i].pid != 0 && sim_process[i].user[2] != 0)
			return false;
	}
	return true;
}

static void
run_server(void)
{
	uint64		patience = 0;
	bool		shuts_down = sim_chance(5);
	uint64		begun = sim_steps;

	run++;
	counts.runs++;
	settling = false;
	was_opened = false;
	durable_before = 0;
	sim_server_start();
	writer = sim_fork(writer_main);
	for (int i = 0; i < APPENDERS; i++)
		sim_fork(appender_main);
	sim_steps_to_crash = shuts_down ? 0 :
		1 + (sim_chance(3) ? sim_below(100) : sim_chance(2) ? sim_below(700) : sim_below(4000));
	if (sim_chance(3))
		end_faults();

	while (!sim_crashed && !is_over)
	{
		SimProcess *process;

		if (writer == NULL && sim_time_ns / 1000 >= writer_due_us && !sim_stopping)
		{
			writer = sim_fork(writer_main);
			counts.writers++;
		}
		process = choose();
		if (process == NULL)
		{
			if (sim_stopping && writer == NULL)
				break;
			sim_time_ns += 1000;
			continue;
		}
		sim_switch_to(process);
		damaged = damaged || sim_silent_writes > 0;
		is_over = is_over || sim_disk_is_used_up();
		if (sim_crashed)
			break;
		if (process->pid == 0)
		{
			if (process == writer)
			{
				writer = NULL;
				writer_due_us = sim_time_ns / 1000 + 1000000;
				if (process->exit_code == 0)
					break;
			}
			else if (!sim_stopping && process->main == appender_main)
				sim_fork(appender_main);
		}
		look_at_state();

		if (!settling && sim_chance(60))
			do_harm();
		if (sim_chance(2000) && was_opened && !damaged)
			sim_call(check_now);
		if (shuts_down && !settling && sim_steps - begun > 300 && sim_chance(1000))
		{
			settling = true;
			end_faults();
			patience = sim_steps + 60000;
		}
		if (settling && !sim_stopping && (is_settled() || sim_steps > patience))
		{
			if (sim_steps > patience)
			{
				/* one in a row of calls is always under way: which has not moved? */
				for (int i = 0; i < SIM_PROCESSES; i++)
				{
					if (sim_process[i].pid != 0 && sim_process[i].user[2] != 0 &&
						sim_time_ns - (int64) sim_process[i].user[2] > INT64CONST(60000000000))
						violation("a call of process %d does not end, log %s, refusal %u",
								  sim_process[i].pid, gl_state_name(atomic_load(&gl_shared->state)),
								  atomic_load(&gl_shared->refusal));
				}
			}
			sim_stopping = true;
			for (int i = 0; i < SIM_PROCESSES; i++)
				sim_process[i].terminate = sim_process[i].pid != 0;
			patience = UINT64_MAX;
		}
	}

	if (was_opened && gl_ring_insert_lsn(gl_ring()) > atomic_load(&gl_shared->run_start))
		handed_out = Max(handed_out, gl_ring_insert_lsn(gl_ring()));
	closed = writer == NULL && sim_stopping && was_opened && !sim_crashed &&
		atomic_load(&gl_shared->state) == GL_STATE_CLOSED &&
		atomic_load(&gl_shared->segment_number) != 0 &&
		/* else perhaps no file was to be had for the close record */
		gl_ring_insert_lsn(gl_ring()) % sim_segment_size != 0 &&
		gl_ring_durable_lsn(gl_ring()) == gl_ring_insert_lsn(gl_ring());
	counts.closes += closed;
	counts.continuations += atomic_load(&gl_shared->stats.continuations);
	counts.lone += atomic_load(&gl_shared->stats.flushes[GL_FLUSH_LONE]);
	counts.recycled += atomic_load(&gl_shared->stats.segments_recycled);
}

static void
run_world(void)
{
	static const uint32 segments[] = {1 << 14, 1 << 15, 1 << 16};
	bool		power;

	sim_random_state = world_seed;
	world_steps_at = sim_steps;
	counts.worlds++;
	record_count = arena_used = run = checks = 0;
	handed_out = returned = truncated_to = sound_from = 0;
	damaged = still_corrupt = closed = is_over = false;
	damage[0] = '\0';
	sim_time_ns = INT64CONST(1000000000);
	sim_clock_offset_us = INT64CONST(1000000000000);
	sim_segment_size = segments[sim_below(lengthof(segments))];
	sim_ring_size = sim_chance(2) ? 1 << 13 : 1 << 14;
	sim_max_bytes = sim_chance(2) ? PG_UINT64_MAX : (3 + sim_below(4)) * (sim_segment_size + GL_BLOCK) + GL_BLOCK;
	gl_on_full = sim_chance(2) ? GL_ON_FULL_RECYCLE : GL_ON_FULL_REFUSE;
	gl_io_method = sim_chance(2) ? GL_IO_URING : GL_IO_SYNC;
	gl_sync_method = sim_chance(2) ? GL_SYNC_OPEN_DATASYNC : GL_SYNC_FDATASYNC;
	gl_group_bytes = 1 + sim_below(16);
	sim_direct_io = !sim_chance(3);
	silent_world = sim_chance(3);
	sim_disk_format((uint32) sim_segment_size + GL_BLOCK);
	end_faults();

	for (uint32 i = 0; i < 12 && !is_over; i++)
	{
		run_server();
		power = sim_chance(2);
		counts.crashes++;
		counts.power_cuts += power;
		/* what was in flight, from memory that is gone afterwards */
		sim_disk_crash(power);
		sim_server_gone();
		writer = NULL;
		if (silent_world && !is_over && was_opened && !sim_chance(3))
			damaged = sim_disk_damage(damage, sizeof(damage)) || damaged;
		if (damaged)
			end_faults();
	}
}

int
main(int argc, char **argv)
{
	const char *steps = getenv("SIM_STEPS");
	const char *seed = getenv("SIM_SEED");
	uint64		wanted = steps ? strtoull(steps, NULL, 10) : 1000000;
	uint64		first_seed = seed ? strtoull(seed, NULL, 10) : (uint64) time(NULL) * 1000003;

	sim_verbose = getenv("SIM_VERBOSE") != NULL;
	printf("seed %" PRIu64 "\n", first_seed);
	fflush(stdout);
	for (world_seed = first_seed; sim_steps < wanted && violations <= 20; world_seed++)
		run_world();

	printf("%" PRIu64 " records sent: %" PRIu64 " acknowledged, %" PRIu64 " refused, %" PRIu64
		   " of unknown outcome; %" PRIu64 " read back\n",
		   counts.records, counts.acknowledged, counts.refused, counts.unknown, counts.checked);
	printf("%" PRIu64 " worlds, %" PRIu64 " server runs, %" PRIu64 " clean ends, %" PRIu64
		   " power cuts, %" PRIu64 " writers restarted, %" PRIu64 " spells of I/O errors\n",
		   counts.worlds, counts.runs, counts.closes, counts.power_cuts, counts.writers, counts.io_errors);
	printf("%" PRIu64 " groups flushed by a lone session, %" PRIu64 " continuations, %" PRIu64 " files recycled; %" PRIu64 " silent damages, %" PRIu64
		   " reported, %" PRIu64 " at an end that nothing proves, %" PRIu64 " ends accepted\n",
		   counts.lone, counts.continuations, counts.recycled, counts.damages, counts.damages_reported,
		   counts.damages_unproven, counts.ends_accepted);
	printf("figure: simulated steps %" PRIu64 "\n", sim_steps);
	printf("figure: simulated crashes %" PRIu64 "\n", counts.crashes);
	printf("figure: simulated acknowledged records read back %" PRIu64 "\n", counts.checked);
	printf("%" PRIu64 " steps, %" PRIu64 " crashes, seed %" PRIu64 ": %" PRIu64 " invariant violations\n",
		   sim_steps, counts.crashes, first_seed, violations);
	return violations == 0 ? 0 : 1;
}
