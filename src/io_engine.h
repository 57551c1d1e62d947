/*-------------------------------------------------------------------------
 *
 * io_engine.h
 *		What the two engines of io.h share.  Besides them only lone.c uses it, to
 *		carry out an operation at once, without an engine.
 *
 * An operation is a sequence of steps: writes until every byte is out, then
 * perhaps one sync; or one read.  Which step comes next depends only on the
 * operation and on the result of the step before, so io.c decides that for both
 * engines; an engine carries out steps, nothing else.
 *
 *	gl_io_begin --> WRITE --short--> WRITE --all--> SYNC --> END
 *	          |       |                |              |
 *	          |       +--------------error------------+----> END
 *	          +---> READ ------------------------------------> END
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_IO_ENGINE_H
#define GROUPLOG_IO_ENGINE_H

#include "io.h"

/*
 * A short direct write goes on from a multiple of this in the file.  No device
 * asks for a coarser alignment, and the log is written in blocks of this size.
 */
#define GL_IO_BLOCK			4096

typedef enum GlIoStep
{
	GL_IO_STEP_WRITE,			/* op->work_iov at gl_io_write_offset(op) */
	GL_IO_STEP_READ,			/* op->work_iov from op->offset */
	GL_IO_STEP_SYNC,			/* fsync if op->kind is GL_IO_FSYNC, else
								 * fdatasync */
	GL_IO_STEP_END				/* op is DONE */
} GlIoStep;

typedef struct GlIoEngine
{
	void		(*submit) (GlIo *io, GlIoOp *op, GlIoStep first);
	void		(*reap) (GlIo *io);
	int			(*fd) (GlIo *io);
	bool		(*wait) (GlIo *io, int64_t timeout_us);	/* NULL: can't */
	void		(*close) (GlIo *io);
} GlIoEngine;

/* An engine's own struct begins with this one. */
struct GlIo
{
	const GlIoEngine *engine;
	int			in_flight;		/* operations submitted and not yet DONE */
	int			unreported;		/* operations DONE since the last reap */
};

/* The first step, or the one after a step that returned result (or -errno). */
extern GlIoStep gl_io_begin(GlIoOp *op);
extern GlIoStep gl_io_next(GlIoOp *op, int64_t result);

/* File offset of the first byte of op->work_iov. */
extern uint64_t gl_io_write_offset(const GlIoOp *op);

/* Carry out this step and all that follow with plain system calls. */
extern void gl_io_run(GlIoOp *op, GlIoStep step);

/* Account for an operation that has reached its end. */
extern void gl_io_finished(GlIo *io);

/* NULL if io_uring can't be used; then reason says why. */
extern GlIo *gl_io_uring_open(char *reason, size_t reason_size);

#endif							/* GROUPLOG_IO_ENGINE_H */
