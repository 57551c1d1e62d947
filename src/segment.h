/*-------------------------------------------------------------------------
 *
 * segment.h
 *		The log's directory and its files.
 *
 *	control                 log id and cluster, one block; see control.c
 *	lock                    held by the writer: two servers never share a log
 *	00000001-....seg        segments; see segment_format.h
 *	spare-00000001          spares: zero-filled, synced, a zero header
 *	spare-00000001.tmp      a spare that is not ready
 *	restored                mark: the files came from a base backup
 *
 * Anything else is not ours: it is left alone and named once in the log.
 *
 * Order is everything here.  A file gets its name only when its header is
 * durable, and the directory is synced before anything is acknowledged in it;
 * files go oldest first, the directory synced in between, so that a crash never
 * fakes a gap in the numbers.
 *
 * Functions that can fail fill in a GlError and return false; none raises an
 * error but for memory and interrupts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_SEGMENT_H
#define GROUPLOG_SEGMENT_H

#include "postgres.h"

#include "error.h"
#include "logmap.h"

#define GL_CONTROL_NAME		"control"
#define GL_LOCK_NAME		"lock"
#define GL_RESTORED_NAME	"restored"

/* Ends the name of a file that is not complete yet. */
#define GL_TMP_SUFFIX		".tmp"

/* The control file's contents. */
typedef struct GlControl
{
	uint64		system_identifier;
	uint64		log_id;
	uint64		holes_end;		/* holes below it came with a base backup, or were
								 * accepted by accept_end */
	uint64		last_lsn;		/* first LSN of the newest file ... */
	uint32		last_number;	/* ... and its number: no newer one may be missing */
} GlControl;

/* The writer's copy. */
extern GlControl gl_control;

/* What lies in the directory: every segment's header, and the rest counted. */
typedef struct GlCatalog
{
	uint64		generation;		/* of the directory, when this was read */
	GlLogMap	map;
	int64	   *created;		/* of each entry, TimestampTz */
	GlMapFault	fault;
	bool		sound;			/* gl_map_finish found no fault */

	uint32		bad_headers;	/* numbered files that have no valid header, and
								 * that the log needs */
	uint32		bad_number;		/* the first of them */
	uint64		bad_lsn;		/* its first LSN, by its name */
	GlHeaderCheck bad_check;
	uint32		last_number;	/* the highest number, valid or not */
	uint64		highest_lsn;	/* the highest first LSN in a name, valid or not */

	uint32		strangers;		/* other names */
	char		stranger[64];	/* one of them */
} GlCatalog;

/* A path inside the directory; buf: MAXPGPATH bytes. */
extern void gl_directory_path(char *path, const char *name);
extern void gl_segment_path(char *path, uint32 number, uint64 first_lsn);
extern void gl_spare_path(char *path, uint32 spare, bool ready);

/* Make the directory if there is none, take the lock (kept for the process's
 * life), read the control file.  *exists: there is one. */
extern bool gl_directory_open(GlControl *control, bool *exists, GlError *error);

/* --- control.c --- */

extern bool gl_control_read(GlControl *control, bool *exists, GlError *error);
extern bool gl_control_write(const GlControl *control, GlError *error);

/* --- catalog.c --- */

/*
 * Read the directory and every header.  Allocates in the current context.
 * A file that goes away meanwhile makes it start again.  holes_end: faults below
 * it are known, and are none.
 */
extern GlCatalog *gl_catalog_read(uint64 holes_end, GlError *error);

/* --- segment.c --- */

/* Fill in "could not <what> "<path>"", return false. */
extern bool gl_file_error(GlError *error, int os_error, const char *what, const char *path);

/* Sync a file or directory (by gl_segment_fsync), unless fsync is off: 0 or errno. */
extern int	gl_sync_fd(int fd);

extern bool gl_directory_sync(GlError *error);

/* Exactly the name of a spare, ready or not? */
extern bool gl_spare_name_parse(const char *name, uint32 *number, bool *ready);

/* The marks of a base backup. */
extern void gl_restored_mark_if_backup(void);
extern bool gl_restored_mark_exists(void);
extern bool gl_restored_mark_remove(GlError *error);

/* Remove a file, durably.  freed: its size. */
extern bool gl_segment_remove(uint32 number, uint64 first_lsn, uint64 *freed, GlError *error);

/* The same for every file with a lower number. */
extern bool gl_segment_remove_older(uint32 number, uint64 *freed, GlError *error);

/* Sync a segment, whoever has written it. */
extern bool gl_segment_sync(uint32 number, uint64 first_lsn, GlError *error);

/*
 * Turn a segment into a spare: rename, directory sync, zero header.  *renamed:
 * it is no segment any more, even where the rest has failed.
 */
extern bool gl_segment_recycle(uint32 number, uint64 first_lsn, uint32 spare, bool *renamed,
							   GlError *error);

/* Cut a file that is left behind after its end. */
extern bool gl_segment_trim(uint32 number, uint64 first_lsn, uint64 end, GlError *error);

/* Free bytes on the directory's file system for a process like us. */
extern bool gl_directory_free_bytes(uint64 *free_bytes, GlError *error);

/* Open a file of ours: never through a symbolic link; -1 and errno. */
extern int	gl_open_file(const char *path, int flags);

/*
 * How this process syncs a file or directory: returns 0 or an errno.  A plain
 * fsync, unless the process (the writer) has put something here that handles
 * its interrupts meanwhile.
 */
extern int	(*gl_segment_fsync) (int fd);

#endif							/* GROUPLOG_SEGMENT_H */
