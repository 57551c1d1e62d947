/*-------------------------------------------------------------------------
 *
 * compat.h
 *		Every difference between PostgreSQL versions, in one place.
 *
 * Code elsewhere is written to the newest form; what an older version lacks is
 * supplied here, with the PostgreSQL release that brought it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_COMPAT_H
#define GROUPLOG_COMPAT_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/tuplestore.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 140000
#error "grouplog needs PostgreSQL 14 or later"
#endif

/*
 * 17 renamed BackendId to ProcNumber (024c52111) and made it start at 0.
 */
#if PG_VERSION_NUM >= 170000
#include "storage/procnumber.h"
#define GL_MY_PROC_INDEX		((uint32) MyProcNumber)
#else
#include "storage/backendid.h"
#define GL_MY_PROC_INDEX		((uint32) MyBackendId)
#endif

/*
 * 17 gives a wait event set a resource owner (50c67c201).
 */
#if PG_VERSION_NUM >= 170000
#define gl_create_wait_event_set(nevents) CreateWaitEventSet(NULL, (nevents))
#else
#define gl_create_wait_event_set(nevents) CreateWaitEventSet(CurrentMemoryContext, (nevents))
#endif

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

static inline uint32
gl_wait_event(GlWaitEvent event)
{
#if PG_VERSION_NUM >= 170000
	static const char *const names[] = {
		[GL_WAIT_APPEND_DURABLE] = "GrouplogAppendDurable",
		[GL_WAIT_APPEND_ROOM] = "GrouplogAppendRoom",
		[GL_WAIT_REQUEST] = "GrouplogRequest",
		[GL_WAIT_WRITER_MAIN] = "GrouplogWriterMain",
		[GL_WAIT_WRITER_IO] = "GrouplogWriterIO",
	};
	static uint32 known[lengthof(names)];

	if (known[event] == 0)
		known[event] = WaitEventExtensionNew(names[event]);
	return known[event];
#else
	(void) event;
	return PG_WAIT_EXTENSION;
#endif
}

/*
 * 15 moved requests for shared memory into a hook of their own (4f2400cb3).
 */
#if PG_VERSION_NUM >= 150000
#define GL_HAVE_SHMEM_REQUEST_HOOK
#endif

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
static inline void
InitMaterializedSRF(FunctionCallInfo fcinfo, bits32 flags)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext oldcontext;
	TupleDesc	tupdesc;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	if (!(rsinfo->allowedModes & SFRM_Materialize))
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("materialize mode required, but it is not allowed in this context")));

	oldcontext = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setResult =
		tuplestore_begin_heap((rsinfo->allowedModes & SFRM_Materialize_Random) != 0,
							  false, work_mem);
	rsinfo->setDesc = tupdesc;
	MemoryContextSwitchTo(oldcontext);
}
#endif

/*
 * 17 lets an interval be infinite (519fc1bd9).
 */
#ifdef INTERVAL_NOT_FINITE
#define GL_INTERVAL_NOT_FINITE(interval) INTERVAL_NOT_FINITE(interval)
#else
#define GL_INTERVAL_NOT_FINITE(interval) false
#endif

#endif							/* GROUPLOG_COMPAT_H */
