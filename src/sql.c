/*-------------------------------------------------------------------------
 *
 * sql.c
 *		The SQL entry points: argument checks, then a call.
 *
 * Nothing here is STRICT: a NULL where it makes no sense is an error, never a
 * silent no-op, since a caller who gets no error believes that a record was
 * written.
 *
 * grouplog.read() and read_text() are SQL functions over read_records() and
 * read_text_records(), which return one row a call: in a select list (not in
 * FROM, where rows are collected first) the executor asks for as many rows as
 * the query wants and no more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "append.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "compat.h"
#include "config.h"
#include "fmgr.h"
#include "durable.h"
#include "funcapi.h"
#include "gate.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "reader.h"
#include "request.h"
#include "shared.h"
#include "stream.h"
#include "tcop/utility.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "verify.h"

PG_FUNCTION_INFO_V1(grouplog_append_bytea);
PG_FUNCTION_INFO_V1(grouplog_append_text);
PG_FUNCTION_INFO_V1(grouplog_append_batch);
PG_FUNCTION_INFO_V1(grouplog_append_batch_text);
PG_FUNCTION_INFO_V1(grouplog_append_async_bytea);
PG_FUNCTION_INFO_V1(grouplog_append_async_text);
PG_FUNCTION_INFO_V1(grouplog_wait_durable);
PG_FUNCTION_INFO_V1(grouplog_flush);
PG_FUNCTION_INFO_V1(grouplog_read_records);
PG_FUNCTION_INFO_V1(grouplog_read_text_records);
PG_FUNCTION_INFO_V1(grouplog_sync_mode);
PG_FUNCTION_INFO_V1(grouplog_set_sync_mode);
PG_FUNCTION_INFO_V1(grouplog_truncate);
PG_FUNCTION_INFO_V1(grouplog_verify);
PG_FUNCTION_INFO_V1(grouplog_accept_end);
PG_FUNCTION_INFO_V1(grouplog_stat_reset);

/* A read in progress; lives in the multi-call context. */
typedef struct ReadState
{
	GlReader   *reader;
	int64		remaining;		/* rows that may still be returned; < 0: no limit */
} ReadState;

static void
require_not_null(FunctionCallInfo fcinfo, int arg, const char *what)
{
	if (PG_ARGISNULL(arg))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", what)));
}

/* For what takes records away: the design leaves no right to grant for it. */
static void
require_superuser(const char *function)
{
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to call %s", function)));
}

static GlSyncMode
parse_mode(text *name)
{
	char	   *mode_name = text_to_cstring(name);
	GlSyncMode	mode;

	if (!gl_config_parse_mode(mode_name, &mode))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown sync mode \"%s\"", mode_name),
				 errhint("Sync modes are periodic, batch, group and adaptive.")));
	return mode;
}

/* The optional argument sync, or else the session's mode. */
static GlSyncMode
mode_argument(FunctionCallInfo fcinfo, int arg)
{
	if (PG_NARGS() <= arg)
		return (GlSyncMode) gl_sync_mode;
	require_not_null(fcinfo, arg, "sync mode");
	return parse_mode(PG_GETARG_TEXT_PP(arg));
}

/*
 * Appending
 */

static Datum
append_one(FunctionCallInfo fcinfo, uint8 flags, bool wait)
{
	GlSyncMode	mode;
	GlPayload	payload;
	struct varlena *value;

	gl_gate_check_allowed("append to");
	require_not_null(fcinfo, 0, "payload");
	mode = mode_argument(fcinfo, 1);

	value = PG_GETARG_VARLENA_PP(0);
	payload.data = VARDATA_ANY(value);
	payload.size = VARSIZE_ANY_EXHDR(value);

	PG_RETURN_LSN(gl_append(&payload, 1, flags, mode, wait));
}

Datum
grouplog_append_bytea(PG_FUNCTION_ARGS)
{
	return append_one(fcinfo, 0, true);
}

Datum
grouplog_append_text(PG_FUNCTION_ARGS)
{
	return append_one(fcinfo, GL_RECORD_TEXT, true);
}

Datum
grouplog_append_async_bytea(PG_FUNCTION_ARGS)
{
	return append_one(fcinfo, 0, false);
}

Datum
grouplog_append_async_text(PG_FUNCTION_ARGS)
{
	return append_one(fcinfo, GL_RECORD_TEXT, false);
}

/*
 * The payloads stay where they are, inside the detoasted array: a batch of a
 * thousand records of 1 MB costs that one copy and 16 bytes a record.
 */
