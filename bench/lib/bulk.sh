# shellcheck shell=bash
# bulk.sh: one session, many records: what a batch, a statement, a reader and a
# recovery get through.
# shellcheck disable=SC2154 # from bench/run

# timed SQL: runs it, prints the seconds that it took
timed() {
  "$bin/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h "$work/run" -U "$server_user" -d bench \
    -c '\timing on' -c "$1" | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | awk '{ print $1 / 1000 }'
}

# per COUNT SECONDS [DIGITS]
per() {
  awk -v n="$1" -v s="$2" -v format="%.${3:-0}f" 'BEGIN { if (s > 0) printf format, n / s }'
}

# batches NAME: loads of 1,000 records of 4 kB a call, in MB a second
batches() {
  local calls=60 s

  s=$(timed "SELECT count(grouplog.append_batch(a)) FROM
    (SELECT array_fill(decode(repeat('ab', 4096), 'hex'), ARRAY[1000]) AS a OFFSET 0) AS s, generate_series(1, $calls)")
  figure bulk "$1" "$(per "$((calls * 4096 / 1000))" "$s" 1)" "MB/s"
}

# fio_beside NAME: the disk's own rate, in the same round
fio_beside() {
  command -v fio >/dev/null || return 0
  fio_write "$work/own" "beside $1: 1 MB writes in sequence, direct"
  rm -f "$work/own/fio.file"
}

# fio_read_beside NAME FILE: the disk's own rate over the same bytes
fio_read_beside() {
  local kb

  command -v fio >/dev/null || return 0
  kb=$(fio_reads "$2")
  [ -z "$kb" ] || figure bulk "beside $1: 1 MB reads in sequence, direct" "$(awk -v kb="$kb" 'BEGIN { printf "%.1f", kb * 1024 / 1e6 }')" "MB/s"
}

theme_bulk() {
  local records=1000000 s flushed after text=${letters:0:32} bytes

  say "bulk, $bulk_rounds rounds"
  after=$(query "SELECT grouplog.flush()")
  query "SELECT count(grouplog.append_async(decode(repeat('ab', 100), 'hex'))) FROM generate_series(1, $records)" \
    "SELECT grouplog.flush()" >/dev/null
  # the first time it comes from the disk
  timed "SELECT count(*) FROM grouplog.read('$after', $records)" >/dev/null

  for ((round = 1; round <= bulk_rounds; round++)); do
    fio_beside append_batch
    batches "append_batch, 1,000 records of 4 kB a call"

    s=$(timed "SELECT count(grouplog.append_async('$text'::text)) FROM generate_series(1, $records)")
    flushed=$(timed "SELECT grouplog.flush()")
    figure bulk "append_async in one statement, 32 bytes" "$(per "$records" "$s")" "records/s"
    figure bulk "the same and a flush" "$(awk -v a="$s" -v b="$flushed" -v n="$records" 'BEGIN { printf "%.0f", n / (a + b) }')" "records/s"
    s=$(timed "INSERT INTO records SELECT '$text' FROM generate_series(1, $records)")
    figure bulk "INSERT ... SELECT in one statement, 32 bytes" "$(per "$records" "$s")" "records/s"
    s=$(timed "SELECT count(f) FROM (SELECT pg_backend_pid() AS f FROM generate_series(1, $records) OFFSET 0) AS s")
    figure bulk "a C function that does nothing, in one statement" "$(per "$records" "$s")" "calls/s"

    s=$(timed "SELECT count(*) FROM grouplog.read('$after', $records)")
    figure bulk "read, 100 bytes" "$(per "$records" "$s")" "records/s"
    s=$(timed "SELECT count(*) FROM records")
    figure bulk "SELECT count(*) of a table, 32 bytes" "$(per "$((records * round))" "$s")" "rows/s"
  done
  round=1
  query "TRUNCATE records"

  bytes=$(query "SELECT sum(end_lsn - first_lsn) FROM grouplog.verify()")
  for ((round = 1; round <= bulk_rounds; round++)); do
    s=$(timed "SELECT count(*) FROM grouplog.verify()")
    figure bulk "verify, from page cache" "$(per "$bytes" "$(awk -v s="$s" 'BEGIN { print s * 1e6 }')" 1)" "MB/s"
  done
  round=1

  # fio writes over what was written before; a log that keeps its size does so too
  query "ALTER SYSTEM SET grouplog.max_size = '512MB'" "ALTER SYSTEM SET grouplog.on_full = recycle" \
    "SELECT pg_reload_conf()" >/dev/null
  for _ in 1 2 3; do
    timed "SELECT count(grouplog.append_batch(array_fill(decode(repeat('ab', 4096), 'hex'), ARRAY[1000]))) FROM generate_series(1, 60)" >/dev/null
  done
  for ((round = 1; round <= bulk_rounds; round++)); do
    fio_beside "append_batch into files used again"
    batches "append_batch, the same into files used again"
  done
  round=1
  query "ALTER SYSTEM RESET grouplog.max_size" "ALTER SYSTEM RESET grouplog.on_full"
  theme_recovery
}

# Recovery checks every record of the files that may hold the end, so one large
# file is filled; then the server is stopped as by a crash, time and again, and each
# time the disk reads that file by itself before. From the server being ready, when
# the writer begins, until it says what it found.
theme_recovery() {
  local line from to checked server_log file

  server_log=${data%/*}/server.log
  query "ALTER SYSTEM SET grouplog.segment_size = '$recovery_segment'"
  stop_server
  start_server
  wait_until_open
  query "SELECT count(grouplog.append_async(decode(repeat('ab', 100), 'hex'))) FROM generate_series(1, $recovery_records)" \
    "SELECT grouplog.flush()" >/dev/null
  file=$(query "SELECT file FROM grouplog.segments ORDER BY number DESC LIMIT 1")
  for ((round = 1; round <= bulk_rounds; round++)); do
    stop_server immediate
    fio_read_beside recovery "$data/grouplog/$file"
    : >"$server_log"
    start_server
    wait_until_open
    line=$(grep 'grouplog recovery:' "$server_log" | tail -n 1)
    checked=$(sed -n 's/.* \([0-9]*\) records checked.*/\1/p' <<<"$line")
    if [ -z "$checked" ]; then
      failed "bulk recovery" "the server's log says nothing of it"
      break
    fi
    from=$(date -d "$(grep 'database system is ready' "$server_log" | tail -n 1 | cut -d ' ' -f 1-3)" +%s%3N)
    to=$(date -d "$(cut -d ' ' -f 1-3 <<<"$line")" +%s%3N)
    # 100 bytes and a header take 160 bytes of the log
    if [ "$to" -gt "$from" ]; then
      figure bulk "recovery, 100-byte records" "$(per "$((checked * 160))" "$(((to - from) * 1000))" 1)" "MB/s"
    fi
  done
  round=1
}
