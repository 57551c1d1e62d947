-- Append, and read it back.
SELECT grouplog.append('begin') AS start \gset

-- LSNs rise, and an append returns when its record can be read.
SELECT grouplog.append('first') AS first \gset
SELECT grouplog.append('second') AS second \gset
SELECT :'first'::pg_lsn > :'start' AS above, :'second'::pg_lsn > :'first' AS rising;
SELECT payload, lsn = :'first' AS is_first, lsn = :'second' AS is_second
FROM grouplog.read_text(:'start');

-- It is durable: flushing has nothing left to do, and its end lies behind it.
SELECT durable_lsn > :'second' AS durable, written_lsn >= durable_lsn AS written FROM grouplog.status;
SELECT grouplog.flush() >= :'second' AS flushed;

-- Text and binary payloads, NUL bytes, the empty payload.
SELECT grouplog.append('\x00ff00'::bytea) AS binary \gset
SELECT grouplog.append('') AS empty \gset
SELECT grouplog.append(''::bytea) AS empty_bytea \gset
SELECT payload, length(payload) FROM grouplog.read(:'second');
SELECT payload, length(payload) FROM grouplog.read_text(:'binary');

-- A call without casts appends text.
SELECT grouplog.append('\x6869') AS text \gset
SELECT payload FROM grouplog.read_text(:'empty_bytea');

-- What was appended as text can be read as bytes, and the other way round.
SELECT grouplog.append('\x6869'::bytea) AS bytes \gset
SELECT r.payload AS bytea, t.payload AS text
FROM grouplog.read(:'text') AS r JOIN grouplog.read_text(:'text') AS t USING (lsn);

-- Time: of the append, in the order of the LSNs.
SELECT bool_and(recorded_at BETWEEN pg_postmaster_start_time() AND clock_timestamp()) AS plausible,
  bool_and(recorded_at >= previous) AS ordered
FROM (SELECT recorded_at, lag(recorded_at, 1, '-infinity') OVER (ORDER BY lsn) AS previous
  FROM grouplog.read(:'start')) AS r;

-- Sizes around the granule of 32 bytes, and one that was compressed or moved out
-- of line in its table.
CREATE TEMP TABLE document (body text);
ALTER TABLE document ALTER body SET STORAGE EXTENDED;
INSERT INTO document VALUES (repeat('compress me ', 5000));
ALTER TABLE document ALTER body SET STORAGE EXTERNAL;
INSERT INTO document SELECT string_agg(md5(i::text), '') FROM generate_series(1, 1000) AS i;
SELECT grouplog.append('sizes') AS sizes \gset
SELECT count(grouplog.append(repeat('x', n))) FROM generate_series(0, 100) AS n;
SELECT count(grouplog.append(body)) FROM document;
SELECT bool_and(payload = repeat('x', length(payload))), count(DISTINCT length(payload))
FROM grouplog.read_text(:'sizes') WHERE payload ~ '^x*$';
SELECT count(*) FROM grouplog.read_text(:'sizes') AS r JOIN document AS d ON r.payload = d.body;

-- Asynchronously: durable when wait_durable says so.
SELECT grouplog.append_async('later') AS later \gset
SELECT grouplog.append_async('\x00'::bytea) AS later_bytea \gset
SELECT grouplog.wait_durable(:'later'), grouplog.wait_durable(:'later_bytea', '1 minute');
SELECT payload FROM grouplog.read(:'later');

-- Known to be durable already: even a timeout of nothing is enough.
SELECT grouplog.wait_durable(:'later', '0');
