# shellcheck shell=bash
# cell.sh: one cell: one kind of work, a number of clients, a payload size, some
# seconds; and a matrix of cells, interleaved.
# shellcheck disable=SC2154 # from bench/run

cores=$(nproc)
letters=$(printf 'grouplog%.0s' {1..512})
round=1
situation=
few_delay=0/5
many_delay=0/5
declare -A tuned

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
  local p delay=$few_delay

  p=$(payload_sql)
  options=
  keys=1
  case $1 in
    insert_delay | tune)
      [ "$clients" -lt 32 ] || delay=$many_delay
      options="-c commit_delay=${delay%/*} -c commit_siblings=${delay#*/}"
      ;;
    group_5) options="-c grouplog.sync_mode=group -c grouplog.group_window=5ms" ;;
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
    periodic | batch | group | group_5 | adaptive) echo "SELECT grouplog.append($p);" ;;
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

# the processors' working time since the start, in hundredths of a second
cpu_time() {
  awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 }' /proc/stat
}

# cell THEME VOLUME VARIANT CLIENTS PAYLOAD SECONDS [OFFERED RATE]. Leaves its rate in
# cell_rate, empty if it failed. What the theme "tuning" measures is not kept.
cell() {
  local theme=$1 volume=$2 name=$3 clients=$4 payload=$5 seconds=$6 offered=${7:-}
  local options keys threads=$cores time until cpu line counted=() rate=() define=()

  cell_rate=
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
  cpu=$(cpu_time)
  if ! (cd "$work/tmp" && PGOPTIONS=$options "$bin/pgbench" -n -M prepared -h "$work/run" -U "$server_user" \
    -c "$clients" -j "$threads" -T "$time" "${rate[@]}" "${define[@]}" -f script.sql \
    -l --log-prefix=log bench >pgbench.out 2>pgbench.err) ||
    ! line=$(perl "$bench/lib/latency.pl" "$keys" "$until" "$work"/tmp/log.*); then
    failed "$theme $volume $name, $clients clients, $payload bytes" \
      "$(grep -v '^pgbench (' "$work/tmp/pgbench.err" | head -n 3)"
    counters || die "the server does not answer"
    return 0
  fi
  cpu=$(awk -v ticks=$(($(cpu_time) - cpu)) -v hz="$(getconf CLK_TCK)" -v calls="$(cut -f 11 <<<"$line")" \
    'BEGIN { printf "%.1f", ticks / hz * 1e6 / calls }')
  # sessions report their syncs when they end
  sleep 0.05
  counters || die "the server does not answer"
  case $name in
    select | sleep) counted=('' '') ;;
    insert* | message | tune) counted=('' "$counted_wal") ;;
    *) counted=("$counted_records" "$counted_groups") ;;
  esac
  cell_rate=$(cut -f 2 <<<"$line")
  [ "$theme" != tuning ] || return 0
  # shellcheck disable=SC2086
  csv cells "$theme" "$name" "$clients" "$payload" "$situation" "$round" "$offered" "$seconds" $line "${counted[@]}" "$cpu"
}

# within LIMIT LAST: is there time for another LAST seconds before LIMIT?
within() {
  [ "$size" = full ] || [ $((SECONDS - begin + $2)) -le "$1" ]
}

# matrix THEME VOLUME ROUNDS LIMIT CELL...: each cell "VARIANT CLIENTS PAYLOAD
# SECONDS [RATE]"; all of them, ROUNDS times over. Cells that stand together and have
# clients, payload and rate in common are peers, and stay together: a round begins with
# the next ones, and every other one goes through them backwards. In a short run a
# round that would not end before LIMIT (in seconds from the begin) is left out.
# Rounds are counted from first_round on.
first_round=1
matrix() {
  local theme=$1 volume=$2 rounds=$3 limit=$4 from took=0 i j n key last='' line
  local blocks=() cells

  shift 4
  for line in "$@"; do
    # shellcheck disable=SC2086
    key=$(printf '%s ' ${line#* })
    [ "$key" = "$last" ] || blocks+=("")
    last=$key
    blocks[${#blocks[@]} - 1]+="$line"$'\n'
  done
  n=${#blocks[@]}
  for ((round = first_round; round < first_round + rounds; round++)); do
    if [ "$round" -gt "$first_round" ] && ! within "$limit" "$took"; then
      say "$theme: no time for round $round"
      break
    fi
    say "$theme, round $((round - first_round + 1)) of $rounds: $# cells"
    from=$SECONDS
    for ((i = 0; i < n; i++)); do
      mapfile -t cells < <(printf %s "${blocks[(i + round - first_round) % n]}")
      for ((j = 0; j < ${#cells[@]}; j++)); do
        # shellcheck disable=SC2086
        cell "$theme" "$volume" ${cells[round % 2 ? j : ${#cells[@]} - 1 - j]}
      done
    done
    took=$((SECONDS - from))
    query "TRUNCATE records"
    redis_clear
    # WAL files for PostgreSQL to write over
    [ "$volume" != own ] || query CHECKPOINT
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

# tune_commit_delay VOLUME ROUNDS VALUE...: the best of some values of
# commit_delay/commit_siblings, for few clients (at 8) and for many (at 64).
tune_commit_delay() {
  local volume=$1 rounds=$2 clients value sum i best
  declare -A rates

  shift 2
  for clients in 8 64; do
    best=0
    for ((i = 0; i < rounds; i++)); do
      for value in "$@"; do
        few_delay=$value many_delay=$value
        cell tuning "$volume" tune "$clients" 32 1
        rates[$value]+="${cell_rate:-0} "
      done
    done
    for value in "$@"; do
      sum=$(tr ' ' '\n' <<<"${rates[$value]}" | awk '{ sum += $1 } END { printf "%.0f", sum }')
      rates[$value]=
      if [ "$sum" -ge "$best" ]; then
        best=$sum
        tuned[$clients]=$value
      fi
    done
  done
  few_delay=${tuned[8]} many_delay=${tuned[64]}
  record "commit_delay, $volume" "$few_delay (µs/commit_siblings) below 32 clients, $many_delay from there on: the best of $* at 8 and at 64 clients, by the sum of $rounds rounds"
}
