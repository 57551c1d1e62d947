/*-------------------------------------------------------------------------
 *
 * recovery.h
 *		Find the end of the log, and say what it means.
 *
 * A file becomes a numbered segment only when everything before its first LSN
 * is durable.  So only the newest file (with the files that it continues, back
 * to the last one that ended full) can hold the end; the older ones are checked
 * by their headers, chain and sizes (logmap.h).  Let X be the first invalid
 * record in it.
 *
 *	- A later valid record whose undurable distance says that bytes at or after
 *	  X were durable when it was claimed, or that lies further beyond X than the
 *	  ring is large: X was durable once, and is lost.  CORRUPT.
 *	- Otherwise nothing shows that X was acknowledged.  The log ends at X.  TORN
 *	  if bytes follow that are not zero, EMPTY_TAIL if not.
 *
 * Under `restored` (the files came from a base backup, which is a torn copy)
 * holes are counted, not believed: the log ends after the last valid record of
 * the newest file that has one.
 *
 * Pure: no server headers, no allocation, no clock; memory is the caller's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_RECOVERY_H
#define GROUPLOG_RECOVERY_H

#include "walk.h"

typedef enum GlRecoveryVerdict
{
	GL_RECOVERY_NEW,			/* no segment at all */
	GL_RECOVERY_CLEAN,			/* ends with a close record, nothing after it */
	GL_RECOVERY_UNCLEAN,		/* ends at a record's end; zeros after it */
	GL_RECOVERY_TORN,			/* other bytes after it; nothing shows they were acknowledged */
	GL_RECOVERY_CORRUPT,		/* something durable is lost */
	GL_RECOVERY_READ_ERROR,		/* the device would not say */
	GL_RECOVERY_BUFFER_TOO_SMALL	/* buf_needed; call again with a larger buffer */
} GlRecoveryVerdict;

typedef struct GlRecoveryResult
{
	GlRecoveryVerdict verdict;
	uint64_t	end_lsn;		/* where the log ends: X, or after the last record */
	uint64_t	valid_end;		/* end of the last valid record anywhere; >= end_lsn
								 * only when CORRUPT, else equal */
	uint64_t	next_lsn;		/* the first LSN that no one can have been handed */
	uint64_t	last_lsn;		/* of the last record before end_lsn in the walked files, 0 if none */
	int64_t		last_time;		/* largest record time seen, 0 if none */
	uint64_t	records;		/* valid ones before end_lsn in the walked files */
	uint64_t	records_behind; /* TORN: whole records among them; nothing shows that
								 * they, or what is missing before them, were durable */
	uint64_t	bytes_behind;	/* TORN: bytes from X to the last nonzero byte */
	uint64_t	holes;			/* restored: invalid stretches passed over */
	uint64_t	holes_end;		/* restored: end of the last of them, 0 if none */

	/*
	 * CORRUPT and READ_ERROR: where, and why.  If the map is at fault, after the
	 * last whole record before the fault.
	 */
	uint64_t	bad_lsn;
	uint32_t	bad_index;		/* entry in the map */
	GlRecordCheck bad_check;	/* GL_RECORD_OK when the map itself is at fault ... */
	GlMapProblem bad_map;		/* ... for this reason */
	int			error;			/* errno */
	uint32_t	buf_needed;
} GlRecoveryResult;

/* Called after every few MB: bytes checked so far.  May be NULL. */
typedef void (*GlRecoveryProgress) (void *arg, uint64_t bytes_done, uint64_t bytes_total);

/*
 * map is finished (gl_map_finish) and fault is what that said.  buf: as for
 * gl_walk_init; 1 MB is a good size.
 *
 * If the newest file begins a run and has no record, end_lsn is its end_before:
 * the log ends where the run before it ended.
 *
 * next_lsn = the first multiple of segment_size at or beyond ring_size + the
 * largest of valid_end, the end of the last whole record seen behind it and the
 * newest file's first LSN (unless the log was closed: where that file would be
 * full), with segment_size the one of the coming run and ring_size the largest in
 * the headers of the run that ended; never below segment_size.
 *
 * restored: missing files and short ones are holes, too; after the first start
 * the caller asks gl_map_check_beyond for faults beyond holes_end only.
 */
extern void gl_recovery_run(const GlLogMap *map, const GlMapFault *fault, bool restored,
							uint64_t next_segment_size,
							GlWalkRead read, void *arg, void *buf, uint32_t buf_size,
							GlRecoveryProgress progress, GlRecoveryResult *result);

extern const char *gl_recovery_verdict_name(GlRecoveryVerdict verdict);

#endif							/* GROUPLOG_RECOVERY_H */
