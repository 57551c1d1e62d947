-- What the other tests use: the extension, and a way to show an error whole.
CREATE EXTENSION grouplog;

-- LSNs and file names differ from run to run.
CREATE FUNCTION masked(message text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN regexp_replace(regexp_replace(message,
  '[0-9A-F]{8}-[0-9A-F]{16}\.seg', 'FILE', 'g'),
  '\m[0-9A-F]{1,8}/[0-9A-F]{1,8}\M', 'X/X', 'g');

-- SQLSTATE, message, detail and hint of a statement that fails.

CREATE FUNCTION error_of(statement text,
  OUT state text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE statement;
  message := 'no error';
EXCEPTION WHEN OTHERS OR query_canceled THEN
  GET STACKED DIAGNOSTICS
    state = RETURNED_SQLSTATE,
    message = MESSAGE_TEXT,
    detail = PG_EXCEPTION_DETAIL,
    hint = PG_EXCEPTION_HINT;
  message := masked(message);
  detail := nullif(masked(detail), '');
  hint := nullif(masked(hint), '');
END
$$;

-- Wait, for a minute at most, until a query says true.
CREATE FUNCTION wait_until(condition text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  reached boolean;
BEGIN
  FOR i IN 1..6000 LOOP
    PERFORM pg_stat_clear_snapshot();
    EXECUTE 'SELECT ' || condition INTO reached;
    EXIT WHEN reached;
    PERFORM pg_sleep(0.01);
  END LOOP;
  RETURN reached;
END
$$;

-- The server has just been started: the writer may still be opening the log.
SELECT wait_until($$(SELECT state = 'open' FROM grouplog.status)$$) AS open;
SELECT state, refusal, problem FROM grouplog.status;

-- What there is.
SELECT p.oid::regprocedure AS function,
  CASE WHEN p.proretset THEN 'SETOF ' ELSE '' END || p.prorettype::regtype AS result,
  p.provolatile AS volatile, p.proparallel AS parallel
FROM pg_proc AS p WHERE p.pronamespace = 'grouplog'::regnamespace
ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT c.oid::regclass AS relation, c.relkind
FROM pg_class AS c WHERE c.relnamespace = 'grouplog'::regnamespace ORDER BY c.relname COLLATE "C";

-- Everything has a comment.
SELECT obj_description('grouplog'::regnamespace, 'pg_namespace') AS schema;
SELECT p.oid::regprocedure AS function_without_comment
FROM pg_proc AS p
WHERE p.pronamespace = 'grouplog'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL;

SELECT c.oid::regclass AS relation_without_comment, a.attname
FROM pg_class AS c LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = 'grouplog'::regnamespace
  AND (obj_description(c.oid, 'pg_class') IS NULL OR col_description(c.oid, a.attnum) IS NULL);

-- The schema is the script's own: nobody can prepare one.
DROP EXTENSION grouplog;
CREATE SCHEMA grouplog;
\set VERBOSITY terse
CREATE EXTENSION grouplog;
\set VERBOSITY default
DROP SCHEMA grouplog;
CREATE EXTENSION grouplog;

-- One stream, of random bits.
SELECT count(*), bool_and(id <> 0) AS random FROM grouplog.main_stream;
