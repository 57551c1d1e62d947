/*-------------------------------------------------------------------------
 *
 * gate.h
 *		May this session use the log now?
 *
 * Every way in passes here first.  All of these raise errors that say why not
 * and what to do; a log that is just starting is waited for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_GATE_H
#define GROUPLOG_GATE_H

#include "compat.h"

/* The library is preloaded. */
extern void gl_gate_check_loaded(void);

/*
 * Everything that forbids a change whatever the record: not preloaded,
 * recovery, read-only transaction, parallel mode.  what: "append to", ..., for
 * the message.
 */
extern void gl_gate_check_allowed(const char *what);

/* The log is open; it may still refuse appends. */
extern void gl_gate_check_state(void);

/* The log takes appends. */
extern void gl_gate_check_open(void);

/* The log can be read; not in recovery. */
extern void gl_gate_check_readable(const char *what);

/* A record needs a new file: is there a reason why none will come? */
extern void gl_gate_check_files(void);

/* Wait while the log is starting. */
extern void gl_gate_wait_started(void);

/*
 * For whoever sleeps: a writer that is gone for good, or a postmaster, must not
 * leave us asleep for ever.
 */
extern void gl_gate_check_writer(void);

/* The server is shutting down. */
pg_noreturn extern void gl_gate_raise_closed(void);

#endif							/* GROUPLOG_GATE_H */
