/*-------------------------------------------------------------------------
 *
 * io.c
 *		Write-and-sync: the steps of an operation, the plain engine, dispatch.
 *
 * The plain engine does all steps in gl_io_submit with pwritev, fdatasync and
 * fsync.  It is what remains where io_uring is refused, and what the io_uring
 * engine itself falls back on when the kernel won't take an operation.
 *
 * Where to go on after a short write.  A buffered file goes on at the next
 * byte.  O_DIRECT needs the file offset, the length and the memory address
 * aligned, so a direct file goes on at the block that the next byte lies in, and
 * writes the beginning of that block a second time: the same bytes.  done_bytes
 * always counts what has really been written, so that a write which comes no
 * further than the one before is seen: it is out of space like one of 0 bytes,
 * not a reason to try for ever.
 *
 * Pure: no server headers; POSIX and pwritev.
 *
 *-------------------------------------------------------------------------
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io_engine.h"

/* Bytes of the operation that the next write need not bring again. */
static uint64_t
resume_bytes(const GlIoOp *op)
{
	uint64_t	position;

	if (!op->direct)
		return op->done_bytes;

	position = op->offset + op->done_bytes;
	position -= position % GL_IO_BLOCK;

	/* an offset inside a block is not fit for a direct write, but is no crash */
	return position > op->offset ? position - op->offset : 0;
}

uint64_t
gl_io_write_offset(const GlIoOp *op)
{
	return op->offset + resume_bytes(op);
}

/* Point work_iov at what is still to be written. */
static void
prepare_write(GlIoOp *op)
{
	uint64_t	skip = resume_bytes(op);

	op->work_iovcnt = 0;
	for (int i = 0; i < op->iovcnt; i++)
	{
		struct iovec *work = &op->work_iov[op->work_iovcnt];
		size_t		length = op->iov[i].iov_len;

		if (skip >= length)
		{
			skip -= length;
			continue;
		}
		work->iov_base = (char *) op->iov[i].iov_base + skip;
		work->iov_len = length - (size_t) skip;
		op->work_iovcnt++;
		skip = 0;
	}
}

static GlIoStep
end_with(GlIoOp *op, int error)
{
	op->error = error;
	op->state = GL_IO_DONE;
	return GL_IO_STEP_END;
}

static GlIoStep
after_last_write(GlIoOp *op)
{
	if (!op->sync_after)
		return end_with(op, 0);
	op->syncing = true;
	return GL_IO_STEP_SYNC;
}

GlIoStep
gl_io_begin(GlIoOp *op)
{
	op->state = GL_IO_IN_FLIGHT;
	op->error = 0;
	op->done_bytes = 0;
	op->total_bytes = 0;
	op->syncing = false;
	op->work_iovcnt = 0;

	if (op->kind != GL_IO_WRITE && op->kind != GL_IO_READ)
	{
		op->syncing = true;
		return GL_IO_STEP_SYNC;
	}

	assert(op->iovcnt >= 0 && op->iovcnt <= GL_IO_MAX_IOV);
	for (int i = 0; i < op->iovcnt; i++)
		op->total_bytes += op->iov[i].iov_len;
	prepare_write(op);
	if (op->kind == GL_IO_READ)
		return op->total_bytes == 0 ? end_with(op, 0) : GL_IO_STEP_READ;
	return op->total_bytes == 0 ? after_last_write(op) : GL_IO_STEP_WRITE;
}

GlIoStep
gl_io_next(GlIoOp *op, int64_t result)
{
	uint64_t	reached;

	if (result == -EINTR || result == -EAGAIN)
	{
		if (op->kind == GL_IO_READ)
			return GL_IO_STEP_READ;
		return op->syncing ? GL_IO_STEP_SYNC : GL_IO_STEP_WRITE;
	}
	if (result < 0)
		return end_with(op, (int) -result);
	if (op->kind == GL_IO_READ)
		op->done_bytes = (uint64_t) result;
	if (op->syncing || op->kind == GL_IO_READ)
		return end_with(op, 0);

	reached = resume_bytes(op) + (uint64_t) result;
	if (reached <= op->done_bytes)
		return end_with(op, ENOSPC);
	assert(reached <= op->total_bytes);
	op->done_bytes = reached;
	if (op->done_bytes >= op->total_bytes)
		return after_last_write(op);

	prepare_write(op);
	return GL_IO_STEP_WRITE;
}

void
gl_io_run(GlIoOp *op, GlIoStep step)
{
	while (step != GL_IO_STEP_END)
	{
		int64_t		result;

		if (step == GL_IO_STEP_WRITE)
			result = pwritev(op->fd, op->work_iov, op->work_iovcnt,
							 (off_t) gl_io_write_offset(op));
		else if (step == GL_IO_STEP_READ)
			result = preadv(op->fd, op->work_iov, op->work_iovcnt, (off_t) op->offset);
		else if (op->kind == GL_IO_FSYNC)
			result = fsync(op->fd);
		else
			result = fdatasync(op->fd);

		step = gl_io_next(op, result < 0 ? -errno : result);
	}
}

void
gl_io_finished(GlIo *io)
{
	assert(io->in_flight > 0);
	io->in_flight--;
	io->unreported++;
}

/* ---- the plain engine ---- */

static void
plain_submit(GlIo *io, GlIoOp *op, GlIoStep first)
{
	gl_io_run(op, first);
	gl_io_finished(io);
}

static void
plain_reap(GlIo *io)
{
	/* everything was done in submit */
	(void) io;
}

static int
plain_fd(GlIo *io)
{
	(void) io;
	return -1;
}

static void
plain_close(GlIo *io)
{
	free(io);
}

static const GlIoEngine plain_engine = {
	.submit = plain_submit,
	.reap = plain_reap,
	.fd = plain_fd,
	.close = plain_close,
};

/* ---- the interface ---- */

GlIo *
gl_io_open(GlIoMethod wanted, GlIoMethod *got, char *reason, size_t reason_size)
{
	GlIo	   *io;

	if (reason_size > 0)
		reason[0] = '\0';

	if (wanted == GL_IO_URING)
	{
#ifdef USE_LIBURING
		io = gl_io_uring_open(reason, reason_size);
		if (io != NULL)
		{
			*got = GL_IO_URING;
			return io;
		}
#else
		snprintf(reason, reason_size, "this build has no liburing");
#endif
	}

	io = calloc(1, sizeof(GlIo));
	if (io == NULL)
		return NULL;
	io->engine = &plain_engine;
	*got = GL_IO_SYNC;
	return io;
}

void
gl_io_close(GlIo *io)
{
	io->engine->close(io);
}

void
gl_io_submit(GlIo *io, GlIoOp *op)
{
	GlIoStep	first = gl_io_begin(op);

	assert(io->in_flight < GL_IO_MAX_IN_FLIGHT);
	io->in_flight++;
	if (first == GL_IO_STEP_END)
		gl_io_finished(io);
	else
		io->engine->submit(io, op, first);
}

int
gl_io_reap(GlIo *io)
{
	int			count;

	io->engine->reap(io);
	count = io->unreported;
	io->unreported = 0;
	return count;
}

int
gl_io_fd(GlIo *io)
{
	return io->engine->fd(io);
}

bool
gl_io_wait(GlIo *io, int64_t timeout_us)
{
	return io->engine->wait != NULL && io->in_flight > 0 &&
		io->engine->wait(io, timeout_us);
}

int
gl_io_in_flight(const GlIo *io)
{
	return io->in_flight;
}
