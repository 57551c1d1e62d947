-- Bad input: SQLSTATE, message, detail and hint; and nothing is appended.
SELECT grouplog.append('begin') AS start \gset
\x on

-- NULLs
SELECT * FROM error_of('SELECT grouplog.append(NULL)');
SELECT * FROM error_of('SELECT grouplog.append(NULL::bytea)');
SELECT * FROM error_of('SELECT grouplog.append(NULL::text, ''batch'')');
SELECT * FROM error_of('SELECT grouplog.append(''x'', NULL)');
SELECT * FROM error_of('SELECT grouplog.append_async(NULL::text)');
SELECT * FROM error_of('SELECT grouplog.append_async(NULL::bytea)');
SELECT * FROM error_of('SELECT grouplog.wait_durable(NULL)');
SELECT * FROM error_of('SELECT grouplog.set_sync_mode(NULL)');
SELECT * FROM error_of('SELECT grouplog.set_sync_mode(''batch'', NULL)');
SELECT * FROM error_of('SELECT grouplog.truncate(NULL)');
SELECT * FROM error_of('SELECT grouplog.accept_end(NULL)');

-- Unknown names
SELECT * FROM error_of('SELECT grouplog.append(''x'', ''sometimes'')');
SELECT * FROM error_of('SELECT grouplog.append(''x''::bytea, '''')');
SELECT * FROM error_of('SELECT grouplog.set_sync_mode(''sometimes'')');
SELECT * FROM error_of('SELECT grouplog.set_sync_mode(''batch'', ''system'')');

-- Timeouts
SELECT * FROM error_of('SELECT grouplog.wait_durable(''0/1'', ''-1 ms'')');
SELECT * FROM error_of('SELECT grouplog.wait_durable(''0/1'', ''1 day -25 hours'')');
SELECT * FROM error_of('SELECT grouplog.wait_durable(''0/1'', ''170000000 years'')');

-- False, not an error, when the time is up: at least once in a hundred tries the
-- record is not durable at once.
\x off
SELECT bool_or(NOT grouplog.wait_durable(grouplog.append_async('hurry'), '0')) AS timed_out
FROM generate_series(1, 100);

-- A wait that is cancelled says where the record is; it is not undone.  The cancel
-- comes first, and is heeded in the wait.
SELECT grouplog.append('cancelled') AS cancelled \gset
SET grouplog.group_window = '10s';
\set SHOW_CONTEXT never
SELECT pg_cancel_backend(pg_backend_pid()), grouplog.append('wait for me', 'group');
\set SHOW_CONTEXT errors
DO $$
DECLARE
  context text;
BEGIN
  PERFORM pg_cancel_backend(pg_backend_pid()), grouplog.append('and me', 'group');
EXCEPTION WHEN query_canceled THEN
  GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
  RAISE NOTICE '%', split_part(masked(context), E'\n', 1);
END
$$;
RESET grouplog.group_window;
SELECT grouplog.flush() IS NOT NULL AS flushed;
SELECT payload FROM grouplog.read_text(:'cancelled');
SELECT grouplog.append('begin') AS start \gset
\x on

-- Too large: the limit is a quarter of the ring, header included.
SELECT * FROM error_of('SELECT grouplog.append(repeat(''x'', 65536))');
SELECT * FROM error_of('SELECT grouplog.append(repeat(''x'', 65505))');
SELECT * FROM error_of('SELECT grouplog.append_async(convert_to(repeat(''x'', 65505), ''UTF8''))');
\x off
SELECT count(*) FROM grouplog.read(:'start');
SELECT grouplog.append(repeat('x', 65504)) AS largest \gset
SELECT length(payload) FROM grouplog.read(:'start');
\x on

-- LSNs that were never handed out
SELECT * FROM error_of('SELECT grouplog.wait_durable(''FFFFFFFF/0'')');
SELECT * FROM error_of('SELECT grouplog.wait_durable(''FFFFFFFF/0'', ''1 s'')');
SELECT e.* FROM grouplog.status AS s, error_of(format('SELECT grouplog.wait_durable(%L)', s.insert_lsn)) AS e;
SELECT * FROM error_of('SELECT grouplog.wait_durable(''0/0'')');
SELECT * FROM error_of('SELECT * FROM grouplog.read(''FFFFFFFF/0'')');
SELECT * FROM error_of('SELECT grouplog.truncate(''FFFFFFFF/0'')');

-- The end of a log that is not corrupt is not for accepting.
SELECT * FROM error_of(format('SELECT grouplog.accept_end(%L)', :'start'));

-- A set where there can be none
SELECT * FROM error_of('SELECT 1 WHERE (grouplog.read_records(NULL, 1)).payload IS NULL');
\x off

-- Still in order.
SELECT state, refusal, problem, last_error FROM grouplog.status;
