/*-------------------------------------------------------------------------
 *
 * stream.c
 *		Whose record it is: the stream id of the current database.
 *
 * CREATE EXTENSION puts 64 random bits into grouplog.main_stream.  The stream's
 * id mixes them with the database's oid: a database made with CREATE DATABASE
 * ... TEMPLATE has a copy of the table, but not the right to read its model's
 * records; and one that takes over an old oid has other random bits.
 *
 * The table is read here, past all privileges, so nobody needs a right on it;
 * nobody but its owner can change it.
 *
 *-------------------------------------------------------------------------
 */
#include "stream.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "commands/extension.h"
#include "compat.h"
#include "miscadmin.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

static uint64 cached_id = 0;	/* 0: not known */
static Oid	cached_relid = InvalidOid;
static bool callback_registered = false;

static void
forget_stream(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == cached_relid)
		cached_id = 0;
}

/* The finaliser of splitmix64: a bijection that spreads every input bit. */
static uint64
mix(uint64 x)
{
	x ^= x >> 30;
	x *= UINT64CONST(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64CONST(0x94d049bb133111eb);
	x ^= x >> 31;
	return x;
}

static uint64
read_stream_id(void)
{
	Oid			nspid = get_namespace_oid("grouplog", true);
	Oid			relid = InvalidOid;
	Relation	rel;
	TableScanDesc scan;
	TupleTableSlot *slot;
	Snapshot	snapshot;
	uint64		id = 0;

	if (OidIsValid(nspid))
		relid = get_relname_relid("main_stream", nspid);
	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"grouplog\" is not installed in this database"),
				 errhint("Run CREATE EXTENSION grouplog.")));

	rel = table_open(relid, AccessShareLock);
	/* The latest, so that an old snapshot does not hide a new extension. */
	snapshot = RegisterSnapshot(IsInParallelMode() ? GetActiveSnapshot() : GetLatestSnapshot());
	slot = table_slot_create(rel, NULL);
	scan = gl_scan_table(rel, snapshot);
	if (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		isnull;
		Datum		value = slot_getattr(slot, 1, &isnull);

		if (!isnull)
			id = (uint64) DatumGetInt64(value);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);

	if (id == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"grouplog.main_stream\" holds no stream id"),
				 errhint("Drop and create extension \"grouplog\" again.")));

	cached_relid = relid;
	return mix(id ^ mix((uint64) MyDatabaseId));
}

uint64
gl_stream_id(void)
{
	if (!callback_registered)
	{
		CacheRegisterRelcacheCallback(forget_stream, (Datum) 0);
		callback_registered = true;
	}

	/* Take in what other sessions did, as opening any table would. */
	if (cached_id != 0)
		AcceptInvalidationMessages();
	if (cached_id == 0)
		cached_id = read_stream_id();
	return cached_id;
}
