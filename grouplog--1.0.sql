/* grouplog--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION grouplog" to load this file. \quit

/*
 * The script makes the schema itself, so that nobody can have prepared one.
 * Every name is qualified, nothing is replaced, and no function of the library
 * is called: it may not be preloaded (yet).
 *
 * C functions are not STRICT: a NULL where it makes no sense is an error.
 */
CREATE SCHEMA grouplog;
COMMENT ON SCHEMA grouplog IS 'durable append-only log with group commit';

/*
 * Whose record it is: 64 random bits that stand in every record of this
 * database.  32 bits are taken from each of two UUIDs, from where a UUID has
 * neither version nor variant.  Read by the library alone.
 */
CREATE TABLE grouplog.main_stream (
  id bigint NOT NULL CHECK (id OPERATOR(pg_catalog.<>) 0)
);
COMMENT ON TABLE grouplog.main_stream IS
'internal: id of this database''s stream of records, one row; records are lost from view if it changes';
COMMENT ON COLUMN grouplog.main_stream.id IS
'random bits, drawn at CREATE EXTENSION';

INSERT INTO grouplog.main_stream (id)
SELECT CAST(CAST(pg_catalog.concat('x',
    pg_catalog.substr(CAST(pg_catalog.gen_random_uuid() AS pg_catalog.text), 1, 8),
    pg_catalog.substr(CAST(pg_catalog.gen_random_uuid() AS pg_catalog.text), 1, 8))
  AS bit(64)) AS bigint);

/*
 * Appending.  UNSAFE keeps it out of parallel plans.  Each form with and
 * without sync is a function of its own: a default would make calls ambiguous.
 */
CREATE FUNCTION grouplog.append(payload pg_catalog.bytea)
RETURNS pg_catalog.pg_lsn
AS 'MODULE_PATHNAME', 'grouplog_append_bytea'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.append(pg_catalog.bytea) IS
'append one record in the session''s sync mode; returns its LSN; not undone by ROLLBACK';

CREATE FUNCTION grouplog.append(payload pg_catalog.text)
RETURNS pg_catalog.pg_lsn
AS 'MODULE_PATHNAME', 'grouplog_append_text'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.append(pg_catalog.text) IS
'append one record in the session''s sync mode; returns its LSN; not undone by ROLLBACK';

CREATE FUNCTION grouplog.append(payload pg_catalog.bytea, sync pg_catalog.text)
RETURNS pg_catalog.pg_lsn
AS 'MODULE_PATHNAME', 'grouplog_append_bytea'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.append(pg_catalog.bytea, pg_catalog.text) IS
'append one record in the named sync mode; returns its LSN; not undone by ROLLBACK';

CREATE FUNCTION grouplog.append(payload pg_catalog.text, sync pg_catalog.text)
RETURNS pg_catalog.pg_lsn
AS 'MODULE_PATHNAME', 'grouplog_append_text'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.append(pg_catalog.text, pg_catalog.text) IS
'append one record in the named sync mode; returns its LSN; not undone by ROLLBACK';

CREATE FUNCTION grouplog.append_batch(payloads pg_catalog.bytea[])
RETURNS pg_catalog.pg_lsn
AS 'MODULE_PATHNAME', 'grouplog_append_batch'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.append_batch(pg_catalog.bytea[]) IS
'append every element of a one-dimensional array, in order, with one wait; returns the last LSN; not atomic';

CREATE FUNCTION grouplog.append_batch(payloads pg_catalog.bytea[], sync pg_catalog.text)
RETURNS pg_catalog.pg_lsn
AS 'MODULE_PATHNAME', 'grouplog_append_batch'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.append_batch(pg_catalog.bytea[], pg_catalog.text) IS
'append every element of a one-dimensional array, in order, with one wait in the named sync mode; returns the last LSN; not atomic';

CREATE FUNCTION grouplog.append_batch_text(payloads pg_catalog.text[])
RETURNS pg_catalog.pg_lsn
AS 'MODULE_PATHNAME', 'grouplog_append_batch_text'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.append_batch_text(pg_catalog.text[]) IS
'append every element of a one-dimensional array, in order, with one wait; returns the last LSN; not atomic';

