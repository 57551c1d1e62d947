/*-------------------------------------------------------------------------
 *
 * simulate.c
 *		The discrete-event simulation beneath policy_sim.
 *
 * It is deterministic, and has everything around src/sync_policy.c: clients,
 * cores, the writer and a disk.  The policy runs unchanged, the simulation only
 * keeps its clock.
 *
 *	client	 thinks, then queues for a core to append (this covers its wake-up,
 *			 the protocol and the copy), then waits until it is released
 *	core	 takes jobs in order of arrival, the writer's first; never preempts
 *	writer	 decides when the last sync is done, when woken and when the time it
 *			 asked for has come (late by the timer's slack); each wake-up, each
 *			 group and each client that it releases needs a core for a moment; a
 *			 lone client syncs by itself, in cells that say so
 *	disk	 one sync at a time; its time is constant, jittered or log-normal; one
 *			 that counts them lets so many pass from the first on, and the next
 *			 wait until their time is over
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulate.h"

#define MAX_EVENTS		(MAX_SLOTS + 64)

/*
 * Random numbers: splitmix64; one stream for each source of chance
 */
typedef struct Random
{
	uint64_t	state;
} Random;

uint64_t	seed = 1;

static Random
random_stream(uint64_t stream)
{
	Random		random = {seed * UINT64_C(0x9E3779B97F4A7C15) + stream * UINT64_C(0xD1B54A32D192ED03)};

	return random;
}

static double
random_unit(Random *random)		/* 0 < x < 1 */
{
	uint64_t	x = (random->state += UINT64_C(0x9E3779B97F4A7C15));

	x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
	x ^= x >> 31;
	return ((double) (x >> 11) + 0.5) / 9007199254740992.0;
}

static double
random_time(Random *random, double mean, Spread spread)
{
	double		u = random_unit(random);

	switch (spread)
	{
		case CONSTANT:
			return mean;
		case JITTER:
			return mean * (0.8 + 0.4 * u);
		case EXPONENTIAL:
			return -mean * log(u);
		case LOGNORMAL:
			return mean * exp(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * random_unit(random)) - 0.5);
	}
	return mean;
}

/*
 * The simulation
 */
typedef enum EventKind
{
	EVENT_ARRIVE,				/* open loop: the next burst */
	EVENT_READY,				/* a client wants to append */
	EVENT_CPU,					/* a job is done */
	EVENT_SYNC,					/* the sync is done */
	EVENT_LONE,					/* a lone client's own sync is done */
	EVENT_WAKE					/* the writer's timer */
} EventKind;

typedef struct Event
{
	double		time;
	uint64_t	order;			/* ties: first scheduled, first served */
	EventKind	kind;
	int			id;				/* slot, job, or generation of the timer */
} Event;

#define JOB_WAKE		(-1)
#define JOB_GROUP		(-2)
#define JOB_DONE		(-3)
#define JOB_RELEASE		(-4)

typedef struct Slot
{
	const Clients *clients;		/* NULL: an arrival of the open loop */
	Random		random;
	double		start;			/* ready to append; published */
	double		leave;
	GlSyncMode	mode;
	double		window_us;
} Slot;

typedef struct Sim
{
	const Cell *cell;
	double		now;

	Event		events[MAX_EVENTS];
	int			event_count;
	uint64_t	event_order;

	int			queue[2 * MAX_SLOTS];
	int			queue_head;
	int			queue_count;
	int			cores_free;

	Slot		slots[MAX_SLOTS];
	int			free_slots[MAX_SLOTS];
	int			free_count;
	int			waiting[MAX_SLOTS];
	int			waiting_count;
	int			in_flight[MAX_SLOTS];
	int			in_flight_count;
	int			released_count; /* of those in flight */

	GlPolicy	policy;
	GlPolicyConfig config;
	GlPending	pending;
	GlDecision	decision;
	bool		idle;			/* the writer sleeps */
	int			timer;
	int			lone_groups;	/* of one waiter, one after the other */
	bool		lone_offered;	/* a lone client may flush by itself; it does: */
	bool		lone_busy;
	int64_t		lone_cut_us;	/* when the last one that did began, or 0, ... */
	int64_t		lone_done_us;	/* ... and when it was done */
	Random		disk;
	int			tokens;			/* left until refill */
	double		refill;
	Random		arrivals;

	long		done;
	long		warm;
	long		target;
	double		warm_time;
	long		groups;
} Sim;

/*
 * The writer's own CPU.  Measured on a machine with two cores: 20 µs a group of 3.5
 * records, 60 to 80 µs a group of 14, so 8 µs a group, of which half is taken as
 * its wake-up, and 4 to 5 µs for each session that it wakes; and two switches
 * to a worker of the kernel and back, about 10 µs, for the write and sync.
 */
