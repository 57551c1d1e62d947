/*-------------------------------------------------------------------------
 *
 * files.h
 *		The writer's files: the list, the file being written, spares, retention.
 *
 * Process-local state of the writer; what others need to know is put into
 * shared memory.  See segment.h for the directory, spares.c for how spares are
 * made ahead of need.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_FILES_H
#define GROUPLOG_FILES_H

#include "postgres.h"

#include "error.h"
#include "segment.h"

/* The file being written; fd < 0: none. */
typedef struct GlCurrentFile
{
	int			fd;
	uint32		number;
	uint64		first_lsn;
	uint64		full_end;
	bool		direct;			/* O_DIRECT */
	bool		dsync;			/* O_DSYNC: a write is a sync */
} GlCurrentFile;

extern GlCurrentFile gl_current;

/* Learn what lies in the directory; gl_control has been read. */
extern void gl_files_start(const GlCatalog *catalog);

/*
 * Take over at first_lsn with a new file: header (with what lies before
 * first_lsn in its block, from the ring), sync, rename, directory sync.
 * end_before: end of the log before it.  Everything before first_lsn is durable
 * already.  May make a spare first.  Takes as long as it takes, handling
 * interrupts.
 */
extern bool gl_files_activate(uint64 first_lsn, uint64 end_before, GlError *error);

/* Drop the file being written without another look at it (it failed). */
extern void gl_files_abandon(void);

/* Close it in peace. */
extern void gl_files_close(void);

/* Set limit_lsn: what claims may use, given the current file and the spares. */
extern void gl_files_set_limit(void);

/* Remove the oldest file if all in it lies before the LSN. */
extern bool gl_files_truncate_one(uint64 before, bool *removed, uint64 *freed, GlError *error);

/* Is there a file that may go to make room: any but the newest? */
extern bool gl_files_recyclable(void);

/* Turn the oldest file into a spare (or remove it, where it is too short). */
extern bool gl_files_recycle_oldest(bool *became_spare, GlError *error);

/*
 * on_full = recycle: over the budget (which may have been lowered) the oldest
 * file goes; one at a call.
 */
extern void gl_files_keep_budget(int64 now_us);

/* Does the newest file end at the LSN because nothing more fits into it? */
extern bool gl_files_newest_full_at(uint64 lsn);

/* What the newest file would give back if it were left now. */
extern uint64 gl_files_slack(void);

/* The bytes of all our files; the wanted size of a spare. */
extern uint64 gl_files_bytes(void);
extern uint64 gl_spare_bytes(void);

/* Sync everything written while fsync was off. */
extern bool gl_files_sync_all(GlError *error);

/* enableFsync changed: open the file being written anew. */
extern bool gl_files_reopen(GlError *error);

#endif							/* GROUPLOG_FILES_H */
