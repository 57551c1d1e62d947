/*-------------------------------------------------------------------------
 *
 * logmap.h
 *		Which file holds which part of the log.
 *
 * The log is one address space; its files cover it like this (numbers rise
 * from left to right):
 *
 *	   #1            #2            #3 (continuation)      #4 (new run)
 *	|========-------------|                                            full size
 *	                      |=========~~~~~|                             left behind
 *	                              |==============-------|
 *	                                                        |=====
 *	                              ^ block floor of #3's first LSN
 *
 * #3 took over in the middle of #2 after a failed write: it repeats the bytes
 * of its first block before its first LSN, so from the block's floor on it is
 * the authority (later wins).  Between the end of the run that ended in #3 and
 * the start of #4 there is nothing, and nothing is parsed.
 *
 * So a file is the authority for [base, end): base is its first LSN rounded
 * down to a block for a continuation (a file with the epoch of the file before
 * it), its first LSN otherwise; end is the smallest of its own full end and,
 * over all later files, of end_before (a new run) or base (the same run).
 * end may be <= base: then the file is dead.
 *
 * Pure: no server headers, no allocation (the caller gives the array).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_LOGMAP_H
#define GROUPLOG_LOGMAP_H

#include "segment_format.h"

/* One file, from its header. */
typedef struct GlMapEntry
{
	uint32_t	number;
	bool		starts_run;		/* derived: the first file of a server run */
	uint64_t	first_lsn;
	uint64_t	end_before;
	uint64_t	segment_size;
	uint64_t	ring_size;
	uint64_t	nonce_before;
	uint32_t	follows;		/* the number of the file before, by the header */
	GlSeed		seed;
	uint64_t	file_size;		/* bytes, as the file system says */
	uint64_t	base;			/* derived: authority from here ... */
	uint64_t	end;			/* derived: ... to here; of the newest, its full end */
} GlMapEntry;

typedef struct GlLogMap
{
	GlMapEntry *entries;		/* in the order of their numbers */
	uint32_t	count;
} GlLogMap;

/* Copy what matters from a checked header. */
extern void gl_map_entry_from_header(GlMapEntry *entry, const GlSegmentHeader *header,
									 uint64_t file_size);

typedef enum GlMapProblem
{
	GL_MAP_OK = 0,
	GL_MAP_GAP,					/* a number is missing */
	GL_MAP_CHAIN,				/* nonce_before is not the nonce of the file before */
	GL_MAP_ORDER,				/* first LSN or end_before at odds with the file before */
	GL_MAP_OTHER_LOG,			/* another log id */
	GL_MAP_SHORT				/* a file, not the newest, ends before its log does */
} GlMapProblem;

typedef struct GlMapFault
{
	GlMapProblem problem;
	uint32_t	index;			/* of the entry at fault (GAP: the one after the gap) */
	uint64_t	lsn;			/* the first LSN that is affected */
} GlMapFault;

/*
 * Derive starts_run, base and end of every entry, then check the chain.
 * Derivation always completes; the first problem (lowest LSN) is returned in
 * *fault.  Entries must be sorted by number.  Dead files excuse the gaps, the
 * shortness and the chain problems that lie wholly in what they no longer
 * answer for.
 */
extern bool gl_map_finish(GlLogMap *map, GlMapFault *fault);

/*
 * The first problem of a finished map that begins at or after this LSN, as
 * gl_map_finish reports it.
 */
extern bool gl_map_check(const GlLogMap *map, uint64_t from, GlMapFault *fault);

/*
 * The same where holes below this LSN are accepted (who restored a base backup, or
 * ended the log behind a fault, knows how far they go): what begins below it and
 * ends beyond is reported at this LSN.
 */
extern bool gl_map_check_beyond(const GlLogMap *map, uint64_t holes_end, GlMapFault *fault);

/* Does the file answer for anything? */
static inline bool
gl_map_is_live(const GlMapEntry *entry)
{
	return entry->base < entry->end;
}

/*
 * The entry that is the authority for this LSN, or, where nothing is, the one
 * for the lowest LSN above it (*lsn is moved there).  Returns false at the end
 * of the map.
 */
extern bool gl_map_find(const GlLogMap *map, uint64_t *lsn, uint32_t *index);

/*
 * Was this LSN in no file's authority although below the newest file's end and
 * not below the oldest one's first LSN: handed out perhaps, and lost in a crash?
 */
extern bool gl_map_lost(const GlLogMap *map, uint64_t lsn);

extern const char *gl_map_problem_name(GlMapProblem problem);

#endif							/* GROUPLOG_LOGMAP_H */
