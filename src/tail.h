/*-------------------------------------------------------------------------
 *
 * tail.h
 *		The end of the log, read and made durable before it is believed.
 *
 * A server that was killed leaves bytes in the page cache that were never
 * synced.  Serving them before they are durable would let a later power cut take
 * back what was read.  So the tail is synced first, and read with direct I/O
 * then.  Where there is no direct I/O, what was read from the cache is written
 * again and synced: after a failed sync the kernel may hold as clean what the
 * disk never got.
 *
 * Direct reads have no read-ahead but ours: while a stretch is checked, the next
 * two are read.  What goes wrong with that is not looked at; who asks for those
 * bytes then reads them again, and hears of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_TAIL_H
#define GROUPLOG_TAIL_H

#include "postgres.h"

#include "error.h"
#include "walk.h"

typedef struct GlTailReader
{
	const GlLogMap *map;
	int64		open_index;		/* of fd, -1: none */
	int			fd;
	bool		direct;			/* until the file system turns out to have none */
	bool		ahead;			/* fd is read ahead of need */
	int64		next_report_us;
} GlTailReader;

/* A GlWalkRead over the files themselves; arg: a GlTailReader. */
extern int64_t gl_tail_read(void *arg, uint32_t index, uint64_t offset, void *buf, uint32_t size);
extern void gl_tail_close(GlTailReader *reader);

/* Make durable what earlier runs gave to the kernel. */
extern bool gl_tail_sync(const GlLogMap *map, GlError *error);

/*
 * Without direct I/O: write once more what may never have reached the disk, at
 * most a ring's worth before the end, and sync it.
 */
extern bool gl_tail_rewrite(const GlLogMap *map, uint64 end, GlError *error);

#endif							/* GROUPLOG_TAIL_H */
