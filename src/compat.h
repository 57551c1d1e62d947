/*-------------------------------------------------------------------------
 *
 * compat.h
 *		Every difference between PostgreSQL versions, in one place.
 *
 * Code elsewhere is written to the newest form; what an older version lacks is
 * supplied here and in compat.c, with the PostgreSQL release that brought it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_COMPAT_H
#define GROUPLOG_COMPAT_H

#include "postgres.h"

#include "access/relscan.h"
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/backend_status.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

#if PG_VERSION_NUM < 140000
#error "grouplog needs PostgreSQL 14 or later"
#endif

/*
 * 15 moved requests for shared memory into a hook of their own (4f2400cb3).
 * Call it in _PG_init; size is called when the server knows its settings.
 */
extern void gl_request_shared_memory(Size (*size) (void));

/*
 * 15 knows MaxBackends when shared memory is requested; in 14 it is 0 until
 * then.
 */
extern int	gl_max_backends(void);

/*
 * 15 has a function for it, where 14 has a variable (e997a0c64).
 */
extern TimeLineID gl_wal_timeline(void);

/*
 * 15 renamed EmitWarningsOnPlaceholders and made it reserve (88103567c).
 */
#if PG_VERSION_NUM < 150000
#define MarkGUCPrefixReserved(prefix) EmitWarningsOnPlaceholders(prefix)
#endif

/*
 * 15 does in one call what a function needs to return rows in a tuplestore
 * (9e98583898); its name is from 15.1 on (a19e5cee63).
 */
#ifndef MAT_SRF_USE_EXPECTED_DESC
extern void InitMaterializedSRF(FunctionCallInfo fcinfo, bits32 flags);
#endif

/*
 * 16 renamed the way to all sessions, one by one.
 */
#if PG_VERSION_NUM < 160000
#define pgstat_get_local_beentry_by_index(index) pgstat_fetch_stat_local_beentry(index)
#endif

/*
 * 17 renamed BackendId to ProcNumber (024c52111) and made it start at 0.
 */
#if PG_VERSION_NUM >= 170000
#include "storage/procnumber.h"
#else
#include "storage/backendid.h"
#define ProcNumber BackendId
#define MyProcNumber MyBackendId
#endif

/*
 * 17 gives a wait event set a resource owner (50c67c201), before that it had a
 * memory context.  This one has no owner, and lies in the current context or, from
 * 17 on, in the top one: it is for the life of a process.
 */
extern WaitEventSet *gl_create_wait_event_set(int nevents);

/*
 * Named wait events for extensions came with 17 (c9af05465); before that every
 * extension waits in the one event "Extension".
 */
typedef enum GlWaitEvent
{
	GL_WAIT_APPEND_DURABLE,		/* a session waits for its record's sync */
	GL_WAIT_APPEND_ROOM,		/* a session waits for room in the ring */
	GL_WAIT_REQUEST,			/* a session waits for the writer to do something */
	GL_WAIT_WRITER_MAIN,		/* the writer has nothing to do */
	GL_WAIT_WRITER_IO			/* the writer waits for a write or sync */
} GlWaitEvent;

/* At each start of shared memory: so no wait has to ask, which may fail. */
extern void gl_wait_events_define(void);

extern uint32 gl_wait_event(GlWaitEvent event);

/*
 * 17 lets an interval be infinite (519fc1bd9).
 */
#ifdef INTERVAL_NOT_FINITE
#define GL_INTERVAL_NOT_FINITE(interval) INTERVAL_NOT_FINITE(interval)
#else
#define GL_INTERVAL_NOT_FINITE(interval) false
#endif

/*
 * 18 replaced pg_attribute_noreturn() by this, which stands in front (28e7a9968).
 */
#ifndef pg_noreturn
#define pg_noreturn _Noreturn
#endif

/*
 * 18 shows a library's name and version in pg_get_loaded_modules() (9324c8c58).
 */
#ifdef PG_MODULE_MAGIC_EXT
#define GL_MODULE_MAGIC(its_name, its_version) \
	PG_MODULE_MAGIC_EXT(.name = (its_name), .version = (its_version))
#else
#define GL_MODULE_MAGIC(its_name, its_version) PG_MODULE_MAGIC
#endif

/*
 * 19 gives a signal handler a second argument, so that this needs a cast.
 */
#ifndef PG_SIG_IGN
#define PG_SIG_IGN				SIG_IGN
#endif

/*
 * 19 writes eight digits behind the slash of an LSN (2633dae2e).  Messages do it as
 * the type pg_lsn does, so that one can be searched for the other.
 */
#if PG_VERSION_NUM >= 190000
#define GL_LSN					"%X/%08X"
#else
#define GL_LSN					"%X/%X"
#endif

/*
 * 19 wants flags where a scan begins.
 */
extern TableScanDesc gl_scan_table(Relation rel, Snapshot snapshot);

#endif							/* GROUPLOG_COMPAT_H */
