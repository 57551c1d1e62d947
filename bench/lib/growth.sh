# shellcheck shell=bash
# growth.sh: does an append cost the same when there is much of everything? (full
# only: it needs some minutes and 35 GB)
# shellcheck disable=SC2034,SC2154 # from and for the other parts

# One after the other, so the do-nothing function and INSERT run beside them: a
# machine that has become slower shows there.
growth_cells() {
  local cells

  situation=$1
  mapfile -t cells < <(cells_of 8 32 "$seconds" select insert adaptive periodic)
  matrix growth own "${2:-5}" 0 "${cells[@]}"
  situation=
}

# fill MEGABYTES [PAYLOAD]: until the log is that long
fill() {
  local enough

  while enough=$(query "SELECT (insert_lsn - oldest_lsn) / 1000000 > $1 FROM grouplog.status") && [ "$enough" = f ]; do
    query "SELECT count(grouplog.append_batch(a)) FROM
      (SELECT array_fill(decode(repeat('ab', ${2:-65536}), 'hex'), ARRAY[160]) AS a OFFSET 0) AS s,
      generate_series(1, $((${1} > 2000 ? 50 : 1)))" >/dev/null || return 1
  done
}

# Sessions that have once appended, and then stay.
with_idle_sessions() { # HOW MANY
  local pid

  printf '%s\n' "SELECT grouplog.append('idle');" "\\sleep 1000 s" >"$work/tmp/idle.sql"
  "$bin/pgbench" -n -h "$work/run" -U "$server_user" -c "$1" -j 1 -t 1 -f "$work/tmp/idle.sql" bench >/dev/null 2>&1 &
  pid=$!
  while [ "$(query "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench' AND state = 'idle'")" -lt "$1" ]; do
    kill -0 "$pid" 2>/dev/null || die "the $1 idle sessions ended"
    sleep 0.2
  done
  growth_cells "$1 idle sessions" 3
  kill "$pid" && wait "$pid" 2>/dev/null
}

theme_growth() {
  local free

  free=$(df -B 1000000 --output=avail "$work" | tail -n 1)
  if [ "$free" -lt 35000 ]; then
    record growth "skipped: it needs 35 GB, and there are $free MB"
    say "growth is skipped: it needs 35 GB"
    return 0
  fi
  mkdir "$work/growth"
  [ "$(id -u)" -ne 0 ] || chown "$server_user" "$work/growth"
  chmod 700 "$work/growth"

  make_server "$work/growth"
  fill 100
  growth_cells "100 MB of log"
  say "growth: filling the log to 20 GB"
  fill 20000
  growth_cells "20 GB of log"
  remove_server

  make_server "$work/growth" "grouplog.segment_size = '4MB'"
  fill 40 4000
  growth_cells "10 segments of 4 MB"
  fill 4000
  growth_cells "1,000 segments of 4 MB"

  for first_round in 1 4 7; do
    with_idle_sessions 1
    with_idle_sessions 250
  done
  first_round=1
  remove_server
}
