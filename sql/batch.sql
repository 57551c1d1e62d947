-- Batches: all in order, one wait.
SELECT grouplog.append('begin') AS start \gset

SELECT grouplog.append_batch(ARRAY['\x01', '\x', '\x03']::bytea[]) AS last \gset
SELECT payload, lsn = :'last' AS last FROM grouplog.read(:'start');
SELECT grouplog.append_batch_text(ARRAY['one', '', 'three']) AS text \gset
SELECT payload, lsn = :'text' AS last FROM grouplog.read_text(:'last');

-- In a named mode.
SELECT grouplog.append_batch('{a,b}', 'batch') AS last \gset
SELECT durable_lsn > :'last' AS durable FROM grouplog.status;
SELECT grouplog.append_batch_text('{c,d}', 'group') AS last \gset
SELECT durable_lsn > :'last' AS durable FROM grouplog.status;
SELECT grouplog.append_batch_text('{e,f}', sync => 'periodic') AS last \gset
SELECT grouplog.wait_durable(:'last');
SELECT string_agg(payload, ',' ORDER BY lsn) FROM grouplog.read_text(:'text');

-- Slices and other lower bounds are arrays like others.
SELECT grouplog.append('slices') AS slices \gset
SELECT grouplog.append_batch_text((ARRAY['a', 'b', 'c', 'd'])[2:3]) IS NOT NULL AS appended;
SELECT grouplog.append_batch_text('[5:6]={e,f}') IS NOT NULL AS appended;
SELECT string_agg(payload, ',' ORDER BY lsn) FROM grouplog.read_text(:'slices');

-- Larger than the ring, and than a file of the log.
SELECT grouplog.append('large') AS large \gset
SELECT sum(length(p)) > pg_size_bytes(current_setting('grouplog.buffers')) AS larger_than_the_ring,
  grouplog.append_batch_text(array_agg(p ORDER BY i)) AS last
FROM (SELECT i, i || repeat('.', 1000) AS p FROM generate_series(1, 2000) AS i) AS payloads \gset
SELECT :'larger_than_the_ring' AS larger_than_the_ring;
SELECT count(*), bool_and(payload = n || repeat('.', 1000)) AS as_appended, max(lsn) = :'last' AS last
FROM (SELECT lsn, payload, row_number() OVER (ORDER BY lsn) AS n
  FROM grouplog.read_text(:'large')) AS r;

-- A batch that ends in the file after the one it began in is not left waiting
-- until grouplog.sync_period is over.
SELECT grouplog.flush() IS NOT NULL AS flushed;
SELECT flushes_period AS before FROM grouplog.stat \gset
DO $$
BEGIN
  FOR i IN 1..20 LOOP
    PERFORM grouplog.append_batch_text(array_agg(repeat('.', 1000))) FROM generate_series(1, 1200);
  END LOOP;
END
$$;
SELECT flushes_period - :before AS waited_for_the_period FROM grouplog.stat;

-- Refused before anything is appended.
SELECT grouplog.append('refused') AS refused \gset
\x on
SELECT * FROM error_of($$SELECT grouplog.append_batch('{}')$$);
SELECT * FROM error_of($$SELECT grouplog.append_batch_text('{}', 'batch')$$);
SELECT * FROM error_of($$SELECT grouplog.append_batch(NULL)$$);
SELECT * FROM error_of($$SELECT grouplog.append_batch_text(NULL)$$);
SELECT * FROM error_of($$SELECT grouplog.append_batch(ARRAY['a', NULL, 'c']::bytea[])$$);
SELECT * FROM error_of($$SELECT grouplog.append_batch_text('[7:9]={a,b,NULL}')$$);
SELECT * FROM error_of($$SELECT grouplog.append_batch_text('{{a,b},{c,d}}')$$);
SELECT * FROM error_of($$SELECT grouplog.append_batch_text('{a,b}', 'sometimes')$$);
SELECT * FROM error_of($$SELECT grouplog.append_batch_text('{a,b}', NULL)$$);
SELECT * FROM error_of($$SELECT grouplog.append_batch_text(ARRAY['small', repeat('x', 65536)])$$);
\x off
SELECT count(*) FROM grouplog.read(:'refused');
