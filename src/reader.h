/*-------------------------------------------------------------------------
 *
 * reader.h
 *		Bounded reads, up to the durable LSN.
 *
 * A reader walks the files by itself, in chunks, with a walk of its own; it
 * takes no lock.  Files may be removed under it: it looks at the oldest LSN
 * again after each read, before it believes what it read or calls it corrupt.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_READER_H
#define GROUPLOG_READER_H

#include "postgres.h"

#include "walk.h"

typedef struct GlReader GlReader;

/*
 * Read the records of a stream with an LSN above `after`.  after_is_null: from
 * the oldest record there is.  Errors: an LSN past the end; one whose
 * successors were removed; a log that is not open.  Everything is allocated in
 * context, and given back with it (files too).
 */
extern GlReader *gl_reader_begin(MemoryContext context, uint64 stream,
								 uint64 after, bool after_is_null);

/*
 * The next record of the stream, or false at the end (the durable LSN when the
 * reader began).  What record points to is valid until the next call.  Raises
 * an error at a corrupt record (data_corrupted, naming LSN and file).
 */
extern bool gl_reader_next(GlReader *reader, GlWalkRecord *record);

extern void gl_reader_end(GlReader *reader);

/* An LSN below this run's first: did a crash take what may have been there? */
extern bool gl_reader_lsn_lost(uint64 lsn);

/* Does the log begin after this LSN, and nothing of it was ever removed? */
extern bool gl_reader_lsn_before_log(uint64 lsn);

#endif							/* GROUPLOG_READER_H */
