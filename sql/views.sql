-- The views: their columns, and what they say after known work.
SELECT c.relname AS view, a.attname AS "column", format_type(a.atttypid, NULL) AS type,
  col_description(c.oid, a.attnum) AS comment
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = 'grouplog'::regnamespace AND c.relkind = 'v'
ORDER BY c.relname COLLATE "C", a.attnum;

-- From nothing.
SELECT grouplog.flush() IS NOT NULL AS flushed;
-- (The writer counts a group after it has released those who waited for it; when it
-- answers a request it has counted all before.)
SELECT grouplog.truncate('0/1') AS counted;
SELECT now() AS before \gset
SELECT grouplog.stat_reset();
SELECT appends, append_bytes, append_waits, append_wait_time, groups, records, log_bytes,
  writes, write_bytes, syncs, sync_time, buffers_full, appends_refused, write_errors, sync_errors,
  stats_reset >= :'before' AS just_reset
FROM grouplog.stat;
SELECT operation, count, mean, p50, p95, p99, p99_9, max, stats_reset >= :'before' AS just_reset
FROM grouplog.stat_latency;
SELECT measure, count, mean, p50, p95, p99, p99_9, max, stats_reset >= :'before' AS just_reset
FROM grouplog.stat_group;
SELECT sync_mode, appends, append_bytes, waits, wait_time, stats_reset >= :'before' AS just_reset
FROM grouplog.stat_sync_mode;
SELECT count(*) FROM grouplog.stat_latency_histogram;

-- Ten appends in sync mode batch by a lone session: ten groups of one.
SELECT count(grouplog.append('12345', 'batch')) FROM generate_series(1, 10);
SELECT grouplog.truncate('0/1') AS counted;
SELECT appends, append_bytes, append_waits, append_wait_time > 0 AS waited, groups, records,
  log_bytes >= 10 * 64 AS log_bytes, writes, write_bytes >= 10 * 4096 AS whole_blocks, write_time > 0 AS wrote,
  flushes_batch + flushes_lone AS flushes, buffers_full, lag_waits, appends_refused, outcomes_unknown,
  write_errors, sync_errors, continuations
FROM grouplog.stat;
SELECT flushes_request + flushes_bytes + flushes_batch + flushes_window + flushes_period
  + flushes_joined + flushes_patience + flushes_lone = groups AS every_flush_has_a_reason
FROM grouplog.stat;
SELECT sync_mode, appends, append_bytes, waits, wait_time > 0 AS waited
FROM grouplog.stat_sync_mode;
SELECT operation, count, mean > 0 AS mean, p50 <= p95 AND p95 <= p99 AND p99 <= p99_9 AND p99_9 <= max AS rising
FROM grouplog.stat_latency WHERE operation = 'append_wait';
SELECT measure, count, p50, max >= p50 AS max FROM grouplog.stat_group;

-- Histograms: every measurement is in one bucket, buckets are narrow.
SELECT l.operation, l.count, l.count = h.count AS same_count,
  h.low <= l.p50 AND l.max <= h.high AS within, h.narrow
FROM grouplog.stat_latency AS l
  JOIN (SELECT operation, sum(count) AS count, min(low_time) AS low, max(high_time) AS high,
      bool_and(high_time <= low_time * 1.04) AS narrow
    FROM grouplog.stat_latency_histogram GROUP BY operation) AS h USING (operation)
WHERE l.operation = 'append_wait';

-- Everything flushes for a reason.
SELECT grouplog.stat_reset();
SELECT grouplog.append('x', 'group') IS NOT NULL AS appended;
SELECT grouplog.append('x', 'adaptive') IS NOT NULL AS appended;
SELECT grouplog.append_async('x') IS NOT NULL AS appended;
SELECT grouplog.flush() IS NOT NULL AS flushed;
SELECT grouplog.truncate('0/1') AS counted;
SELECT flushes_window, flushes_joined + flushes_patience + flushes_lone >= 1 AS adaptive, groups BETWEEN 3 AND 4 AS groups
FROM grouplog.stat;

-- The state.
SELECT state, refusal, problem, last_error FROM grouplog.status;
SELECT insert_lsn >= durable_lsn AS insert, written_lsn >= durable_lsn AS written,
  durable_lsn > oldest_lsn AS durable, run_start_lsn < insert_lsn AS run_start,
  log_id ~ '^[0-9a-f]{16}$' AS log_id, epoch >= 1 AS epoch, holes_end_lsn
FROM grouplog.status;
SELECT io_method IN ('io_uring', 'sync') AS io_method,
  io_method = current_setting('grouplog.io_method') OR io_method_reason IS NOT NULL AS io_reason,
  sync_method IN ('open_datasync', 'fdatasync') AS sync_method,
  sync_method = current_setting('grouplog.sync_method') OR sync_method_reason IS NOT NULL AS sync_reason,
  fsync = current_setting('fsync')::boolean AS fsync
FROM grouplog.status;
SELECT directory = current_setting('data_directory') || '/grouplog' AS directory,
  directory_bytes >= segment_bytes AS directory_bytes,
  buffer_bytes = pg_size_bytes(current_setting('grouplog.buffers')) AS buffer_bytes,
  segment_bytes = pg_size_bytes(current_setting('grouplog.segment_size')) AS segment_bytes,
  recovery IS NOT NULL AS recovery
FROM grouplog.status;

-- The writer is a process that everyone can see.
SELECT a.backend_type, a.datname, a.pid = s.writer_pid AS is_writer
FROM grouplog.status AS s JOIN pg_stat_activity AS a ON a.pid = s.writer_pid;

-- The files: one is being written.
SELECT count(*) > 0 AS some, bool_and(file ~ '^[0-9A-F]{8}-[0-9A-F]{16}\.seg$') AS names,
  bool_and(first_lsn < end_lsn) AS ranges, bool_and(file_bytes > 4096) AS sizes,
  count(*) FILTER (WHERE current) AS current, bool_and(created_at <= now()) AS created
FROM grouplog.segments;
SELECT s.end_lsn = t.durable_lsn AS ends_at_durable, s.first_lsn <= t.durable_lsn AS begins_before
FROM grouplog.segments AS s, grouplog.status AS t WHERE s.current;
SELECT min(s.first_lsn) = min(t.oldest_lsn) AS oldest, sum(s.file_bytes) <= min(t.directory_bytes) AS bytes
FROM grouplog.segments AS s, grouplog.status AS t;