CREATE FUNCTION grouplog.append_batch_text(payloads pg_catalog.text[], sync pg_catalog.text)
RETURNS pg_catalog.pg_lsn
AS 'MODULE_PATHNAME', 'grouplog_append_batch_text'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.append_batch_text(pg_catalog.text[], pg_catalog.text) IS
'append every element of a one-dimensional array, in order, with one wait in the named sync mode; returns the last LSN; not atomic';

CREATE FUNCTION grouplog.append_async(payload pg_catalog.bytea)
RETURNS pg_catalog.pg_lsn
AS 'MODULE_PATHNAME', 'grouplog_append_async_bytea'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.append_async(pg_catalog.bytea) IS
'append one record without waiting until it is durable; returns its LSN, for wait_durable';

CREATE FUNCTION grouplog.append_async(payload pg_catalog.text)
RETURNS pg_catalog.pg_lsn
AS 'MODULE_PATHNAME', 'grouplog_append_async_text'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.append_async(pg_catalog.text) IS
'append one record without waiting until it is durable; returns its LSN, for wait_durable';

CREATE FUNCTION grouplog.wait_durable(lsn pg_catalog.pg_lsn, timeout interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'grouplog_wait_durable'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.wait_durable(pg_catalog.pg_lsn, interval) IS
'wait until the record at this LSN is durable; false on timeout; a timeout of null waits without a limit';

CREATE FUNCTION grouplog.flush()
RETURNS pg_catalog.pg_lsn
AS 'MODULE_PATHNAME', 'grouplog_flush'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.flush() IS
'make every record appended so far durable now; returns the LSN of the last durable record, 0/0 if there is none';

/*
 * Reading.  A set-returning function in FROM is collected whole before the
 * first row is seen.  In a select list it is asked for row by row, so read and
 * read_text are SQL functions that the planner inlines into such a query.
 */
CREATE FUNCTION grouplog.read_records(after pg_catalog.pg_lsn, max_records bigint,
  OUT lsn pg_catalog.pg_lsn,
  OUT recorded_at timestamp with time zone,
  OUT payload pg_catalog.bytea)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'grouplog_read_records'
LANGUAGE C STABLE PARALLEL RESTRICTED;
COMMENT ON FUNCTION grouplog.read_records(pg_catalog.pg_lsn, bigint) IS
'internal: beneath grouplog.read, whose readers need EXECUTE on it';

CREATE FUNCTION grouplog.read_text_records(after pg_catalog.pg_lsn, max_records bigint,
  OUT lsn pg_catalog.pg_lsn,
  OUT recorded_at timestamp with time zone,
  OUT payload pg_catalog.text)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'grouplog_read_text_records'
LANGUAGE C STABLE PARALLEL RESTRICTED;
COMMENT ON FUNCTION grouplog.read_text_records(pg_catalog.pg_lsn, bigint) IS
'internal: beneath grouplog.read_text, whose readers need EXECUTE on it';

CREATE FUNCTION grouplog.read(after pg_catalog.pg_lsn DEFAULT NULL, max_records bigint DEFAULT NULL)
RETURNS TABLE (
  lsn pg_catalog.pg_lsn,
  recorded_at timestamp with time zone,
  payload pg_catalog.bytea)
LANGUAGE SQL STABLE PARALLEL RESTRICTED
BEGIN ATOMIC
  SELECT (s.r).lsn, (s.r).recorded_at, (s.r).payload
  FROM (SELECT grouplog.read_records(after, max_records) AS r) AS s;
END;
COMMENT ON FUNCTION grouplog.read(pg_catalog.pg_lsn, bigint) IS
'durable records of this database, in order, with an LSN above after (null: from the oldest there is)';

CREATE FUNCTION grouplog.read_text(after pg_catalog.pg_lsn DEFAULT NULL, max_records bigint DEFAULT NULL)
RETURNS TABLE (
  lsn pg_catalog.pg_lsn,
  recorded_at timestamp with time zone,
  payload pg_catalog.text)
LANGUAGE SQL STABLE PARALLEL RESTRICTED
BEGIN ATOMIC
  SELECT (s.r).lsn, (s.r).recorded_at, (s.r).payload
  FROM (SELECT grouplog.read_text_records(after, max_records) AS r) AS s;
END;
COMMENT ON FUNCTION grouplog.read_text(pg_catalog.pg_lsn, bigint) IS
'as grouplog.read, with payloads as text; one that is not valid text is an error';

/* The sync mode of this session's appends. */
CREATE FUNCTION grouplog.sync_mode()
RETURNS pg_catalog.text
AS 'MODULE_PATHNAME', 'grouplog_sync_mode'
LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION grouplog.sync_mode() IS
'the session''s sync mode: periodic, batch, group or adaptive';

CREATE FUNCTION grouplog.set_sync_mode(mode pg_catalog.text, scope pg_catalog.text DEFAULT 'session')
RETURNS pg_catalog.text
AS 'MODULE_PATHNAME', 'grouplog_set_sync_mode'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.set_sync_mode(pg_catalog.text, pg_catalog.text) IS
'set the sync mode for the transaction or session; returns the mode before';

/* Maintenance. */
CREATE FUNCTION grouplog.truncate(before pg_catalog.pg_lsn)
RETURNS bigint
AS 'MODULE_PATHNAME', 'grouplog_truncate'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.truncate(pg_catalog.pg_lsn) IS
'give back whole files that end at or before the LSN, whatever database their records belong to; returns bytes freed; superuser only';

CREATE FUNCTION grouplog.verify(
  OUT number bigint,
  OUT file pg_catalog.text,
  OUT first_lsn pg_catalog.pg_lsn,
  OUT end_lsn pg_catalog.pg_lsn,
  OUT file_bytes bigint,
  OUT records bigint,
  OUT ok boolean,
  OUT bad_lsn pg_catalog.pg_lsn,
  OUT reason pg_catalog.text)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'grouplog_verify'
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100;
COMMENT ON FUNCTION grouplog.verify() IS
'read and check every byte of the log: one row a file, with the first bad LSN in it and why';

CREATE FUNCTION grouplog.accept_end(lsn pg_catalog.pg_lsn)
RETURNS pg_catalog.void
AS 'MODULE_PATHNAME', 'grouplog_accept_end'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION grouplog.accept_end(pg_catalog.pg_lsn) IS
'end a corrupt log at this LSN for good and open it again: what follows is given up; superuser only';

CREATE FUNCTION grouplog.stat_reset()
RETURNS pg_catalog.void
AS 'MODULE_PATHNAME', 'grouplog_stat_reset'
LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION grouplog.stat_reset() IS
'zero the statistics of the whole server';

/* The views, each over a function. */
CREATE FUNCTION grouplog.stat_get(
  OUT appends bigint,
  OUT append_bytes bigint,
  OUT append_waits bigint,
  OUT append_wait_time double precision,
  OUT groups bigint,
  OUT records bigint,
  OUT log_bytes bigint,
  OUT writes bigint,
  OUT write_bytes bigint,
  OUT write_time double precision,
  OUT syncs bigint,
  OUT sync_time double precision,
  OUT flushes_request bigint,
  OUT flushes_bytes bigint,
  OUT flushes_batch bigint,
  OUT flushes_window bigint,
  OUT flushes_period bigint,
  OUT flushes_joined bigint,
  OUT flushes_patience bigint,
  OUT flushes_lone bigint,
  OUT buffers_full bigint,
  OUT lag_waits bigint,
  OUT appends_refused bigint,
  OUT outcomes_unknown bigint,
  OUT write_errors bigint,
  OUT sync_errors bigint,
  OUT continuations bigint,
  OUT segments_created bigint,
  OUT segments_recycled bigint,
  OUT segments_removed bigint,
  OUT stats_reset timestamp with time zone
)
RETURNS pg_catalog.record
AS 'MODULE_PATHNAME', 'grouplog_stat_get'
LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION grouplog.stat_get() IS
'the row of grouplog.stat';

CREATE VIEW grouplog.stat AS
SELECT
  s.appends,
  s.append_bytes,
  s.append_waits,
  s.append_wait_time,
  s.groups,
  s.records,
  s.log_bytes,
  s.writes,
  s.write_bytes,
  s.write_time,
  s.syncs,
  s.sync_time,
  s.flushes_request,
  s.flushes_bytes,
  s.flushes_batch,
  s.flushes_window,
  s.flushes_period,
  s.flushes_joined,
  s.flushes_patience,
  s.flushes_lone,
  s.buffers_full,
  s.lag_waits,
  s.appends_refused,
  s.outcomes_unknown,
  s.write_errors,
  s.sync_errors,
  s.continuations,
  s.segments_created,
  s.segments_recycled,
  s.segments_removed,
  s.stats_reset
FROM grouplog.stat_get() AS s;
COMMENT ON VIEW grouplog.stat IS
'statistics of the log since stats_reset: one row for the whole server';
COMMENT ON COLUMN grouplog.stat.appends IS
'records appended, by all databases';
COMMENT ON COLUMN grouplog.stat.append_bytes IS
'bytes of their payloads';
COMMENT ON COLUMN grouplog.stat.append_waits IS
'appends and batches that waited until durable';
COMMENT ON COLUMN grouplog.stat.append_wait_time IS
'time they waited, in milliseconds';
COMMENT ON COLUMN grouplog.stat.groups IS
'groups made durable, one sync each';
COMMENT ON COLUMN grouplog.stat.records IS
'records made durable';
COMMENT ON COLUMN grouplog.stat.log_bytes IS
'bytes of the log made durable, with headers and padding';
COMMENT ON COLUMN grouplog.stat.writes IS
'writes of the log';
COMMENT ON COLUMN grouplog.stat.write_bytes IS
'bytes written; the last block of a group is written again by the next one';
COMMENT ON COLUMN grouplog.stat.write_time IS
'time spent in writes, in milliseconds; under open_datasync it includes the sync';
COMMENT ON COLUMN grouplog.stat.syncs IS
'syncs of the log';
COMMENT ON COLUMN grouplog.stat.sync_time IS
'time spent in syncs, in milliseconds';
COMMENT ON COLUMN grouplog.stat.flushes_request IS
'groups flushed for flush(), wait_durable(), room in the ring, the lag limit or a shutdown';
COMMENT ON COLUMN grouplog.stat.flushes_bytes IS
'groups flushed since grouplog.group_bytes, or a quarter of the ring, were pending';
COMMENT ON COLUMN grouplog.stat.flushes_batch IS
'groups flushed for an append in sync mode batch';
COMMENT ON COLUMN grouplog.stat.flushes_window IS
'groups flushed at the end of a group window';
COMMENT ON COLUMN grouplog.stat.flushes_period IS
'groups flushed at the end of grouplog.sync_period';
COMMENT ON COLUMN grouplog.stat.flushes_joined IS
'groups flushed in sync mode adaptive when all expected sessions had joined';
COMMENT ON COLUMN grouplog.stat.flushes_patience IS
'groups flushed in sync mode adaptive after the longest wait';
COMMENT ON COLUMN grouplog.stat.flushes_lone IS
'groups of one session alone, which flushed them itself, without the writer';
COMMENT ON COLUMN grouplog.stat.buffers_full IS
'appends that waited for room in the ring';
COMMENT ON COLUMN grouplog.stat.lag_waits IS
'appends in sync mode periodic that waited for grouplog.sync_lag_limit';
COMMENT ON COLUMN grouplog.stat.appends_refused IS
'appends refused before anything was written: disk or budget full, log not open';
COMMENT ON COLUMN grouplog.stat.outcomes_unknown IS
'waits that ended without an answer, since the device failed or the server was shutting down';
COMMENT ON COLUMN grouplog.stat.write_errors IS
'writes that failed';
COMMENT ON COLUMN grouplog.stat.sync_errors IS
'syncs that failed';
COMMENT ON COLUMN grouplog.stat.continuations IS
'files begun after an error or a restart of the writer';
COMMENT ON COLUMN grouplog.stat.segments_created IS
'files made';
COMMENT ON COLUMN grouplog.stat.segments_recycled IS
'files turned into spares for later use';
COMMENT ON COLUMN grouplog.stat.segments_removed IS
'files removed';
COMMENT ON COLUMN grouplog.stat.stats_reset IS
'when the statistics were last reset';

CREATE FUNCTION grouplog.stat_get_latency(
  OUT operation pg_catalog.text,
  OUT count bigint,
  OUT mean double precision,
  OUT p50 double precision,
  OUT p95 double precision,
  OUT p99 double precision,
  OUT p99_9 double precision,
  OUT max double precision,
  OUT stats_reset timestamp with time zone
)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'grouplog_stat_get_latency'
LANGUAGE C VOLATILE PARALLEL SAFE ROWS 3;
COMMENT ON FUNCTION grouplog.stat_get_latency() IS
'the rows of grouplog.stat_latency';

CREATE VIEW grouplog.stat_latency AS
SELECT
  s.operation,
  s.count,
  s.mean,
  s.p50,
  s.p95,
  s.p99,
  s.p99_9,
  s.max,
  s.stats_reset
FROM grouplog.stat_get_latency() AS s;
COMMENT ON VIEW grouplog.stat_latency IS
'how long operations take: percentiles within 2 % since stats_reset';
COMMENT ON COLUMN grouplog.stat_latency.operation IS
'append_wait: a session until its record is durable; sync; write';
COMMENT ON COLUMN grouplog.stat_latency.count IS
'how many were measured';
COMMENT ON COLUMN grouplog.stat_latency.mean IS
'mean, in milliseconds; null if nothing was measured';
COMMENT ON COLUMN grouplog.stat_latency.p50 IS
'half are at or below it, in milliseconds';
COMMENT ON COLUMN grouplog.stat_latency.p95 IS
'95 % are at or below it, in milliseconds';
COMMENT ON COLUMN grouplog.stat_latency.p99 IS
'99 % are at or below it, in milliseconds';
COMMENT ON COLUMN grouplog.stat_latency.p99_9 IS
'99.9 % are at or below it, in milliseconds';
COMMENT ON COLUMN grouplog.stat_latency.max IS
'the largest, in milliseconds';
COMMENT ON COLUMN grouplog.stat_latency.stats_reset IS
'when the statistics were last reset';

CREATE FUNCTION grouplog.stat_get_latency_histogram(
  OUT operation pg_catalog.text,
  OUT low_time double precision,
  OUT high_time double precision,
  OUT count bigint
)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'grouplog_stat_get_latency_histogram'
LANGUAGE C VOLATILE PARALLEL SAFE ROWS 200;
COMMENT ON FUNCTION grouplog.stat_get_latency_histogram() IS
'the rows of grouplog.stat_latency_histogram';

CREATE VIEW grouplog.stat_latency_histogram AS
SELECT
  s.operation,
  s.low_time,
  s.high_time,
  s.count
FROM grouplog.stat_get_latency_histogram() AS s;
COMMENT ON VIEW grouplog.stat_latency_histogram IS
'how long operations take: the buckets that are not empty, since stats_reset';
COMMENT ON COLUMN grouplog.stat_latency_histogram.operation IS
'as in grouplog.stat_latency';
COMMENT ON COLUMN grouplog.stat_latency_histogram.low_time IS
'lower bound of the bucket, inclusive, in milliseconds';
COMMENT ON COLUMN grouplog.stat_latency_histogram.high_time IS
'upper bound of the bucket, exclusive, in milliseconds';
COMMENT ON COLUMN grouplog.stat_latency_histogram.count IS
'how many fell into the bucket';

CREATE FUNCTION grouplog.stat_get_group(
  OUT measure pg_catalog.text,
  OUT count bigint,
  OUT mean double precision,
  OUT p50 double precision,
  OUT p95 double precision,
  OUT p99 double precision,
  OUT p99_9 double precision,
  OUT max double precision,
  OUT stats_reset timestamp with time zone
)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'grouplog_stat_get_group'
LANGUAGE C VOLATILE PARALLEL SAFE ROWS 2;
COMMENT ON FUNCTION grouplog.stat_get_group() IS
'the rows of grouplog.stat_group';

CREATE VIEW grouplog.stat_group AS
SELECT
  s.measure,
  s.count,
  s.mean,
  s.p50,
  s.p95,
  s.p99,
  s.p99_9,
  s.max,
  s.stats_reset
FROM grouplog.stat_get_group() AS s;
COMMENT ON VIEW grouplog.stat_group IS
'how large groups are: percentiles within 2 % since stats_reset';
COMMENT ON COLUMN grouplog.stat_group.measure IS
'records: records a group; bytes: bytes of the log a group';
COMMENT ON COLUMN grouplog.stat_group.count IS
'how many were measured';
COMMENT ON COLUMN grouplog.stat_group.mean IS
'mean, in records or bytes; null if nothing was measured';
COMMENT ON COLUMN grouplog.stat_group.p50 IS
'half are at or below it, in records or bytes';
COMMENT ON COLUMN grouplog.stat_group.p95 IS
'95 % are at or below it, in records or bytes';
COMMENT ON COLUMN grouplog.stat_group.p99 IS
'99 % are at or below it, in records or bytes';
COMMENT ON COLUMN grouplog.stat_group.p99_9 IS
'99.9 % are at or below it, in records or bytes';
COMMENT ON COLUMN grouplog.stat_group.max IS
'the largest, in records or bytes';
COMMENT ON COLUMN grouplog.stat_group.stats_reset IS
'when the statistics were last reset';

CREATE FUNCTION grouplog.stat_get_sync_mode(
  OUT sync_mode pg_catalog.text,
  OUT appends bigint,
  OUT append_bytes bigint,
  OUT waits bigint,
  OUT wait_time double precision,
  OUT stats_reset timestamp with time zone
)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'grouplog_stat_get_sync_mode'
LANGUAGE C VOLATILE PARALLEL SAFE ROWS 4;
COMMENT ON FUNCTION grouplog.stat_get_sync_mode() IS
'the rows of grouplog.stat_sync_mode';

CREATE VIEW grouplog.stat_sync_mode AS
SELECT
  s.sync_mode,
  s.appends,
  s.append_bytes,
  s.waits,
  s.wait_time,
  s.stats_reset
FROM grouplog.stat_get_sync_mode() AS s;
COMMENT ON VIEW grouplog.stat_sync_mode IS
'appends by sync mode since stats_reset';
COMMENT ON COLUMN grouplog.stat_sync_mode.sync_mode IS
'periodic, batch, group or adaptive';
COMMENT ON COLUMN grouplog.stat_sync_mode.appends IS
'records appended';
COMMENT ON COLUMN grouplog.stat_sync_mode.append_bytes IS
'bytes of their payloads';
COMMENT ON COLUMN grouplog.stat_sync_mode.waits IS
'appends and batches that waited until durable';
COMMENT ON COLUMN grouplog.stat_sync_mode.wait_time IS
'time they waited, in milliseconds';
COMMENT ON COLUMN grouplog.stat_sync_mode.stats_reset IS
'when the statistics were last reset';

CREATE FUNCTION grouplog.get_status(
  OUT state pg_catalog.text,
  OUT refusal pg_catalog.text,
  OUT problem pg_catalog.text,
  OUT insert_lsn pg_catalog.pg_lsn,
  OUT written_lsn pg_catalog.pg_lsn,
  OUT durable_lsn pg_catalog.pg_lsn,
  OUT oldest_lsn pg_catalog.pg_lsn,
  OUT run_start_lsn pg_catalog.pg_lsn,
  OUT log_id pg_catalog.text,
  OUT epoch bigint,
  OUT writer_pid integer,
  OUT io_method pg_catalog.text,
  OUT io_method_reason pg_catalog.text,
  OUT sync_method pg_catalog.text,
  OUT sync_method_reason pg_catalog.text,
  OUT fsync boolean,
  OUT directory pg_catalog.text,
  OUT directory_bytes bigint,
  OUT buffer_bytes bigint,
  OUT segment_bytes bigint,
  OUT recovery pg_catalog.text,
  OUT holes_end_lsn pg_catalog.pg_lsn,
  OUT last_error pg_catalog.text
)
RETURNS pg_catalog.record
AS 'MODULE_PATHNAME', 'grouplog_get_status'
LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION grouplog.get_status() IS
'the row of grouplog.status';

CREATE VIEW grouplog.status AS
SELECT
  s.state,
  s.refusal,
  s.problem,
  s.insert_lsn,
  s.written_lsn,
  s.durable_lsn,
  s.oldest_lsn,
  s.run_start_lsn,
  s.log_id,
  s.epoch,
  s.writer_pid,
  s.io_method,
  s.io_method_reason,
  s.sync_method,
  s.sync_method_reason,
  s.fsync,
  s.directory,
  s.directory_bytes,
  s.buffer_bytes,
  s.segment_bytes,
  s.recovery,
  s.holes_end_lsn,
  s.last_error
FROM grouplog.get_status() AS s;
COMMENT ON VIEW grouplog.status IS
'state of the log: one row';
COMMENT ON COLUMN grouplog.status.state IS
'starting, open, corrupt (reads only, until accept_end), unavailable, closed, or standby (no log during recovery)';
COMMENT ON COLUMN grouplog.status.refusal IS
'why appends are refused although the log is open: min_free_space, device, no_space or max_size; null if they are not';
COMMENT ON COLUMN grouplog.status.problem IS
'what is behind state or refusal, in words; null when nothing is wrong';
COMMENT ON COLUMN grouplog.status.insert_lsn IS
'where the next record will begin';
COMMENT ON COLUMN grouplog.status.written_lsn IS
'the same as durable_lsn at present: a group is acknowledged as one';
COMMENT ON COLUMN grouplog.status.durable_lsn IS
'all before it is on stable storage';
COMMENT ON COLUMN grouplog.status.oldest_lsn IS
'the first LSN that is kept';
COMMENT ON COLUMN grouplog.status.run_start_lsn IS
'the first LSN of this server run';
COMMENT ON COLUMN grouplog.status.log_id IS
'random id of the log, in hexadecimal';
COMMENT ON COLUMN grouplog.status.epoch IS
'number of the run; grows with every server start after a run that has written something';
COMMENT ON COLUMN grouplog.status.writer_pid IS
'process id of the writer; null: it does not run';
COMMENT ON COLUMN grouplog.status.io_method IS
'I/O method in use: io_uring or sync';
COMMENT ON COLUMN grouplog.status.io_method_reason IS
'why, if it is not the one that was set';
COMMENT ON COLUMN grouplog.status.sync_method IS
'sync method in use: open_datasync or fdatasync';
COMMENT ON COLUMN grouplog.status.sync_method_reason IS
'why, if it is not the one that was set';
COMMENT ON COLUMN grouplog.status.fsync IS
'whether syncs are done at all: the setting fsync as the writer last saw it';
COMMENT ON COLUMN grouplog.status.directory IS
'where the files are';
COMMENT ON COLUMN grouplog.status.directory_bytes IS
'bytes on disk of all files of the log, spares included';
COMMENT ON COLUMN grouplog.status.buffer_bytes IS
'size of the ring in shared memory';
COMMENT ON COLUMN grouplog.status.segment_bytes IS
'bytes of the log that a full file holds';
COMMENT ON COLUMN grouplog.status.recovery IS
'what the last recovery found';
COMMENT ON COLUMN grouplog.status.holes_end_lsn IS
'bad records below it are passed over: they came with a base backup, or were accepted by accept_end; null: none';
COMMENT ON COLUMN grouplog.status.last_error IS
'the last error of a write or sync, kept after it is over';

CREATE FUNCTION grouplog.get_segments(
  OUT number bigint,
  OUT file pg_catalog.text,
  OUT first_lsn pg_catalog.pg_lsn,
  OUT end_lsn pg_catalog.pg_lsn,
  OUT file_bytes bigint,
  OUT current boolean,
  OUT created_at timestamp with time zone
)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'grouplog_get_segments'
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100;
COMMENT ON FUNCTION grouplog.get_segments() IS
'the rows of grouplog.segments';

CREATE VIEW grouplog.segments AS
SELECT
  s.number,
  s.file,
  s.first_lsn,
  s.end_lsn,
  s.file_bytes,
  s.current,
  s.created_at
FROM grouplog.get_segments() AS s;
COMMENT ON VIEW grouplog.segments IS
'the files of the log, oldest first; empty while the log is not open';
COMMENT ON COLUMN grouplog.segments.number IS
'its number';
COMMENT ON COLUMN grouplog.segments.file IS
'its name';
COMMENT ON COLUMN grouplog.segments.first_lsn IS
'the first LSN in it';
COMMENT ON COLUMN grouplog.segments.end_lsn IS
'where the next file takes over; in the newest, the durable end';
COMMENT ON COLUMN grouplog.segments.file_bytes IS
'its size on disk';
COMMENT ON COLUMN grouplog.segments.current IS
'whether it is being written';
COMMENT ON COLUMN grouplog.segments.created_at IS
'when it took over';

/*
 * Privileges: none by default, but statistics for those who monitor.
 */
REVOKE ALL ON ALL TABLES IN SCHEMA grouplog FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA grouplog FROM PUBLIC;

GRANT USAGE ON SCHEMA grouplog TO pg_monitor;
GRANT SELECT ON grouplog.stat, grouplog.stat_latency, grouplog.stat_latency_histogram,
  grouplog.stat_group, grouplog.stat_sync_mode, grouplog.status, grouplog.segments
  TO pg_monitor;
GRANT EXECUTE ON FUNCTION grouplog.stat_get(), grouplog.stat_get_latency(),
  grouplog.stat_get_latency_histogram(), grouplog.stat_get_group(),
  grouplog.stat_get_sync_mode(), grouplog.get_status(), grouplog.get_segments()
  TO pg_monitor;
