/*-------------------------------------------------------------------------
 *
 * verify.h
 *		Reports on the log's files.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_VERIFY_H
#define GROUPLOG_VERIFY_H

#include "postgres.h"

/* One file of the log, for grouplog.segments and verify(). */
typedef struct GlSegmentReport
{
	uint32		number;
	uint64		first_lsn;
	uint64		end_lsn;		/* where its authority ends; of the newest, the durable LSN */
	uint64		file_bytes;
	int64		created;		/* TimestampTz */
	bool		current;		/* being written */
	uint64		records;		/* verify: data records of every stream */
	bool		ok;				/* verify */
	uint64		bad_lsn;		/* verify: 0 if ok */
	char		reason[160];	/* verify: "" if ok */
} GlSegmentReport;

/*
 * All files in order, palloc'd; *count says how many.  check: read and check
 * every byte (checks for interrupts as it goes).
 */
extern GlSegmentReport *gl_segment_reports(bool check, int *count);

#endif							/* GROUPLOG_VERIFY_H */
