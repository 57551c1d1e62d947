-- Reading: what is durable, in order, row by row.
SELECT grouplog.append('begin') AS start \gset
SELECT grouplog.append_batch_text(array_agg(i::text ORDER BY i)) AS last FROM generate_series(1, 1000) AS i \gset

-- read is inlined: no Function Scan, which would collect all rows first.
EXPLAIN (COSTS OFF) SELECT * FROM grouplog.read();
EXPLAIN (COSTS OFF) SELECT payload FROM grouplog.read_text('0/1', 10) LIMIT 1;
EXPLAIN (COSTS OFF) SELECT r.payload
FROM (VALUES ('0/1'::pg_lsn), ('0/2')) AS v (lsn), LATERAL grouplog.read(v.lsn) AS r;

-- So LIMIT 1 asks for one row.  (PostgreSQL 18 writes a number of rows with a fraction.)
CREATE FUNCTION pg_temp.plan_with_rows(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
    RETURN NEXT replace(line, '.00 loops', ' loops');
  END LOOP;
END
$$;
SELECT * FROM pg_temp.plan_with_rows(format('SELECT * FROM grouplog.read(%L) LIMIT 1', :'start'));

-- With bounds.
SELECT payload FROM grouplog.read_text(:'start', 3);
SELECT payload FROM grouplog.read_text(after => :'start', max_records => 1);
SELECT payload FROM grouplog.read_text(:'start') OFFSET 998;
SELECT count(*) FROM grouplog.read(:'start', 0);
SELECT count(*) FROM grouplog.read(:'start', 5000);
SELECT count(*) FROM grouplog.read(:'start', NULL);
SELECT count(*) > 1000 AS more FROM grouplog.read(max_records => 1001);

-- Between two records: the next one.  At the last one: nothing.
SELECT payload FROM grouplog.read_text(:'start'::pg_lsn + 1, 1);
SELECT payload FROM grouplog.read_text(:'start'::pg_lsn - 1, 1);
SELECT count(*) FROM grouplog.read(:'last');

-- Page by page.
SELECT lsn AS page FROM grouplog.read(:'start', 400) ORDER BY lsn DESC LIMIT 1 \gset
SELECT min(payload::int), max(payload::int) FROM grouplog.read_text(:'page', 400);

-- Joined, correlated, in an expression, prepared.
SELECT v.n, r.payload
FROM (VALUES (1), (2)) AS v (n), LATERAL grouplog.read_text(:'start', v.n) AS r ORDER BY 1, r.lsn;
SELECT (grouplog.read_text(:'start', 2)).payload;
SELECT payload FROM grouplog.read_text((SELECT :'start'::pg_lsn), 2);
PREPARE page (pg_lsn, bigint) AS SELECT payload FROM grouplog.read_text($1, $2);
EXECUTE page (:'start', 2);
EXECUTE page (:'page', 1);
DEALLOCATE page;

-- Any payload reads as bytea; as text only what is text.
SELECT grouplog.append('fine') AS fine \gset
SELECT grouplog.append('\x610062'::bytea) AS nul \gset
SELECT payload FROM grouplog.read(:'last');
\x on
-- (the message names the database's encoding)
SELECT state, detail, hint FROM error_of(format('SELECT * FROM grouplog.read_text(%L)', :'last'));
SELECT * FROM error_of('SELECT * FROM grouplog.read(max_records => -1)');
SELECT * FROM error_of('SELECT * FROM grouplog.read_text(max_records => -1)');
SELECT * FROM error_of('SELECT * FROM grouplog.read(''FFFFFFFF/0'')');
\x off
SELECT payload FROM grouplog.read_text(:'last', 1);

-- The functions beneath.
SELECT encode(payload, 'escape') FROM grouplog.read_records(:'last', 1);
SELECT payload FROM grouplog.read_text_records(:'last', 1);
