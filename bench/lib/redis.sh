# shellcheck shell=bash
# redis.sh: Redis on the same volume: XADD with appendfsync always.
# shellcheck disable=SC2154 # from bench/run

redis_home=
declare -A redis_rate

have_redis() {
  local tool

  for tool in redis-server redis-cli redis-benchmark; do
    command -v "$tool" >/dev/null || return 1
  done
}

# redis_start FOLDER
redis_start() {
  redis_home=
  have_redis || return 0
  redis_home=$1/redis
  as_server_user mkdir "$redis_home"
  (cd / && as_server_user redis-server --port 0 --unixsocket "$work/run/redis" --unixsocketperm 700 \
    --dir "$redis_home" --appendonly yes --appendfsync always --auto-aof-rewrite-percentage 0 \
    --save '' --maxclients 1000 --daemonize yes --pidfile "$redis_home/pid" \
    --logfile "$redis_home/log") >/dev/null 2>&1
  for _ in {1..50}; do
    [ "$(redis-cli -s "$work/run/redis" ping 2>/dev/null)" != PONG ] || return 0
    sleep 0.1
  done
  failed "redis-server on $1" "it did not start"
  redis_stop
}

redis_stop() {
  local pid

  [ -n "$redis_home" ] || return 0
  pid=$(cat "$redis_home/pid" 2>/dev/null)
  if [ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null; then
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
  fi
  rm -rf "$redis_home"
  redis_home=
}

redis_clear() {
  [ -z "$redis_home" ] || redis-cli -s "$work/run/redis" del s >/dev/null
}

# redis_run CLIENTS PAYLOAD CALLS: prints what redis-benchmark says
redis_run() {
  local client=(redis-benchmark -s "$work/run/redis" -c "$1" -n "$3" --precision 3)

  # at the end of a pipe its progress lines end in \r
  "${client[@]}" xadd s '*' f "${letters:0:$2}" 2>/dev/null | tr '\r' '\n'
}

# redis_cell THEME VOLUME CLIENTS PAYLOAD SECONDS. The client takes a number of
# calls, not a time: it is found by a short run.
redis_cell() {
  local theme=$1 volume=$2 clients=$3 payload=$4 seconds=$5 key calls line

  [ -n "$redis_home" ] && [ "$payload" -le 4096 ] || return 0
  key=$volume/$clients/$payload
  if [ -z "${redis_rate[$key]:-}" ]; then
    redis_rate[$key]=$(redis_run "$clients" "$payload" $((clients * 40)) | redis_figures | cut -f 2)
  fi
  calls=$(awk -v rate="${redis_rate[$key]:-200}" -v seconds="$seconds" -v clients="$clients" \
    'BEGIN { n = int(rate * seconds); print n < clients ? clients : n }')
  line=$(redis_run "$clients" "$payload" "$calls" | redis_figures)
  if [ -z "$line" ]; then
    failed "$theme $volume redis, $clients clients, $payload bytes" "redis-benchmark says nothing"
    return 0
  fi
  redis_rate[$key]=$(cut -f 2 <<<"$line")
  # shellcheck disable=SC2034 # for who called
  cell_rate=${redis_rate[$key]}
  # shellcheck disable=SC2086
  csv cells "$theme" redis "$clients" "$payload" "$situation" "$round" '' "$seconds" $line '' '' '' ''
}

# the same figures as latency.pl prints
redis_figures() {
  awk '
    / requests completed in / { calls = $1; total = $5 }
    /% <= / && $1 + 0 >= 99.9 && p99_9 == "" { p99_9 = $3 }
    /throughput summary:/ { rate = $3 }
    /avg +min +p50/ { getline; mean = $1; median = $3; p95 = $4; p99 = $5; max = $6 }
    END {
      if (rate > 0)
        printf "%d\t%.1f\t%.1f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", calls, rate, rate,
          mean, median, p95, p99, p99_9, max, total, calls
    }'
}
