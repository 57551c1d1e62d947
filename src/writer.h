/*-------------------------------------------------------------------------
 *
 * writer.h
 *		The background worker that writes and syncs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_WRITER_H
#define GROUPLOG_WRITER_H

#include "postgres.h"

/* Called while shared_preload_libraries are loaded. */
extern void gl_writer_register(void);

/* Entry point of the worker. */
extern PGDLLEXPORT void grouplog_writer_main(Datum arg);

#endif							/* GROUPLOG_WRITER_H */
