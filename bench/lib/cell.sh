# shellcheck shell=bash
# cell.sh: one cell: one kind of work, a number of clients, a payload size, some
# seconds; and a matrix of cells, interleaved.
# shellcheck disable=SC2154 # from bench/run

cores=$(nproc)
letters=$(printf 'grouplog%.0s' {1..512})
round=1
situation=
delay_us=0
delay_siblings=5

# the payload in a statement: a parameter, or too long for a command line
payload_sql() {
  if [ "$payload" -le 4096 ]; then
    echo ":payload::text"
  else
    echo "repeat('x', $payload)"
  fi
}

# variant NAME: sets options (the session's settings), keys (records a call), and
# writes the script
variant() {
  local p

  p=$(payload_sql)
  options=
  keys=1
  case $1 in
    insert_delay | tune) options="-c commit_delay=$delay_us -c commit_siblings=$delay_siblings" ;;
    insert_async) options="-c synchronous_commit=off" ;;
    periodic | batch | group | adaptive) options="-c grouplog.sync_mode=$1" ;;
    *_100 | *_100_*) keys=100 ;;
    *_10 | *_10_*) keys=10 ;;
  esac
  case $1 in
    select) echo "SELECT pg_backend_pid();" ;;
    sleep) echo "SELECT pg_sleep(0.001);" ;;
    insert | insert_delay | insert_async | tune) echo "INSERT INTO records VALUES ($p);" ;;
    message) echo "SELECT pg_logical_emit_message(true, 'bench', $p);" ;;
    periodic | batch | group | adaptive) echo "SELECT grouplog.append($p);" ;;
    insert_100) echo "INSERT INTO records SELECT $p FROM generate_series(1, 100);" ;;
    append_batch_100) echo "SELECT grouplog.append_batch_text(array_fill($p, ARRAY[100]));" ;;
    append_async_100)
      echo "SELECT count(grouplog.append_async($p)) FROM generate_series(1, 100);"
      echo "SELECT grouplog.flush();"
      ;;
    insert_pipeline_10 | append_pipeline_10 | append_async_pipeline_10)
      printf '%s\n' '\startpipeline'
      for _ in 1 2 3 4 5 6 7 8 9 10; do
        case $1 in
          insert*) echo "INSERT INTO records VALUES ($p);" ;;
          append_pipe*) echo "SELECT grouplog.append($p);" ;;
          *) echo "SELECT grouplog.append_async($p);" ;;
        esac
      done
      [ "$1" != append_async_pipeline_10 ] || echo "SELECT grouplog.flush();"
      printf '%s\n' '\endpipeline'
      ;;
    *) die "there is no variant $1" ;;
  esac >"$work/tmp/script.sql"
}

# failed WHAT [WHY]: a word on the screen and in the report
failed() {
  say "failed: $1${2:+: $2}"
  printf '%s\n' "$1${2:+: ${2//$'\n'/; }}" >>"$out/failed"
}

# What the server counted since the last time: records and syncs of grouplog, or
# of commits the syncs alone.
counters() {
  local now

  now=$(query "SELECT records, groups, (SELECT wal_sync FROM pg_stat_wal) FROM grouplog.stat") || return 1
  # shellcheck disable=SC2086
  set -- $now
  counted_records=$(($1 - last_records))
  counted_groups=$(($2 - last_groups))
  counted_wal=$(($3 - last_wal))
  last_records=$1 last_groups=$2 last_wal=$3
}

counters_reset() {
  last_records=0 last_groups=0 last_wal=0
  counters
}

