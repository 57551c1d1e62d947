-- Who may do what.
CREATE ROLE regress_grouplog_nobody;
CREATE ROLE regress_grouplog_appender;
CREATE ROLE regress_grouplog_reader;
CREATE ROLE regress_grouplog_monitor IN ROLE pg_monitor;
CREATE ROLE regress_grouplog_everything;
GRANT EXECUTE ON FUNCTION error_of, masked
  TO regress_grouplog_nobody, regress_grouplog_appender, regress_grouplog_reader,
  regress_grouplog_monitor, regress_grouplog_everything;
SELECT grouplog.append('begin') AS start \gset

-- Nothing is for PUBLIC.
SELECT p.oid::regprocedure AS function_for_public
FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
WHERE p.pronamespace = 'grouplog'::regnamespace AND a.grantee = 0;
SELECT c.oid::regclass AS relation_for_public
FROM pg_class AS c, aclexplode(c.relacl) AS a
WHERE c.relnamespace = 'grouplog'::regnamespace AND a.grantee = 0;
SELECT count(*) AS security_definer
FROM pg_proc WHERE pronamespace = 'grouplog'::regnamespace AND prosecdef;

SET ROLE regress_grouplog_nobody;
SELECT grouplog.append('x');
SELECT * FROM grouplog.stat;
RESET ROLE;

-- An appender appends, and nothing else.
GRANT USAGE ON SCHEMA grouplog TO regress_grouplog_appender;
GRANT EXECUTE ON FUNCTION grouplog.append(text), grouplog.append(text, text),
  grouplog.append_batch_text(text[]), grouplog.append_async(text),
  grouplog.wait_durable(pg_lsn, interval), grouplog.flush(),
  grouplog.sync_mode(), grouplog.set_sync_mode(text, text)
  TO regress_grouplog_appender;
SET ROLE regress_grouplog_appender;
SELECT grouplog.append('by an appender') AS lsn \gset
SELECT grouplog.append_async('by an appender') AS lsn \gset
SELECT grouplog.wait_durable(:'lsn');
SELECT grouplog.append_batch_text('{by an appender}', 'batch');
SELECT grouplog.append_batch_text('{by an appender}') IS NOT NULL AS appended;
SELECT grouplog.flush() >= :'lsn' AS flushed;
SELECT grouplog.set_sync_mode('batch');
SELECT grouplog.sync_mode();
RESET grouplog.sync_mode;
SELECT grouplog.append('x'::bytea);
SELECT * FROM grouplog.read();
SELECT * FROM grouplog.status;
SELECT * FROM grouplog.main_stream;
RESET ROLE;

-- A reader reads.  Both functions are needed: read is inlined into its caller.
GRANT USAGE ON SCHEMA grouplog TO regress_grouplog_reader;
GRANT EXECUTE ON FUNCTION grouplog.read_text(pg_lsn, bigint) TO regress_grouplog_reader;
SET ROLE regress_grouplog_reader;
SELECT payload FROM grouplog.read_text(:'start');
RESET ROLE;
GRANT EXECUTE ON FUNCTION grouplog.read_text_records(pg_lsn, bigint) TO regress_grouplog_reader;
SET ROLE regress_grouplog_reader;
SELECT payload FROM grouplog.read_text(:'start');
SELECT payload FROM grouplog.read(:'start');
SELECT grouplog.append('x');
SELECT * FROM grouplog.main_stream;
RESET ROLE;

-- Who monitors sees the seven views, but no payload.
SET ROLE regress_grouplog_monitor;
SELECT count(*) FROM grouplog.stat;
SELECT count(*) FROM grouplog.stat_latency;
SELECT count(*) > 0 AS some FROM grouplog.stat_latency_histogram;
SELECT count(*) FROM grouplog.stat_group;
SELECT count(*) FROM grouplog.stat_sync_mode;
SELECT count(*) FROM grouplog.status;
SELECT count(*) > 0 AS some FROM grouplog.segments;
SELECT grouplog.read();
SELECT grouplog.verify();
SELECT grouplog.stat_reset();
RESET ROLE;

-- A right to EXECUTE is not enough for what takes records away.
GRANT USAGE ON SCHEMA grouplog TO regress_grouplog_everything;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA grouplog TO regress_grouplog_everything;
SET ROLE regress_grouplog_everything;
\x on
SELECT * FROM error_of('SELECT grouplog.truncate(''0/1'')');
SELECT * FROM error_of('SELECT grouplog.accept_end(''0/1'')');
\x off
SELECT bool_and(ok) AS ok FROM grouplog.verify();
SELECT grouplog.stat_reset();

-- Nor does a session change what is not its own.
SET grouplog.sync_period = '1h';
SET grouplog.max_size = '1GB';
\set VERBOSITY sqlstate
SHOW grouplog.directory;
\set VERBOSITY default
RESET ROLE;

DROP OWNED BY regress_grouplog_nobody, regress_grouplog_appender, regress_grouplog_reader,
  regress_grouplog_monitor, regress_grouplog_everything;
DROP ROLE regress_grouplog_nobody, regress_grouplog_appender, regress_grouplog_reader,
  regress_grouplog_monitor, regress_grouplog_everything;