#define WAKE_CPU_US		4.0
#define GROUP_CPU_US	4.0
#define WORKER_CPU_US	5.0
#define RELEASE_CPU_US	4.5
#define TIMER_SLACK_US	5.0

/* As in src/flush.c: when a lone client flushes by itself. */
#define LONE_GROUPS		4
#define LONE_SYNC_US	10000
#define LONE_FAST_GROUPS	100

static Sim	sim;
static double waits[MAX_WAITS];
static long wait_count;

static bool
event_before(const Event *a, const Event *b)
{
	return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void
schedule(double time, EventKind kind, int id)
{
	Event		event = {time, sim.event_order++, kind, id};
	int			i = sim.event_count++;

	if (i >= MAX_EVENTS)
	{
		fprintf(stderr, "policy_sim: too many events\n");
		exit(2);
	}
	while (i > 0 && event_before(&event, &sim.events[(i - 1) / 2]))
	{
		sim.events[i] = sim.events[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	sim.events[i] = event;
}

static Event
next_event(void)
{
	Event		first = sim.events[0];
	Event		last = sim.events[--sim.event_count];
	int			i = 0;

	for (;;)
	{
		int			child = 2 * i + 1;

		if (child >= sim.event_count)
			break;
		if (child + 1 < sim.event_count &&
			event_before(&sim.events[child + 1], &sim.events[child]))
			child++;
		if (!event_before(&sim.events[child], &last))
			break;
		sim.events[i] = sim.events[child];
		i = child;
	}
	sim.events[i] = last;
	return first;
}

static void
start_job(int job)
{
	double		cost;

	sim.cores_free--;
	if (job == JOB_WAKE)
		cost = WAKE_CPU_US;
	else if (job == JOB_GROUP)
		cost = GROUP_CPU_US + WORKER_CPU_US;
	else if (job == JOB_DONE)
		cost = WORKER_CPU_US + WAKE_CPU_US;
	else if (job == JOB_RELEASE)
		cost = RELEASE_CPU_US;
	else
		cost = 0.5 * sim.cell->append_us +
			random_time(&sim.slots[job].random, 0.5 * sim.cell->append_us, EXPONENTIAL);
	schedule(sim.now + cost, EVENT_CPU, job);
}

static void
queue_job(int job)
{
	int			size = 2 * MAX_SLOTS;

	if (sim.cores_free > 0)
	{
		start_job(job);
		return;
	}
	if (job < 0)
	{
		sim.queue_head = (sim.queue_head + size - 1) % size;
		sim.queue[sim.queue_head] = job;
	}
	else
		sim.queue[(sim.queue_head + sim.queue_count) % size] = job;
	sim.queue_count++;
}

static void
core_is_free(void)
{
	sim.cores_free++;
	if (sim.queue_count > 0)
	{
		int			job = sim.queue[sim.queue_head];

		sim.queue_head = (sim.queue_head + 1) % (2 * MAX_SLOTS);
		sim.queue_count--;
		start_job(job);
	}
}

static int64_t
clock_us(void)
{
	return (int64_t) sim.now + 1000000;
}

/* A group is durable: what does it say of lone clients? */
static void
count_lone(double took_us, int waiters)
{
	if (took_us > LONE_SYNC_US)
		sim.lone_groups = -LONE_FAST_GROUPS;
	else if (sim.lone_groups < 0)
		sim.lone_groups++;
	else if (waiters > 1)
		sim.lone_groups = 0;
	else
		sim.lone_groups++;
}

/* The writer is awake again: what has a lone client done meanwhile? */
static void
take_back(void)
{
	if (sim.lone_cut_us > 0)
	{
		GlPending	lone;

		gl_pending_reset(&lone);
		gl_pending_add(&lone, GL_SYNC_ADAPTIVE, true, sim.lone_cut_us, 64);
		gl_policy_cut(&sim.policy, &lone, sim.lone_cut_us);
		gl_policy_done(&sim.policy, &lone, sim.lone_done_us);
		count_lone((double) (sim.lone_done_us - sim.lone_cut_us), 1);
	}
	sim.lone_cut_us = 0;
	sim.lone_offered = false;
	if (sim.pending.waiters > 0 && sim.lone_groups > 0)
		sim.lone_groups = 0;
}

static void
writer_decide(void)
{
	if (sim.lone_busy)
	{
		sim.idle = true;
		return;
	}
	if (sim.lone_offered)
		take_back();
	sim.decision = gl_policy_decide(&sim.policy, &sim.config, &sim.pending, false, clock_us());
	sim.timer++;
	if (sim.decision.sync)
	{
		sim.idle = false;
		queue_job(JOB_GROUP);
		return;
	}
	sim.idle = true;
	sim.lone_offered = sim.cell->lone && sim.lone_groups >= LONE_GROUPS &&
		sim.policy.sync_us <= LONE_SYNC_US && sim.pending.records == 0;
	if (sim.decision.wake_us != GL_NEVER)
	{
		double		wake = (double) (sim.decision.wake_us - 1000000);

		schedule((wake > sim.now ? wake : sim.now) + TIMER_SLACK_US, EVENT_WAKE, sim.timer);
	}
}

/* When the disk lets a sync start that is asked for now. */
static double
sync_start(void)
{
	double		start = sim.now;

	if (sim.cell->tokens == 0)
		return start;
	if (sim.tokens == 0 && start < sim.refill)
		start = sim.refill;
	if (start >= sim.refill)
	{
		sim.tokens = sim.cell->tokens;
		sim.refill = start + sim.cell->refill_us;
	}
	sim.tokens--;
	return start;
}

static void
writer_cut(void)
{
	gl_policy_cut(&sim.policy, &sim.pending, clock_us());
	memcpy(sim.in_flight, sim.waiting, sizeof(int) * sim.waiting_count);
	sim.in_flight_count = sim.waiting_count;
	sim.released_count = 0;
	sim.waiting_count = 0;
	gl_pending_reset(&sim.pending);
	sim.groups++;
	schedule(sync_start() + random_time(&sim.disk, sim.cell->sync_us, sim.cell->sync), EVENT_SYNC, 0);
}

static void
wake_writer(void)
{
	if (!sim.idle)
		return;
	sim.idle = false;
	sim.timer++;
	queue_job(JOB_WAKE);
}

/* The append is published: does it wake the writer, as an appender would see it? */
static void
publish(int id)
{
	Slot	   *slot = &sim.slots[id];
	int64_t		now_us = clock_us();
	int64_t		time_us = now_us;

	if (slot->mode == GL_SYNC_GROUP)
		time_us += (int64_t) slot->window_us;
	if (slot->clients)
		slot->start = sim.now;
	if (sim.lone_offered && sim.idle && !sim.lone_busy && sim.waiting_count == 0 &&
		(slot->mode == GL_SYNC_BATCH || slot->mode == GL_SYNC_ADAPTIVE))
	{
		sim.lone_busy = true;
		sim.lone_cut_us = now_us;
		sim.groups++;
		schedule(sync_start() + random_time(&sim.disk, sim.cell->sync_us, sim.cell->sync), EVENT_LONE, id);
		return;
	}
	gl_pending_add(&sim.pending, slot->mode, slot->mode != GL_SYNC_PERIODIC, time_us, 64);

	if (slot->mode == GL_SYNC_PERIODIC)
	{
		/* Waits for nobody; its appends are not what is measured. */
		schedule(sim.now + random_time(&slot->random, slot->clients->think_us, slot->clients->think),
				 EVENT_READY, id);
		if (sim.decision.wake_us == GL_NEVER)
			wake_writer();
		return;
	}

	sim.waiting[sim.waiting_count++] = id;
	switch (slot->mode)
	{
		case GL_SYNC_PERIODIC:
			break;
		case GL_SYNC_BATCH:
			wake_writer();
			break;
		case GL_SYNC_GROUP:
			if (time_us < sim.decision.wake_us ||
				(sim.decision.join_target > 0 &&
				 sim.pending.waiters >= sim.decision.join_target))
				wake_writer();
			break;
		case GL_SYNC_ADAPTIVE:
			if (sim.pending.waiters >= sim.decision.join_target)
				wake_writer();
			break;
	}
}

static void
release(int id)
{
	Slot	   *slot = &sim.slots[id];
	const Clients *clients = slot->clients;
	double		pause;

	if (sim.done >= sim.warm && wait_count < MAX_WAITS)
		waits[wait_count++] = sim.now - slot->start;
	sim.done++;
	if (sim.done == sim.warm)
	{
		sim.warm_time = sim.now;
		sim.groups = 0;
	}

	if (clients == NULL)
	{
		sim.free_slots[sim.free_count++] = id;
		return;
	}
	pause = clients->think_us > 0 ?
		random_time(&slot->random, clients->think_us, clients->think) : 0;
	if (clients->stay_us > 0 && sim.now >= slot->leave)
	{
		pause = random_time(&slot->random, clients->away_us, EXPONENTIAL);
		slot->leave = sim.now + pause + random_time(&slot->random, clients->stay_us, EXPONENTIAL);
	}
	if (clients->on_us > 0)
	{
		double		phase = fmod(sim.now, clients->on_us + clients->off_us);

		if (phase >= clients->on_us)
			pause = fmax(pause, clients->on_us + clients->off_us - phase);
	}
	if (pause > 0)
		schedule(sim.now + pause, EVENT_READY, id);
	else
		queue_job(id);
}

static void
arrive(void)
{
	for (int i = 0; i < sim.cell->burst; i++)
	{
		int			id;

		if (sim.free_count == 0)
		{
			fprintf(stderr, "policy_sim: cell %s is overloaded\n", sim.cell->name);
			exit(2);
		}
		id = sim.free_slots[--sim.free_count];
		sim.slots[id].start = sim.now;
		queue_job(id);
	}
	schedule(sim.now + random_time(&sim.arrivals, sim.cell->open_us, sim.cell->arrival),
			 EVENT_ARRIVE, 0);
}

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

Result
run(const Cell *cell, GlSyncMode mode, double window_us, long appends)
{
	Result		result = {0};
	int			used = 0;

	memset(&sim, 0, sizeof(sim));
	sim.cell = cell;
	sim.cores_free = cell->cores;
	sim.warm = appends / 4;
	sim.target = appends + sim.warm;
	sim.disk = random_stream(1);
	sim.arrivals = random_stream(2);
	sim.config.sync_period_us = 1000000;
	sim.config.adaptive_window_us = 10000;
	sim.config.flush_bytes = 512 * 1024;
	wait_count = 0;
	gl_pending_reset(&sim.pending);
	gl_policy_init(&sim.policy);

	for (int k = 0; k < 2; k++)
		for (int i = 0; i < cell->clients[k].count; i++)
		{
			const Clients *clients = &cell->clients[k];
			Slot	   *slot = &sim.slots[used];

			slot->clients = clients;
			slot->mode = clients->fixed ? clients->mode : mode;
			slot->window_us = clients->fixed ? clients->window_us : window_us;
			slot->random = random_stream(10 + used);
			slot->leave = random_time(&slot->random, clients->stay_us, EXPONENTIAL);
			schedule(random_unit(&slot->random) * (clients->think_us + 2 * cell->sync_us),
					 EVENT_READY, used);
			used++;
		}
	for (int id = MAX_SLOTS - 1; id >= used; id--)
	{
		sim.slots[id].mode = mode;
		sim.slots[id].window_us = window_us;
		sim.slots[id].random = random_stream(10 + id);
		sim.free_slots[sim.free_count++] = id;
	}
	if (cell->open_us > 0)
		schedule(0, EVENT_ARRIVE, 0);
	writer_decide();

	while (sim.done < sim.target)
	{
		Event		event = next_event();

		sim.now = event.time;
		switch (event.kind)
		{
			case EVENT_ARRIVE:
				arrive();
				break;
			case EVENT_READY:
				queue_job(event.id);
				break;
			case EVENT_CPU:
				if (event.id == JOB_WAKE)
					writer_decide();
				else if (event.id == JOB_GROUP)
					writer_cut();
				else if (event.id == JOB_DONE || event.id == JOB_RELEASE)
				{
					/* One after the other, each as soon as it is woken. */
					if (event.id == JOB_RELEASE)
						release(sim.in_flight[sim.released_count++]);
					if (sim.released_count < sim.in_flight_count)
						queue_job(JOB_RELEASE);
					else
						writer_decide();
				}
				else
					publish(event.id);
				core_is_free();
				break;
			case EVENT_SYNC:
				count_lone((double) (clock_us() - sim.policy.cut_us), sim.in_flight_count);
				gl_policy_done(&sim.policy, &sim.pending, clock_us());
				queue_job(JOB_DONE);
				break;
			case EVENT_LONE:
				sim.lone_busy = false;
				sim.lone_done_us = clock_us();
				sim.pending.released_us = sim.lone_done_us;
				sim.pending.others = sim.pending.adaptive;
				release(event.id);
				/* A slow one takes the offer back, and tells the writer. */
				if (sim.waiting_count > 0 || sim.lone_done_us - sim.lone_cut_us > LONE_SYNC_US)
					wake_writer();
				break;
			case EVENT_WAKE:
				if (event.id == sim.timer)
					wake_writer();
				break;
		}
	}

	result.rate = (double) (sim.done - sim.warm) / (sim.now - sim.warm_time) * 1e6;
	result.group = sim.groups > 0 ? (double) (sim.done - sim.warm) / sim.groups : 0;
	qsort(waits, wait_count, sizeof(double), compare_doubles);
	result.median_us = waits[wait_count / 2];
	for (long i = 0; i < wait_count; i++)
		result.mean_us += waits[i] / wait_count;
	return result;
}
