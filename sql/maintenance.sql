-- Truncate, verify, reset.
SELECT grouplog.append('begin') AS start \gset

-- Everything checks.
SELECT bool_and(ok) AS ok, count(bad_lsn) AS bad, count(reason) AS reasons,
  sum(records) >= (SELECT count(*) FROM grouplog.read()) AS records
FROM grouplog.verify();
SELECT v.file = s.file AS file, v.first_lsn = s.first_lsn AS first_lsn, v.file_bytes = s.file_bytes AS bytes
FROM grouplog.verify() AS v JOIN grouplog.segments AS s USING (number)
GROUP BY 1, 2, 3;

-- From the beginning: NULL and 0/0 are the same until something is removed.
SELECT a.lsn = b.lsn AS same
FROM grouplog.read(NULL, 1) AS a, grouplog.read('0/0', 1) AS b;

-- Three files' worth of records, and one in the middle.
SELECT grouplog.append('old') AS old \gset
SELECT grouplog.append_batch_text(array_agg(i || repeat('.', 32000))) IS NOT NULL AS appended
FROM generate_series(1, 50) AS i;
SELECT grouplog.append('middle') AS middle \gset
SELECT grouplog.append_batch_text(array_agg(i || repeat('.', 32000))) IS NOT NULL AS appended
FROM generate_series(51, 100) AS i;
SELECT grouplog.append('new') AS new \gset
SELECT count(*) >= 3 AS files, bool_and(ok) AS ok FROM grouplog.verify();

-- Files are numbered in order, and each begins where the one before it ends.
SELECT bool_and(next_number = number + 1) AS numbers, bool_and(next_lsn = end_lsn) AS adjacent
FROM (SELECT number, end_lsn, lead(number) OVER w AS next_number, lead(first_lsn) OVER w AS next_lsn
  FROM grouplog.segments WINDOW w AS (ORDER BY number)) AS s
WHERE next_number IS NOT NULL;

-- Nothing ends at or before the beginning.
SELECT grouplog.truncate('0/0'), grouplog.truncate('0/1');

-- Whole files only: what lies before the middle goes, as far as files end there.
SELECT count(*) AS expected FROM grouplog.segments WHERE end_lsn <= :'middle' \gset
SELECT count(*) AS files, sum(file_bytes) AS bytes FROM grouplog.segments \gset
SELECT grouplog.truncate(:'middle') AS freed \gset
SELECT :freed > 0 AS freed;
SELECT :files - count(*) = :expected AS files, min(end_lsn) > :'middle' AS only_files_before
FROM grouplog.segments;
SELECT oldest_lsn <= :'middle' AND oldest_lsn > :'old' AS oldest FROM grouplog.status;
SELECT grouplog.truncate(:'middle');
SELECT bool_and(ok) AS ok FROM grouplog.verify();

-- Readers: from NULL the oldest there is; after a removed record an error.
SELECT lsn >= (SELECT oldest_lsn FROM grouplog.status) AS kept
FROM grouplog.read_text(NULL, 1) WHERE payload <> '';
SELECT payload FROM grouplog.read_text() WHERE payload IN ('old', 'middle', 'new');
SELECT count(*) FROM grouplog.read_text(:'middle');
\x on
SELECT * FROM error_of(format('SELECT * FROM grouplog.read(%L)', :'start'));
SELECT * FROM error_of('SELECT * FROM grouplog.read(''0/1'')');
SELECT * FROM error_of(format('SELECT grouplog.truncate(%L::pg_lsn + 10000000)', :'new'));
\x off

-- A removed record was durable.
SELECT grouplog.wait_durable(:'old');

-- The file that is being written stays.
SELECT grouplog.truncate(:'new') IS NOT NULL AS truncated;
SELECT payload FROM grouplog.read_text() WHERE payload = 'new';
SELECT count(*) >= 1 AS files FROM grouplog.segments;
SELECT grouplog.append('after') AS after \gset
SELECT payload FROM grouplog.read_text(:'new');

-- Counted; and reset.
SELECT segments_created > 0 AS created, segments_removed + segments_recycled >= :expected AS given_back
FROM grouplog.stat;
SELECT stats_reset AS before FROM grouplog.stat \gset
SELECT grouplog.stat_reset();
SELECT appends, segments_removed, stats_reset > :'before' AS reset FROM grouplog.stat;
