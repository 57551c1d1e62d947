/*-------------------------------------------------------------------------
 *
 * io_uring.c
 *		Write-and-sync through io_uring.
 *
 * Each step of an operation is one request; the next step is queued when the
 * completion of the one before has been looked at.  Requests are never linked:
 * an fsync linked to a write is cancelled when the write is short, and one that
 * is merely queued behind it does not cover it.
 *
 * The kernel may refuse: at open (no io_uring, a system call filter, a sysctl,
 * memory that may not be locked), then the caller gets the plain engine; or
 * later (a request that can't be taken in just now), then this one operation is
 * carried out here with plain system calls.  So an operation always ends, and
 * nobody waits for a completion that can't come.
 *
 * The ring has as many entries as there may be operations, and each of them has
 * at most one request in it, so neither queue can overflow.
 *
 *-------------------------------------------------------------------------
 */
#ifdef USE_LIBURING

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io_engine.h"

#define CLOSE_PATIENCE_MS	1000

typedef struct GlIoUring
{
	GlIo		io;				/* must be first */
	struct io_uring ring;
} GlIoUring;

/*
 * Hand over what is queued.  What is still in the queue afterwards was not taken
 * in, whatever the call says.
 */
static bool
hand_over(struct io_uring *ring)
{
	int			rc;

	do
	{
		rc = io_uring_submit(ring);
	} while (rc == -EINTR);
	return io_uring_sq_ready(ring) == 0;
}

static void
queue_step(GlIoUring *uring, GlIoOp *op, GlIoStep step)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

	if (sqe != NULL)
	{
		if (step == GL_IO_STEP_WRITE)
			io_uring_prep_writev(sqe, op->fd, op->work_iov,
								 (unsigned) op->work_iovcnt,
								 gl_io_write_offset(op));
		else if (step == GL_IO_STEP_READ)
			io_uring_prep_readv(sqe, op->fd, op->work_iov,
								(unsigned) op->work_iovcnt, op->offset);
		else
			io_uring_prep_fsync(sqe, op->fd, op->kind == GL_IO_FSYNC ?
								0 : IORING_FSYNC_DATASYNC);
		io_uring_sqe_set_data(sqe, op);

		if (hand_over(&uring->ring))
			return;

		/*
		 * Not taken in.  It stays in the queue, where the kernel will find it
		 * the next time, so make it harmless.
		 */
		io_uring_prep_nop(sqe);
		io_uring_sqe_set_data(sqe, NULL);
	}

	gl_io_run(op, step);
	gl_io_finished(&uring->io);
}

static void
uring_submit(GlIo *io, GlIoOp *op, GlIoStep first)
{
	queue_step((GlIoUring *) io, op, first);
}

static void
uring_reap(GlIo *io)
{
	GlIoUring  *uring = (GlIoUring *) io;
	unsigned	ready = io_uring_cq_ready(&uring->ring);

	/*
	 * Only what is there now: a request that the kernel wants repeated, again
	 * and again, must not keep the caller here.
	 */
	for (; ready > 0; ready--)
	{
		struct io_uring_cqe *cqe;
		GlIoOp	   *op;
		int			result;
		GlIoStep	step;

		if (io_uring_peek_cqe(&uring->ring, &cqe) != 0)
			break;
		op = io_uring_cqe_get_data(cqe);
		result = cqe->res;
		io_uring_cqe_seen(&uring->ring, cqe);
		if (op == NULL)
			continue;

		step = gl_io_next(op, result);
		if (step == GL_IO_STEP_END)
			gl_io_finished(io);
		else
			queue_step(uring, op, step);
	}
}

static bool
uring_wait(GlIo *io, int64_t timeout_us)
{
	GlIoUring  *uring = (GlIoUring *) io;
	struct __kernel_timespec timeout = {
		.tv_sec = timeout_us / 1000000,
		.tv_nsec = timeout_us % 1000000 * 1000
	};
	struct io_uring_cqe *cqe;
	int			rc;

	/* An older kernel would be given the time-out as a request of its own. */
	if (!(uring->ring.features & IORING_FEAT_EXT_ARG))
		return false;
	rc = io_uring_wait_cqe_timeout(&uring->ring, &cqe, &timeout);
	uring_reap(io);
	return rc == 0 || rc == -ETIME || rc == -EINTR;
}