static Datum
append_array(FunctionCallInfo fcinfo, uint8 flags)
{
	GlSyncMode	mode;
	ArrayType  *array;
	ArrayIterator iterator;
	Datum		value;
	bool		isnull;
	int64		count;
	int64		filled = 0;
	GlPayload  *payloads;

	gl_gate_check_allowed("append to");
	require_not_null(fcinfo, 0, "array of payloads");
	mode = mode_argument(fcinfo, 1);

	array = PG_GETARG_ARRAYTYPE_P(0);
	count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	if (count == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("array of payloads must not be empty")));
	if (ARR_NDIM(array) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("array of payloads must have one dimension"),
				 errdetail("It has %d dimensions.", ARR_NDIM(array))));

	payloads = palloc_extended(count * sizeof(GlPayload), MCXT_ALLOC_HUGE);
	iterator = array_create_iterator(array, 0, NULL);
	while (array_iterate(iterator, &value, &isnull))
	{
		struct varlena *element;

		if (isnull)
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("payload must not be null"),
					 errdetail("Element %lld of the array is null; nothing was appended.",
							   (long long) filled + ARR_LBOUND(array)[0])));

		/* elements are plain inside an array, so this copies nothing */
		element = PG_DETOAST_DATUM_PACKED(value);
		payloads[filled].data = VARDATA_ANY(element);
		payloads[filled].size = VARSIZE_ANY_EXHDR(element);
		filled++;
	}
	array_free_iterator(iterator);
	Assert(filled == count);

	PG_RETURN_LSN(gl_append(payloads, count, flags, mode, true));
}

Datum
grouplog_append_batch(PG_FUNCTION_ARGS)
{
	return append_array(fcinfo, 0);
}

Datum
grouplog_append_batch_text(PG_FUNCTION_ARGS)
{
	return append_array(fcinfo, GL_RECORD_TEXT);
}

/*
 * Waiting
 */

/* A month counts as 30 days, as where PostgreSQL compares intervals. */
static int64
timeout_us(const Interval *timeout)
{
	int64		days;
	int64		total;

	days = (int64) timeout->month * DAYS_PER_MONTH + timeout->day;
	if (GL_INTERVAL_NOT_FINITE(timeout) ||
		pg_mul_s64_overflow(days, USECS_PER_DAY, &total) ||
		pg_add_s64_overflow(total, timeout->time, &total))
		ereport(ERROR,
				(errcode(ERRCODE_INTERVAL_FIELD_OVERFLOW),
				 errmsg("timeout is out of range"),
				 errhint("A timeout of null means to wait without a limit.")));
	if (total < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("timeout must not be negative"),
				 errhint("A timeout of null means to wait without a limit.")));

	/* leave room for adding it to a clock */
	return Min(total, PG_INT64_MAX / 2);
}

Datum
grouplog_wait_durable(PG_FUNCTION_ARGS)
{
	int64		timeout = -1;

	gl_gate_check_loaded();
	require_not_null(fcinfo, 0, "LSN");
	if (!PG_ARGISNULL(1))
		timeout = timeout_us(PG_GETARG_INTERVAL_P(1));

	PG_RETURN_BOOL(gl_wait_durable(PG_GETARG_LSN(0), timeout));
}

Datum
grouplog_flush(PG_FUNCTION_ARGS)
{
	gl_gate_check_loaded();
	PG_RETURN_LSN(gl_flush());
}

/*
 * Reading
 */

/* Stored bytes may be anything; as text they must be text of this database. */
static text *
record_text(const GlWalkRecord *record)
{
	const char *data = (const char *) record->payload;
	int			size = (int) record->payload_size;
	int			valid = pg_encoding_verifymbstr(GetDatabaseEncoding(), data, size);

	if (valid != size)
		ereport(ERROR,
				(errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
				 errmsg("record at " GL_LSN " is not valid text in encoding \"%s\"",
						LSN_FORMAT_ARGS(record->lsn), GetDatabaseEncodingName()),
				 errdetail("The byte 0x%02x at offset %d does not fit.",
						   (unsigned char) data[valid], valid),
				 errhint("Use grouplog.read to read it as bytea.")));
	return cstring_to_text_with_len(data, size);
}

static ReadState *
read_begin(FunctionCallInfo fcinfo, FuncCallContext *funcctx)
{
	MemoryContext oldcontext;
	ReadState  *state;
	TupleDesc	tupdesc;
	int64		limit = -1;
	uint64		stream;

	if (!PG_ARGISNULL(1))
	{
		limit = PG_GETARG_INT64(1);
		if (limit < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("max_records must not be negative"),
					 errhint("A max_records of null means no limit.")));
	}
	stream = gl_stream_id();

	oldcontext = MemoryContextSwitchTo(funcctx->multi_call_memory_ctx);
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	funcctx->tuple_desc = BlessTupleDesc(tupdesc);

	state = palloc(sizeof(ReadState));
	state->remaining = limit;
	state->reader = gl_reader_begin(funcctx->multi_call_memory_ctx, stream,
									PG_ARGISNULL(0) ? 0 : PG_GETARG_LSN(0),
									PG_ARGISNULL(0));
	MemoryContextSwitchTo(oldcontext);
	return state;
}

/*
 * One row a call.  A query that stops asking (LIMIT, a closed cursor, an error)
 * leaves the reader to the multi-call context, which goes with the query.
 */
