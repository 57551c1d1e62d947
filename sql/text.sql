-- Text is stored as the bytes of the database's encoding, and checked when it
-- is read.
SELECT current_database() AS home \gset
CREATE DATABASE regression_grouplog_utf8
  ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
CREATE DATABASE regression_grouplog_latin1
  ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;

\c regression_grouplog_utf8
SET client_encoding = 'UTF8';
CREATE EXTENSION grouplog;
SELECT grouplog.append('begin') AS start \gset
SELECT grouplog.append('caf' || chr(233) || ' ' || chr(8364) || ' ' || chr(128512)) AS text \gset
SELECT payload FROM grouplog.read(:'start');
SELECT length(payload), octet_length(payload), payload = 'caf' || chr(233) || ' ' || chr(8364) || ' ' || chr(128512) AS same
FROM grouplog.read_text(:'start');

-- Bytes that are no text here: a single byte, a cut sequence, a surrogate, NUL.
SELECT grouplog.append('\xe9'::bytea) AS byte \gset
SELECT grouplog.append('\x6162e282'::bytea) AS cut \gset
SELECT grouplog.append('\xeda080'::bytea) AS surrogate \gset
SELECT grouplog.append('\x616200'::bytea) AS nul \gset
SELECT grouplog.append('fine') AS fine \gset
DO $$
DECLARE
  record_lsn pg_lsn;
  state text;
  message text;
  detail text;
  hint text;
BEGIN
  FOR record_lsn IN SELECT lsn FROM grouplog.read() LOOP
    BEGIN
      PERFORM payload FROM grouplog.read_text(record_lsn - 1, 1);
      RAISE NOTICE 'text';
    EXCEPTION WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
      RAISE NOTICE '% % | % | %', state, replace(message, record_lsn::text, 'LSN'), detail, hint;
    END;
  END LOOP;
END
$$;

-- All of it is there as bytes, and text after it can be read.
SELECT payload FROM grouplog.read(:'text');
SELECT payload FROM grouplog.read_text(:'nul');

-- One byte a character.
\c regression_grouplog_latin1
SET client_encoding = 'LATIN1';
CREATE EXTENSION grouplog;
SELECT grouplog.append('begin') AS start \gset
SELECT grouplog.append('caf' || chr(233)) AS text \gset
SELECT payload FROM grouplog.read(:'start');
SELECT length(payload), octet_length(payload), payload = 'caf' || chr(233) AS same
FROM grouplog.read_text(:'start');

\c :home
DROP DATABASE regression_grouplog_utf8;
DROP DATABASE regression_grouplog_latin1;
