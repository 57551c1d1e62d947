/*-------------------------------------------------------------------------
 *
 * config.h
 *		The settings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_CONFIG_H
#define GROUPLOG_CONFIG_H

#include "postgres.h"

#include "io.h"
#include "sync_policy.h"

typedef enum GlOnFull
{
	GL_ON_FULL_REFUSE,
	GL_ON_FULL_RECYCLE
} GlOnFull;

typedef enum GlSyncMethod
{
	GL_SYNC_OPEN_DATASYNC,		/* direct I/O, O_DSYNC */
	GL_SYNC_FDATASYNC			/* buffered, fdatasync after each group */
} GlSyncMethod;

/* per session */
extern int	gl_sync_mode;		/* GlSyncMode */
extern double gl_group_window;	/* milliseconds */

/* reloadable */
extern int	gl_group_bytes;		/* kB */
extern int	gl_sync_period;		/* ms */
extern int	gl_sync_lag_limit;	/* ms */
extern int	gl_max_size;		/* MB, or -1 */
extern int	gl_on_full;			/* GlOnFull */
extern int	gl_min_free_space;	/* MB */
extern int	gl_log_sync_min_duration;	/* ms, or -1 */

/* at server start */
extern int	gl_buffers;			/* kB */
extern int	gl_segment_size;	/* MB */
extern char *gl_directory;
extern int	gl_io_method;		/* GlIoMethod */
extern int	gl_sync_method;		/* GlSyncMethod */
extern bool gl_adopt;

extern void gl_config_define(void);

/* Ring and segment size in bytes; the ring is never larger than a segment. */
extern uint64 gl_config_ring_size(void);
extern uint64 gl_config_segment_size(void);

/* The disk budget in bytes, at least three segments; PG_UINT64_MAX: none. */
extern uint64 gl_config_max_bytes(void);

/* At least sync_period, in microseconds. */
extern int64 gl_config_lag_limit_us(void);

/* Parse a mode's name; false if there is none of that name. */
extern bool gl_config_parse_mode(const char *name, GlSyncMode *mode);

#endif							/* GROUPLOG_CONFIG_H */
