-- Sync modes: of a session, of a transaction, of one append.
SELECT grouplog.append('begin') AS start \gset

SELECT grouplog.sync_mode();
SELECT grouplog.set_sync_mode('batch');
SELECT grouplog.sync_mode(), current_setting('grouplog.sync_mode');
SELECT grouplog.set_sync_mode('GROUP', 'Session');
SELECT grouplog.sync_mode();

-- For a transaction: back afterwards, and after a savepoint too.
BEGIN;
SELECT grouplog.set_sync_mode('periodic', 'transaction');
SAVEPOINT s;
SELECT grouplog.set_sync_mode('batch', 'transaction');
ROLLBACK TO s;
SELECT grouplog.sync_mode();
COMMIT;
SELECT grouplog.sync_mode();

-- For a session, in a transaction that is rolled back: as SET does.
BEGIN;
SELECT grouplog.set_sync_mode('batch', scope => 'session');
ROLLBACK;
SELECT grouplog.sync_mode();
RESET grouplog.sync_mode;
SELECT grouplog.sync_mode();

-- By SET.
SET grouplog.sync_mode = 'periodic';
SELECT grouplog.sync_mode();
SET grouplog.sync_mode = 'never';
RESET grouplog.sync_mode;

-- One append in each mode.  All but periodic wait until the record is durable.
SELECT grouplog.append('batch', 'batch') AS lsn \gset
SELECT durable_lsn > :'lsn' AS durable FROM grouplog.status;
SELECT grouplog.append('group', 'group') AS lsn \gset
SELECT durable_lsn > :'lsn' AS durable FROM grouplog.status;
SELECT grouplog.append('adaptive', 'adaptive') AS lsn \gset
SELECT durable_lsn > :'lsn' AS durable FROM grouplog.status;
SELECT grouplog.append('batch'::bytea, 'batch') AS lsn \gset
SELECT durable_lsn > :'lsn' AS durable FROM grouplog.status;
SELECT grouplog.append('periodic', 'periodic') AS lsn \gset
SELECT grouplog.wait_durable(:'lsn');
SELECT payload FROM grouplog.read_text(:'start');

-- Windows: ten records of a lone session wait ten windows, short or long.
SET grouplog.group_window = '50ms';
SELECT clock_timestamp() AS before \gset
SELECT count(grouplog.append('long', 'group')) FROM generate_series(1, 10);
SELECT clock_timestamp() - :'before' >= '500ms' AS waited;
SET grouplog.group_window = '200us';
SELECT count(grouplog.append('short', 'group')) FROM generate_series(1, 10);
RESET grouplog.group_window;

-- Counted by mode.
SELECT grouplog.stat_reset();
SELECT count(grouplog.append('12345', mode))
FROM unnest(ARRAY['periodic', 'batch', 'group', 'adaptive']) AS mode, generate_series(1, 3);
SELECT grouplog.append_batch_text(ARRAY['1', '2'], 'batch') IS NOT NULL AS appended;
SELECT grouplog.append_async('1') IS NOT NULL AS appended;
SELECT sync_mode, appends, append_bytes, waits, wait_time > 0 AS waited
FROM grouplog.stat_sync_mode ORDER BY sync_mode;
