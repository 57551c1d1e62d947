/*-------------------------------------------------------------------------
 *
 * io_wait.h
 *		How the writer waits: latch, I/O, timer and postmaster in one sleep.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_IO_WAIT_H
#define GROUPLOG_IO_WAIT_H

#include "postgres.h"

#include <signal.h>

#include "io.h"

/* Open the engine and the wait set; once a process.  reason: as gl_io_open. */
extern void gl_io_wait_open(GlIoMethod wanted, GlIoMethod *got, char *reason, Size reason_size);
extern void gl_io_wait_close(void);

extern GlIo *gl_io_engine(void);

/*
 * Sleep until the latch is set, some I/O is complete or until_us (monotonic;
 * GL_NEVER) has come.  Microsecond resolution.  Returns after any of them; the
 * latch is reset, complete I/O is taken in.
 */
extern void gl_io_wait_sleep(int64 until_us, uint32 wait_event);

/*
 * Sleep until some I/O is complete, a signal was caught or 100 ms are over, and
 * take in what is complete: cheaper than gl_io_wait_sleep, but deaf to the latch.
 */
extern void gl_io_wait_complete(uint32 wait_event);

/* The process was asked to end (SIGTERM). */
extern volatile sig_atomic_t gl_stop_requested;

/*
 * CHECK_FOR_INTERRUPTS for loops that wait for the device; ends the process when
 * it was asked to end a minute ago.
 */
extern void gl_io_check_interrupts(void);

/*
 * Submit a copy of the operation and wait until it is done, handling interrupts meanwhile: for what is
 * done seldom.  Returns 0 or the errno.
 */
extern int	gl_io_perform(GlIoOp *op);

/* fsync through the engine; see gl_segment_fsync. */
extern int	gl_io_fsync(int fd);

#endif							/* GROUPLOG_IO_WAIT_H */
