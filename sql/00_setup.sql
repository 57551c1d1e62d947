-- What the other tests use: the extension, and a way to show an error whole.
CREATE EXTENSION grouplog;

-- SQLSTATE, message, detail and hint of a failing statement, with every LSN,
-- file name and count of bytes that may differ from run to run masked.
CREATE FUNCTION masked(message text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN regexp_replace(regexp_replace(message,
  '[0-9A-F]{8}-[0-9A-F]{16}\.seg', 'FILE', 'g'),
  '\m[0-9A-F]{1,8}/[0-9A-F]{1,8}\M', 'LSN', 'g');

CREATE FUNCTION error_of(statement text,
  OUT state text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE statement;
  message := 'no error';
EXCEPTION WHEN OTHERS THEN
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

-- The server has just been started: the writer may still be opening the log.
DO $$
BEGIN
  FOR i IN 1..600 LOOP
    EXIT WHEN (SELECT state = 'open' FROM grouplog.status);
    PERFORM pg_sleep(0.1);
  END LOOP;
END
$$;
SELECT state, refusal, problem FROM grouplog.status;

-- One more thing than the signatures: everything has a comment.
SELECT p.oid::regprocedure AS function_without_comment
FROM pg_proc AS p
WHERE p.pronamespace = 'grouplog'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL;

SELECT c.oid::regclass AS relation_without_comment, a.attname
FROM pg_class AS c LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = 'grouplog'::regnamespace
  AND (obj_description(c.oid, 'pg_class') IS NULL OR col_description(c.oid, a.attnum) IS NULL);

\df grouplog.*
\dv grouplog.*

-- The schema is the script's own: nobody can prepare one.
DROP EXTENSION grouplog;
CREATE SCHEMA grouplog;
CREATE EXTENSION grouplog;
DROP SCHEMA grouplog;
CREATE EXTENSION grouplog;

-- One stream, of random bits.
SELECT count(*), bool_and(id <> 0) AS random FROM grouplog.main_stream;
