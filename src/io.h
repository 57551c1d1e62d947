/*-------------------------------------------------------------------------
 *
 * io.h
 *		Write-and-sync, and reads: one interface, an io_uring and a plain engine.
 *
 * An operation is filled in by the caller, submitted, and later found done.
 * The io_uring engine works in the kernel meanwhile; the plain engine does the
 * whole work in gl_io_submit.  Either way the caller sees the result only in
 * state GL_IO_DONE, and the rules are the same:
 *
 *	- a short write is continued until all is written, before any sync;
 *	- sync_after is submitted only when all is written (no linked requests: a
 *	  short write would break the link);
 *	- an interrupted call is repeated; every other error ends the operation
 *	  with its errno, and nothing is retried here;
 *	- a write that comes back with 0 bytes is ENOSPC;
 *	- a read is one request: it may end short, done_bytes says where.
 *
 * An engine belongs to one process: open it after fork.  No server headers; the
 * caller may sleep on gl_io_fd() with poll or epoll.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_IO_H
#define GROUPLOG_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define GL_IO_MAX_IOV		4
#define GL_IO_MAX_IN_FLIGHT	16

typedef enum GlIoMethod
{
	GL_IO_SYNC,
	GL_IO_URING
} GlIoMethod;

typedef enum GlIoKind
{
	GL_IO_WRITE,				/* iov at offset, then fdatasync if sync_after */
	GL_IO_READ,					/* iov from offset */
	GL_IO_FDATASYNC,			/* of fd */
	GL_IO_FSYNC					/* of fd, a directory too */
} GlIoKind;

typedef enum GlIoState
{
	GL_IO_IDLE,
	GL_IO_IN_FLIGHT,
	GL_IO_DONE
} GlIoState;

typedef struct GlIoOp
{
	/* set by the caller; not touched until DONE, nor may be the memory of iov */
	GlIoKind	kind;
	int			fd;
	bool		sync_after;
	bool		direct;			/* fd is open with O_DIRECT: a short write is
								 * continued from a block boundary */
	uint64_t	offset;
	int			iovcnt;
	struct iovec iov[GL_IO_MAX_IOV];

	/* result */
	GlIoState	state;
	int			error;			/* 0, or errno */
	uint64_t	done_bytes;		/* written or read */

	/* private */
	uint64_t	total_bytes;
	bool		syncing;
	int			work_iovcnt;
	struct iovec work_iov[GL_IO_MAX_IOV];
} GlIoOp;

typedef struct GlIo GlIo;

/*
 * Open the wanted engine, or the plain one where io_uring is refused or was not
 * built in; *got says which, reason (at most reason_size bytes) why, for one
 * line in the log ("" when the wanted one was had).  Returns NULL only when
 * memory is short.
 */
extern GlIo *gl_io_open(GlIoMethod wanted, GlIoMethod *got, char *reason, size_t reason_size);

/* Ends only when nothing is in flight any more, or gives up after a second. */
extern void gl_io_close(GlIo *io);

/* Start an operation.  At most GL_IO_MAX_IN_FLIGHT at once. */
extern void gl_io_submit(GlIo *io, GlIoOp *op);

/* Take in what has completed, without waiting; returns how many became DONE. */
extern int	gl_io_reap(GlIo *io);

/* Becomes readable when gl_io_reap has something to do; -1: never (plain engine). */
extern int	gl_io_fd(GlIo *io);

extern int	gl_io_in_flight(const GlIo *io);

/*
 * Wait in one system call until something in flight has completed, a signal was
 * caught or the time is over, and take in what has completed.  False: this
 * engine can't; wait for gl_io_fd.
 */
extern bool gl_io_wait(GlIo *io, int64_t timeout_us);

#endif							/* GROUPLOG_IO_H */
