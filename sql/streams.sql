-- A database reads its own records, and no other's.
CREATE DATABASE regression_grouplog_a TEMPLATE template0;
CREATE DATABASE regression_grouplog_b TEMPLATE template0;
SELECT current_database() AS home \gset
SELECT grouplog.append('begin') AS start \gset

-- Where the extension is not created, nothing can be called.
\c regression_grouplog_a
SELECT grouplog.append('x');
CREATE EXTENSION grouplog;
SELECT count(*) FROM grouplog.read();
SELECT grouplog.append('a 1') AS a1 \gset

\c regression_grouplog_b
CREATE EXTENSION grouplog;
SELECT count(*) FROM grouplog.read();
SELECT grouplog.append('b 1') AS b1 \gset
SELECT :'b1'::pg_lsn > :'a1' AS one_log;
SELECT payload FROM grouplog.read_text();

-- Another database's LSN is a position in the same log.
SELECT payload FROM grouplog.read_text(:'a1');
SELECT grouplog.wait_durable(:'a1');

\c regression_grouplog_a
SELECT grouplog.append('a 2') IS NOT NULL AS appended;
SELECT payload FROM grouplog.read_text();
SELECT payload FROM grouplog.read_text(:'b1');

-- A new extension is a new stream, also in a session that used the old one.
DROP EXTENSION grouplog;
SELECT grouplog.append('x');
CREATE EXTENSION grouplog;
SELECT count(*) FROM grouplog.read();
SELECT grouplog.append('a 3') IS NOT NULL AS appended;
SELECT payload FROM grouplog.read_text();

-- In a transaction that is rolled back, too.
BEGIN;
DROP EXTENSION grouplog;
CREATE EXTENSION grouplog;
SELECT grouplog.append('rolled back with its stream') IS NOT NULL AS appended;
SELECT payload FROM grouplog.read_text();
ROLLBACK;
SELECT payload FROM grouplog.read_text();

-- A copy of a database does not read the records of its model, nor the model
-- those of its copy.
\c :home
SELECT wait_until($$NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname ~ '^regression_grouplog_')$$) AS nobody_there;
CREATE DATABASE regression_grouplog_c TEMPLATE regression_grouplog_a;
\c regression_grouplog_c
SELECT count(*) FROM grouplog.read();
SELECT grouplog.append('c 1') IS NOT NULL AS appended;
SELECT payload FROM grouplog.read_text();
\c regression_grouplog_a
SELECT payload FROM grouplog.read_text();

-- Gone with the database, untouched elsewhere.
\c :home
SELECT wait_until($$NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname ~ '^regression_grouplog_')$$) AS nobody_there;
DROP DATABASE regression_grouplog_a;
DROP DATABASE regression_grouplog_b;
DROP DATABASE regression_grouplog_c;
SELECT count(*) FROM grouplog.read(:'start');

-- Dropping the extension leaves the files of the log, and everything else.
BEGIN;
DROP EXTENSION grouplog;
SELECT count(*) > 0 AS files FROM pg_ls_dir('grouplog') AS f WHERE f LIKE '%.seg';
ROLLBACK;

-- A stream without an id.
BEGIN;
DELETE FROM grouplog.main_stream;
\x on
SELECT * FROM error_of('SELECT grouplog.append(''x'')');
SELECT * FROM error_of('SELECT * FROM grouplog.read()');
\x off
ROLLBACK;
SELECT grouplog.append('x') IS NOT NULL AS appended;
