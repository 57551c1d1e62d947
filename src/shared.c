/*-------------------------------------------------------------------------
 *
 * shared.c
 *		What the processes share: one struct in shared memory.
 *
 *-------------------------------------------------------------------------
 */
#include "shared.h"

#include <time.h>

#include "compat.h"
#include "config.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

GlShared   *gl_shared = NULL;

/* Sessions that may queue for room at once: every backend, and those who left. */
static uint32
queue_size(void)
{
	return (uint32) gl_max_backends() * 2 + 64;
}

static Size
ring_offset(void)
{
	return TYPEALIGN(GL_BLOCK, sizeof(GlShared));
}

Size
gl_shared_size(void)
{
	/* One block more, to begin at a block boundary wherever we are put. */
	return add_size(add_size(ring_offset(),
							 gl_ring_shared_size(gl_config_ring_size(), queue_size())),
					GL_BLOCK);
}

/* shmem_startup_hook: in the postmaster, at start and after a crash restart. */
void
gl_shared_startup(void)
{
	bool		found;
	void	   *memory;
	GlShared   *shared;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	memory = ShmemInitStruct("grouplog", gl_shared_size(), &found);
	shared = (GlShared *) TYPEALIGN(GL_BLOCK, memory);
	if (!found)
	{
		memset(shared, 0, sizeof(GlShared));
		shared->ring_size = gl_config_ring_size();
		shared->segment_size = gl_config_segment_size();
		shared->ring_offset = ring_offset();
		SpinLockInit(&shared->request.mutex);
		SpinLockInit(&shared->text_mutex);
		gl_wakeup_init(&shared->durable);
		gl_wakeup_init(&shared->room);
		gl_wakeup_init(&shared->answered);
		gl_stats_init(&shared->stats);
		gl_ring_init((GlRing *) ((char *) shared + shared->ring_offset),
					 shared->ring_size, shared->segment_size, queue_size());
		atomic_store(&shared->writer_gone_us, gl_now_us());
	}
	gl_shared = shared;
	gl_wait_events_define();
	LWLockRelease(AddinShmemInitLock);
}

/* Bytes of log that share a topic: a few small records. */
#define TOPIC_BYTES	256

uint32
gl_durable_topics(uint64 start, uint64 end)
{
	uint64		first = start / TOPIC_BYTES;
	uint64		count = (end - 1) / TOPIC_BYTES - first + 1;
	uint32		topics;

	if (count >= 32)
		return GL_WAKE_ALL;
	topics = (UINT32_C(1) << count) - 1;
	first %= 32;
	return first == 0 ? topics : topics << first | topics >> (32 - first);
}

GlSeed
gl_shared_seed(void)
{
	GlSeed		seed = {
		.log_id = atomic_load_explicit(&gl_shared->log_id, memory_order_relaxed),
		.epoch = atomic_load_explicit(&gl_shared->epoch, memory_order_relaxed),
		.nonce = atomic_load_explicit(&gl_shared->nonce, memory_order_relaxed)
	};

	return seed;
}

void
gl_shared_get_error(const GlError *from, GlError *to)
{
	SpinLockAcquire(&gl_shared->text_mutex);
	*to = *from;
	SpinLockRelease(&gl_shared->text_mutex);
}

void
gl_shared_set_error(GlError *to, const GlError *from)
{
	SpinLockAcquire(&gl_shared->text_mutex);
	*to = *from;
	SpinLockRelease(&gl_shared->text_mutex);
}

void
gl_shared_get_text(const char *from, char *to, Size size)
{
	SpinLockAcquire(&gl_shared->text_mutex);
	memcpy(to, from, size);
	SpinLockRelease(&gl_shared->text_mutex);
	to[size - 1] = '\0';
}

void
gl_shared_set_text(char *to, const char *from, Size size)
{
	SpinLockAcquire(&gl_shared->text_mutex);
	strlcpy(to, from, size);
	SpinLockRelease(&gl_shared->text_mutex);
}

void
gl_shared_wake_writer(void)
{
	Latch	   *latch = atomic_load(&gl_shared->writer_latch);

	if (latch != NULL)
		SetLatch(latch);
}

void
gl_shared_urge(uint64 lsn)
{
	uint64		known = atomic_load(&gl_shared->urgent_lsn);

	while (known < lsn &&
		   !atomic_compare_exchange_weak(&gl_shared->urgent_lsn, &known, lsn))
		;

	/* Only a sleeping writer needs waking; an active one looks by itself. */
	if (atomic_exchange(&gl_shared->sleep_until_us, 0) != 0)
		gl_shared_wake_writer();
}

void
gl_shared_wake_everybody(void)
{
	gl_wakeup_broadcast(&gl_shared->durable, GL_WAKE_ALL);
	gl_wakeup_broadcast(&gl_shared->room, GL_WAKE_ALL);
	gl_wakeup_broadcast(&gl_shared->answered, GL_WAKE_ALL);
}

const char *
gl_state_name(GlState state)
{
	switch (state)
	{
		case GL_STATE_STARTING:
			return "starting";
		case GL_STATE_OPEN:
			return "open";
		case GL_STATE_CORRUPT:
			return "corrupt";
		case GL_STATE_UNAVAILABLE:
			return "unavailable";
		case GL_STATE_CLOSED:
			return "closed";
	}
	return "unknown";
}

int64
gl_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000000000 + now.tv_nsec;
}

int64
gl_now_us(void)
{
	return gl_now_ns() / 1000;
}
