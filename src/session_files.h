/*-------------------------------------------------------------------------
 *
 * session_files.h
 *		The log's files as a session sees them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_SESSION_FILES_H
#define GROUPLOG_SESSION_FILES_H

#include "postgres.h"

#include "segment.h"

/*
 * This session's map of the files, as new as the directory.  It is the session's:
 * the next call may replace it.  Raises an error if it cannot be read.
 */
extern GlCatalog *gl_session_catalog(void);

/* An open file of the log, closed with its memory context. */
typedef struct GlReadFile
{
	const GlLogMap *map;
	int			fd;
	int64		index;			/* of fd in the map, -1: none */
	MemoryContextCallback callback;
} GlReadFile;

/* Nothing is open yet; whatever is open goes with the context. */
extern void gl_read_file_init(GlReadFile *file, MemoryContext context, const GlLogMap *map);
extern void gl_read_file_close(GlReadFile *file);

/* Read from the file of an entry of the map; a GlWalkRead, its arg a GlReadFile. */
extern int64_t gl_read_file(void *arg, uint32_t index, uint64_t offset, void *buf, uint32_t size);

/* A block-aligned buffer in place of the one before; *allocated NULL: there is none. */
extern void *gl_read_buffer(MemoryContext context, void **allocated, uint32 size);

#endif							/* GROUPLOG_SESSION_FILES_H */