static int
uring_fd(GlIo *io)
{
	return ((GlIoUring *) io)->ring.ring_fd;
}

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
uring_close(GlIo *io)
{
	GlIoUring  *uring = (GlIoUring *) io;
	int64_t		give_up = now_ms() + CLOSE_PATIENCE_MS;

	for (;;)
	{
		struct pollfd pollfd = {.fd = uring->ring.ring_fd,.events = POLLIN};
		int64_t		left = give_up - now_ms();

		uring_reap(io);
		if (io->in_flight == 0 || left <= 0)
			break;
		/* whatever wakes it, an interrupt too: look again */
		(void) poll(&pollfd, 1, (int) left);
	}

	io_uring_queue_exit(&uring->ring);
	free(uring);
}

static const GlIoEngine uring_engine = {
	.submit = uring_submit,
	.reap = uring_reap,
	.fd = uring_fd,
	.wait = uring_wait,
	.close = uring_close,
};

/*
 * Try the requests that will be made, on a descriptor that can't be valid: a
 * kernel that knows the request says EBADF, one that doesn't says EINVAL.  This
 * also shows that io_uring_enter is let through, which a filter may refuse by
 * itself.  Returns 0 or an errno.
 */
static int
try_requests(struct io_uring *ring)
{
	static char byte;
	struct iovec iov = {.iov_base = &byte,.iov_len = 1};
	const unsigned count = 2;
	int			verdict = 0;
	int			rc;

	io_uring_prep_writev(io_uring_get_sqe(ring), -1, &iov, 1, 0);
	io_uring_prep_fsync(io_uring_get_sqe(ring), -1, IORING_FSYNC_DATASYNC);

	/* a try is submitted once; the later rounds only wait */
	do
	{
		rc = io_uring_submit_and_wait(ring, count);
	} while (rc == -EINTR || (rc >= 0 && io_uring_cq_ready(ring) < count));
	if (rc < 0)
		return -rc;

	for (unsigned i = 0; i < count; i++)
	{
		struct io_uring_cqe *cqe;

		rc = io_uring_peek_cqe(ring, &cqe);
		if (rc < 0)
			return -rc;
		if (cqe->res != -EBADF)
			verdict = cqe->res < 0 ? -cqe->res : EINVAL;
		io_uring_cqe_seen(ring, cqe);
	}
	return verdict;
}

static void
explain(const char *what, int error, char *reason, size_t reason_size)
{
	const char *because;

	switch (error)
	{
		case ENOSYS:
			because = "the kernel has no io_uring, or a system call filter hides it";
			break;
		case EPERM:
		case EACCES:
			because = "not permitted here, by kernel.io_uring_disabled or by a system call filter";
			break;
		case ENOMEM:
			because = "not enough memory, or RLIMIT_MEMLOCK is too low";
			break;
		case EINVAL:
			because = "the kernel is too old";
			break;
		case EMFILE:
		case ENFILE:
			because = "too many open files";
			break;
		default:
			because = strerror(error);
			break;
	}
	snprintf(reason, reason_size, "%s: %s (errno %d)", what, because, error);
}

GlIo *
gl_io_uring_open(char *reason, size_t reason_size)
{
	GlIoUring  *uring = calloc(1, sizeof(GlIoUring));
	int			error;

	if (uring == NULL)
	{
		explain("io_uring", ENOMEM, reason, reason_size);
		return NULL;
	}
	uring->io.engine = &uring_engine;

	error = -io_uring_queue_init(GL_IO_MAX_IN_FLIGHT, &uring->ring, 0);
	if (error != 0)
	{
		explain("io_uring_setup", error, reason, reason_size);
		free(uring);
		return NULL;
	}

	error = try_requests(&uring->ring);
	if (error != 0)
	{
		explain("io_uring request", error, reason, reason_size);
		io_uring_queue_exit(&uring->ring);
		free(uring);
		return NULL;
	}
	return &uring->io;
}

#else

/* ISO C forbids an empty translation unit */
typedef int gl_io_uring_not_built;

#endif							/* USE_LIBURING */