static Datum
read_next(FunctionCallInfo fcinfo, bool as_text)
{
	FuncCallContext *funcctx;
	ReadState  *state;
	GlWalkRecord record;
	Datum		values[3];
	bool		nulls[3] = {false, false, false};

	if (SRF_IS_FIRSTCALL())
	{
		gl_gate_check_loaded();
		funcctx = SRF_FIRSTCALL_INIT();
		funcctx->user_fctx = read_begin(fcinfo, funcctx);
	}
	funcctx = SRF_PERCALL_SETUP();
	state = funcctx->user_fctx;

	if (state->remaining == 0 || !gl_reader_next(state->reader, &record))
	{
		gl_reader_end(state->reader);
		SRF_RETURN_DONE(funcctx);
	}
	if (state->remaining > 0)
		state->remaining--;

	values[0] = LSNGetDatum(record.lsn);
	values[1] = TimestampTzGetDatum(record.header->time);
	if (as_text)
		values[2] = PointerGetDatum(record_text(&record));
	else
		values[2] = PointerGetDatum(cstring_to_text_with_len((const char *) record.payload,
															 record.payload_size));

	SRF_RETURN_NEXT(funcctx,
					HeapTupleGetDatum(heap_form_tuple(funcctx->tuple_desc, values, nulls)));
}

Datum
grouplog_read_records(PG_FUNCTION_ARGS)
{
	return read_next(fcinfo, false);
}

Datum
grouplog_read_text_records(PG_FUNCTION_ARGS)
{
	return read_next(fcinfo, true);
}

/*
 * The sync mode
 */

Datum
grouplog_sync_mode(PG_FUNCTION_ARGS)
{
	gl_gate_check_loaded();
	PG_RETURN_TEXT_P(cstring_to_text(gl_sync_mode_name((GlSyncMode) gl_sync_mode)));
}

Datum
grouplog_set_sync_mode(PG_FUNCTION_ARGS)
{
	GlSyncMode	before;
	GlSyncMode	mode;
	char	   *scope;
	GucAction	action;

	gl_gate_check_loaded();
	require_not_null(fcinfo, 0, "sync mode");
	require_not_null(fcinfo, 1, "scope");
	before = (GlSyncMode) gl_sync_mode;
	mode = parse_mode(PG_GETARG_TEXT_PP(0));

	scope = text_to_cstring(PG_GETARG_TEXT_PP(1));
	if (pg_strcasecmp(scope, "session") == 0)
		action = GUC_ACTION_SET;
	else if (pg_strcasecmp(scope, "transaction") == 0)
		action = GUC_ACTION_LOCAL;
	else
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown scope \"%s\"", scope),
				 errdetail("Scopes are transaction and session."),
				 errhint("For more than a session, use ALTER SYSTEM SET grouplog.sync_mode = '%s', "
						 "ALTER DATABASE ... SET or ALTER ROLE ... SET.",
						 gl_sync_mode_name(mode))));

	(void) set_config_option("grouplog.sync_mode", gl_sync_mode_name(mode),
							 superuser() ? PGC_SUSET : PGC_USERSET, PGC_S_SESSION,
							 action, true, 0, false);

	PG_RETURN_TEXT_P(cstring_to_text(gl_sync_mode_name(before)));
}

/*
 * Maintenance
 */

Datum
grouplog_truncate(PG_FUNCTION_ARGS)
{
	gl_gate_check_loaded();
	require_superuser("grouplog.truncate");
	PreventCommandIfReadOnly("grouplog.truncate");
	require_not_null(fcinfo, 0, "LSN");

	PG_RETURN_INT64((int64) gl_request(GL_REQUEST_TRUNCATE, PG_GETARG_LSN(0)));
}

Datum
grouplog_accept_end(PG_FUNCTION_ARGS)
{
	gl_gate_check_loaded();
	require_superuser("grouplog.accept_end");
	PreventCommandIfReadOnly("grouplog.accept_end");
	require_not_null(fcinfo, 0, "LSN");

	(void) gl_request(GL_REQUEST_ACCEPT_END, PG_GETARG_LSN(0));
	PG_RETURN_VOID();
}

Datum
grouplog_verify(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	GlSegmentReport *reports;
	int			count;

	gl_gate_check_loaded();
	InitMaterializedSRF(fcinfo, 0);

	reports = gl_segment_reports(true, &count);
	for (int i = 0; i < count; i++)
	{
		const GlSegmentReport *report = &reports[i];
		char		file[GL_SEGMENT_NAME_SIZE];
		Datum		values[9];
		bool		nulls[9] = {false};
		int			n = 0;

		gl_segment_name(file, report->number, report->first_lsn);
		values[n++] = Int64GetDatum(report->number);
		values[n++] = CStringGetTextDatum(file);
		values[n++] = LSNGetDatum(report->first_lsn);
		values[n++] = LSNGetDatum(report->end_lsn);
		values[n++] = Int64GetDatum((int64) report->file_bytes);
		values[n++] = Int64GetDatum((int64) report->records);
		values[n++] = BoolGetDatum(report->ok);
		nulls[n] = report->ok;
		values[n++] = LSNGetDatum(report->bad_lsn);
		nulls[n] = report->ok;
		values[n++] = CStringGetTextDatum(report->reason);
		Assert(n == lengthof(values));

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

Datum
grouplog_stat_reset(PG_FUNCTION_ARGS)
{
	gl_gate_check_loaded();
	gl_stats_init(&gl_shared->stats);
	PG_RETURN_VOID();
}
