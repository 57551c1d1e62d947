-- Appending is not transactional: a record stays, whatever becomes of the
-- transaction.
SELECT grouplog.append('begin') AS start \gset

BEGIN;
SELECT grouplog.append('rolled back') IS NOT NULL AS appended;
ROLLBACK;

BEGIN;
SAVEPOINT s;
SELECT grouplog.append('savepoint') IS NOT NULL AS appended;
ROLLBACK TO s;
SELECT payload FROM grouplog.read_text(:'start');
COMMIT;

-- By an error, by an exception block.
BEGIN;
SELECT grouplog.append('failed') IS NOT NULL AS appended;
SELECT 1 / 0;
SELECT grouplog.append('not reached');
ROLLBACK;

DO $$
BEGIN
  PERFORM grouplog.append('exception');
  RAISE EXCEPTION 'no';
EXCEPTION WHEN raise_exception THEN
  PERFORM grouplog.append('handler');
END
$$;

-- A statement that fails half way leaves what it appended.
SELECT grouplog.append(i::text) IS NOT NULL AND 1 / (2 - i) = 1 FROM generate_series(1, 3) AS i;
SELECT payload FROM grouplog.read_text(:'start');

-- Two-phase commit.
SELECT grouplog.append('two phases') AS start \gset
BEGIN;
SELECT grouplog.append('prepared') IS NOT NULL AS appended;
SELECT grouplog.append_async('prepared, not waited for') IS NOT NULL AS appended;
PREPARE TRANSACTION 'regress_grouplog';
SELECT grouplog.flush() IS NOT NULL AS flushed;
SELECT payload FROM grouplog.read_text(:'start');
ROLLBACK PREPARED 'regress_grouplog';
SELECT count(*) FROM grouplog.read(:'start');

-- In a trigger.
SELECT grouplog.append('trigger') AS start \gset
CREATE TABLE account (name text, balance int CHECK (balance >= 0));
CREATE FUNCTION log_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM grouplog.append(format('%s %s', TG_OP, to_jsonb(NEW)));
  RETURN NEW;
END
$$;
CREATE TRIGGER log_change BEFORE INSERT OR UPDATE ON account
  FOR EACH ROW EXECUTE FUNCTION log_change();
INSERT INTO account VALUES ('a', 1), ('b', 2);
UPDATE account SET balance = balance - 2;
SELECT payload FROM grouplog.read_text(:'start');
SELECT * FROM account;
DROP TABLE account;
DROP FUNCTION log_change;

-- In a read-only transaction and a read-only session: reading only.
SELECT grouplog.append('read only') AS start \gset
BEGIN READ ONLY;
SELECT grouplog.append('x');
ROLLBACK;
BEGIN READ ONLY;
SELECT payload FROM grouplog.read_text(:'start', 0);
SELECT count(*) FROM grouplog.status;
ROLLBACK;
SET default_transaction_read_only = on;
\x on
SELECT * FROM error_of('SELECT grouplog.append(''x'')');
SELECT * FROM error_of('SELECT grouplog.append(''x''::bytea, ''batch'')');
SELECT * FROM error_of('SELECT grouplog.append_async(''x'')');
SELECT * FROM error_of('SELECT grouplog.append_batch(''{x}'')');
SELECT * FROM error_of('SELECT grouplog.append_batch_text(''{x}'')');
SELECT * FROM error_of('SELECT grouplog.truncate(''0/1'')');
SELECT * FROM error_of('SELECT grouplog.accept_end(''0/1'')');
\x off
RESET default_transaction_read_only;
SELECT count(*) FROM grouplog.read(:'start');

-- Cursors: row by row, backwards only when asked for, past the transaction.
SELECT grouplog.append('cursors') AS start \gset
SELECT grouplog.append_batch_text(ARRAY['1', '2', '3', '4', '5']) IS NOT NULL AS appended;
BEGIN;
DECLARE c CURSOR FOR SELECT payload FROM grouplog.read_text(:'start');
FETCH 2 FROM c;
SELECT grouplog.append('6') IS NOT NULL AS appended;
FETCH ALL FROM c;
CLOSE c;
DECLARE s SCROLL CURSOR FOR SELECT payload FROM grouplog.read_text(:'start');
FETCH 3 FROM s;
FETCH BACKWARD 1 FROM s;
DECLARE h CURSOR WITH HOLD FOR SELECT payload FROM grouplog.read_text(:'start');
FETCH 1 FROM h;
COMMIT;
FETCH 2 FROM h;
CLOSE h;

-- A cursor opened in a savepoint goes with it; one opened before it stays.
BEGIN;
DECLARE outside CURSOR FOR SELECT payload FROM grouplog.read_text(:'start');
SAVEPOINT s;
FETCH 1 FROM outside;
DECLARE inside CURSOR FOR SELECT payload FROM grouplog.read_text(:'start');
FETCH 1 FROM inside;
ROLLBACK TO s;
FETCH 1 FROM outside;
FETCH 1 FROM inside;
ROLLBACK;

-- Many readers at once, none read to its end.
DO $$
DECLARE
  n int;
BEGIN
  FOR i IN 1..2000 LOOP
    SELECT count(*) INTO n FROM (SELECT FROM grouplog.read() LIMIT 1) AS r;
  END LOOP;
  RAISE NOTICE 'done';
END
$$;

-- A procedure that commits between its appends, while it reads.
CREATE PROCEDURE copy_records(after pg_lsn) LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT payload FROM grouplog.read_text(after, 3) LOOP
    PERFORM grouplog.append('copy of ' || r.payload);
    COMMIT;
  END LOOP;
END
$$;
SELECT grouplog.append('copies') AS copies \gset
CALL copy_records(:'start');
SELECT payload FROM grouplog.read_text(:'copies');
DROP PROCEDURE copy_records;

-- Not in a parallel worker: the planner keeps it out, and so does a check.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE many AS SELECT i FROM generate_series(1, 100) AS i;
ALTER TABLE many SET (parallel_workers = 2);
EXPLAIN (COSTS OFF) SELECT grouplog.append(i::text) FROM many;
SELECT grouplog.append('parallel') AS parallel \gset
SELECT count(grouplog.append(i::text)) FROM many;
SELECT count(*) FROM grouplog.read(:'parallel');
CREATE FUNCTION mislabelled(text) RETURNS pg_lsn LANGUAGE plpgsql PARALLEL SAFE
AS 'BEGIN RETURN grouplog.append($1); END';
EXPLAIN (COSTS OFF) SELECT count(mislabelled(i::text)) FROM many;
\x on
SELECT * FROM error_of('SELECT count(mislabelled(i::text)) FROM many');
\x off
SELECT count(*) FROM grouplog.read(:'parallel');
DROP FUNCTION mislabelled;
DROP TABLE many;
