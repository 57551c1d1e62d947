/*-------------------------------------------------------------------------
 *
 * compat.c
 *		What compat.h cannot say in a macro.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tableam.h"
#include "access/xlog.h"
#include "postmaster/autovacuum.h"
#include "replication/walsender.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/tuplestore.h"
#include "utils/wait_event.h"

/* ----- 15: shmem_request_hook, MaxBackends, GetWALInsertionTimeLine ----- */

#if PG_VERSION_NUM >= 150000

static Size (*requested_size) (void);
static shmem_request_hook_type prev_shmem_request_hook = NULL;

static void
request_shared_memory(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(requested_size());
}

void
gl_request_shared_memory(Size (*size) (void))
{
	requested_size = size;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
}

int
gl_max_backends(void)
{
	return MaxBackends;
}

TimeLineID
gl_wal_timeline(void)
{
	return GetWALInsertionTimeLine();
}

#else

void
gl_request_shared_memory(Size (*size) (void))
{
	RequestAddinShmemSpace(size());
}

/* As the server itself will count them. */
int
gl_max_backends(void)
{
	if (MaxBackends > 0)
		return MaxBackends;
	return MaxConnections + autovacuum_max_workers + 1 + max_worker_processes + max_wal_senders;
}

/* Set in every process that has found out that the server is not in recovery. */
TimeLineID
gl_wal_timeline(void)
{
	return ThisTimeLineID;
}

#endif

/* ----- 15.1: InitMaterializedSRF ----- */

#ifndef MAT_SRF_USE_EXPECTED_DESC

void
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

/* ----- 17: the owner of a wait event set ----- */

WaitEventSet *
gl_create_wait_event_set(int nevents)
{
#if PG_VERSION_NUM >= 170000
	return CreateWaitEventSet(NULL, nevents);
#else
	return CreateWaitEventSet(CurrentMemoryContext, nevents);
#endif
}

/* ----- 17: named wait events ----- */

#if PG_VERSION_NUM >= 170000

static const char *const wait_event_names[] = {
	[GL_WAIT_APPEND_DURABLE] = "GrouplogAppendDurable",
	[GL_WAIT_APPEND_ROOM] = "GrouplogAppendRoom",
	[GL_WAIT_REQUEST] = "GrouplogRequest",
	[GL_WAIT_WRITER_MAIN] = "GrouplogWriterMain",
	[GL_WAIT_WRITER_IO] = "GrouplogWriterIO",
};

/* set in the postmaster, inherited by all its children */
static uint32 wait_events[lengthof(wait_event_names)];

void
gl_wait_events_define(void)
{
	for (int i = 0; i < lengthof(wait_event_names); i++)
		wait_events[i] = WaitEventExtensionNew(wait_event_names[i]);
}

uint32
gl_wait_event(GlWaitEvent event)
{
	return wait_events[event];
}

#else

void
gl_wait_events_define(void)
{
}

uint32
gl_wait_event(GlWaitEvent event)
{
	return PG_WAIT_EXTENSION;
}

#endif

/* ----- 19: flags of a scan ----- */

TableScanDesc
gl_scan_table(Relation rel, Snapshot snapshot)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan(rel, snapshot, 0, NULL, 0);
#else
	return table_beginscan(rel, snapshot, 0, NULL);
#endif
}