# cell THEME VOLUME VARIANT CLIENTS PAYLOAD SECONDS [OFFERED RATE]
cell() {
  local theme=$1 volume=$2 name=$3 clients=$4 payload=$5 seconds=$6 offered=${7:-}
  local options keys threads=$cores time until line counted=() rate=() define=()

  if [ "$name" = redis ]; then
    redis_cell "$theme" "$volume" "$clients" "$payload" "$seconds"
    return
  fi
  [ "$clients" -ge "$threads" ] || threads=$clients
  variant "$name"
  [ -z "$offered" ] || rate=(--rate "$offered")
  [ "$payload" -gt 4096 ] || define=(-D "payload=${letters:0:$payload}")
  rm -f "$work"/tmp/log.*
  # the time that pgbench keeps begins before its clients connect
  time=$((seconds + clients / 64))
  until=$(date -d "+$time seconds" +%s.%N)
  if ! (cd "$work/tmp" && PGOPTIONS=$options "$bin/pgbench" -n -M prepared -h "$work/run" -U "$server_user" \
    -c "$clients" -j "$threads" -T $time "${rate[@]}" "${define[@]}" -f script.sql \
    -l --log-prefix=log bench >pgbench.out 2>pgbench.err) ||
    ! line=$(perl "$bench/lib/latency.pl" "$keys" "$until" "$work"/tmp/log.*); then
    failed "$theme $volume $name, $clients clients, $payload bytes" \
      "$(grep -v '^pgbench (' "$work/tmp/pgbench.err" | head -n 3)"
    counters || die "the server does not answer"
    return 0
  fi
  # sessions report their syncs when they end
  [ "$clients" -lt 32 ] || sleep 0.05
  counters || die "the server does not answer"
  case $name in
    select | sleep) counted=('' '') ;;
    insert* | message | tune) counted=('' "$counted_wal") ;;
    *) counted=("$counted_records" "$counted_groups") ;;
  esac
  # shellcheck disable=SC2086
  csv cells "$theme" "$name" "$clients" "$payload" "$situation" "$round" "$offered" "$seconds" $line "${counted[@]}"
}

# the rate of the last cell, if it is of THEME
last_rate() { # THEME
  tail -n 1 "$out/cells.csv" | awk -F , -v theme="$1" '$1 == theme { print $10 }'
}

# within LIMIT LAST: is there time for another LAST seconds before LIMIT?
within() {
  [ "$size" = full ] || [ $((SECONDS - begin + $2)) -le "$1" ]
}

# matrix THEME VOLUME ROUNDS LIMIT CELL...: each cell "VARIANT CLIENTS PAYLOAD
# SECONDS"; all of them, ROUNDS times over. Within a round the order is turned a
# little further each time. In a short run a round that would not end before LIMIT
# (in seconds from the begin) is left out.
matrix() {
  local theme=$1 volume=$2 rounds=$3 limit=$4 from took=0 i n
  local cells

  shift 4
  cells=("$@")
  n=${#cells[@]}
  for ((round = 1; round <= rounds; round++)); do
    if [ "$round" -gt 1 ] && ! within "$limit" "$took"; then
      say "$theme: no time for round $round of $rounds"
      break
    fi
    say "$theme, round $round of $rounds: $n cells"
    from=$SECONDS
    for ((i = 0; i < n; i++)); do
      # shellcheck disable=SC2086
      set -- ${cells[(i + (round - 1) * 3) % n]}
      case $round-$1 in
        [123]-*) ;;
        *-insert_delay | *-message | *-redis | *-group) continue ;;
      esac
      cell "$theme" "$volume" "$@"
    done
    took=$((SECONDS - from))
    query "TRUNCATE records"
    redis_clear
  done
  round=1
}

# cells_of CLIENTS PAYLOADS SECONDS VARIANT...: prints a cell a line, peers next to each other
cells_of() {
  local clients payload c p v seconds

  clients=$1 payload=$2 seconds=$3
  shift 3
  for p in $payload; do
    for c in $clients; do
      for v in "$@"; do
        echo "$v $c $p $seconds"
      done
    done
  done
}

# The best of some values of commit_delay, at 8 clients.
tune_commit_delay() {
  local volume=$1 best=0 rate value chosen_delay

  shift
  chosen_delay=$1
  for value in "$@"; do
    delay_us=${value%/*}
    delay_siblings=${value#*/}
    cell tuning "$volume" tune 8 32 1
    rate=$(last_rate tuning)
    # a cell that failed has no line
    [ -n "$rate" ] || continue
    sed -i '$d' "$out/cells.csv"
    if [ "${rate%.*}" -gt "$best" ]; then
      best=${rate%.*}
      chosen_delay=$value
    fi
  done
  delay_us=${chosen_delay%/*}
  delay_siblings=${chosen_delay#*/}
  record "commit_delay, $volume" "$delay_us µs, commit_siblings $delay_siblings: the best of $* at 8 clients"
}
