# shellcheck shell=bash
# server.sh: the private installation, and a private server on a volume.
# shellcheck disable=SC2154 # from test/lib.sh and bench/run

data=
servers=()

# What the harness calls, beside what test/deps sees to.
needed() {
  local tool missing=()

  for tool in perl awk sed tar findmnt; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  if command -v perl >/dev/null; then
    perl -MFindBin -MList::Util -MPerlIO::encoding -e 1 2>/dev/null || missing+=("perl's own modules")
  fi
  tool=$("$PG_CONFIG" --bindir)
  for tool in "$tool"/{initdb,pg_ctl,postgres,psql,createdb,pgbench}; do
    [ -x "$tool" ] || missing+=("$tool")
  done
  if [ "$(id -u)" -eq 0 ]; then
    command -v runuser >/dev/null || missing+=(runuser)
    id "$server_user" >/dev/null 2>&1 || missing+=("a user $server_user")
  fi
  [ ${#missing[@]} -eq 0 ] && return 0
  printf -v tool ', %s' "${missing[@]}"
  die "missing: ${tool:2}"
}

private_installation() {
  find_postgresql "$work/own/install"
  copy_sources "$work/own/source"
  build "$work/own/source" >"$work/build.out" 2>&1 ||
    die "the build failed: $(tail -n 20 "$work/build.out")"
  copy_postgresql
  install_built "$work/own/source" >>"$work/build.out" 2>&1 ||
    die "the installation failed: $(tail -n 20 "$work/build.out")"
}

# What differs from the defaults, for every server. Checkpoints and vacuum would
# fall into one cell and not into its neighbour.
base_settings() {
  cat <<CONF
shared_preload_libraries = 'grouplog'
max_connections = 600
checkpoint_timeout = 1h
max_wal_size = 16GB
min_wal_size = 512MB
autovacuum = off
CONF
}

# query SQL...: by psql on the private server
query() {
  local args=()

  for sql in "$@"; do
    args+=(-c "$sql")
  done
  "$bin/psql" -X -q -A -t -F ' ' -v ON_ERROR_STOP=1 -h "$work/run" -U "$server_user" -d bench "${args[@]}"
}

# The log opens a moment after the server does.
wait_until_open() {
  local tries state

  for ((tries = 0; tries < 1200; tries++)); do
    state=$(query "SELECT state FROM grouplog.status" 2>&1)
    [ "$state" != open ] || return 0
    sleep 0.05
  done
  die "the log did not open: $state"
}

# make_server FOLDER [SETTING...]: a new server on that folder's file system, running
make_server() {
  local folder=$1 setting

  shift
  data=$folder/data
  as_server_user "$bin/initdb" -D "$data" -U "$server_user" -A trust --no-locale -E UTF8 -N \
    >"$work/initdb.out" 2>&1 || die "initdb failed: $(tail -n 5 "$work/initdb.out")"
  {
    base_settings
    printf '%s\n' "$@"
    echo "listen_addresses = ''"
    echo "unix_socket_directories = '$work/run'"
    echo "log_line_prefix = '%m [%p] %b '"
  } | as_server_user tee -a "$data/postgresql.conf" >/dev/null
  servers+=("$data")
  start_server
  "$bin/createdb" -h "$work/run" -U "$server_user" bench || exit 1
  query "CREATE EXTENSION grouplog" \
    "CREATE TABLE records (payload text)" \
    "ALTER TABLE records ALTER payload SET STORAGE EXTERNAL" || exit 1
  wait_until_open

  # WAL files for PostgreSQL to write over, as grouplog has its spares
  for ((setting = 0; setting < 24; setting++)); do
    query "SELECT pg_switch_wal() FROM pg_logical_emit_message(false, 'bench', '$setting')" >/dev/null
  done
  query CHECKPOINT
  counters_reset
}

start_server() {
  (cd / && as_server_user "$bin/pg_ctl" -s -w -t 300 -D "$data" -l "${data%/*}/server.log" start) \
    >"$work/start.out" 2>&1 || die "the server did not start: $(cat "$work/start.out")"
}

# stop_server [MODE]
stop_server() {
  as_server_user "$bin/pg_ctl" -s -w -t 300 -D "$data" -m "${1:-fast}" stop >/dev/null 2>&1 ||
    die "the server did not stop"
}

remove_server() {
  stop_server "${1:-fast}"
  as_server_user rm -rf "$data"
}

# for the trap: what still runs, of ours
end_processes() {
  local folder job

  for job in $(jobs -p); do
    # a file system outlives what uses it
    [ "$job" = "$slow_steady" ] || kill "$job" 2>/dev/null
  done
  slow_throttle off
  redis_stop
  for folder in "${servers[@]}"; do
    if [ -e "$folder/postmaster.pid" ]; then
      as_server_user "$bin/pg_ctl" -s -w -t 60 -D "$folder" -m immediate stop >/dev/null 2>&1
    fi
  done
}

# ext4 does without a journal where it was made so, and syncs are other ones then
journal_of() {
  local source

  [ "$(findmnt -n -o FSTYPE -T "$1")" = ext4 ] || return 0
  source=$(findmnt -n -o SOURCE -T "$1")
  dumpe2fs -h "$source" 2>/dev/null | awk '/^Filesystem features:/ { print / has_journal/ ? ", with a journal" : ", without a journal" }'
}

record_machine() {
  record date "$(date -u +%Y-%m-%d)"
  record cores "$(nproc)"
  record processor "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
  record memory "$(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
  record kernel "$(uname -sr)"
  record system "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release 2>/dev/null)"
  record "own disk" "$(findmnt -n -o FSTYPE,OPTIONS -T "$work" | tr -s ' ')$(journal_of "$work")"
  record "load before" "$(cut -d ' ' -f 1-3 /proc/loadavg)$(awk -v cores="$(nproc)" '$1 > cores / 2 { print ": this machine was doing something else" }' /proc/loadavg)"
  record PostgreSQL "$("$PG_CONFIG" --version)"
  record commit "$(git -C "$top" describe --always --dirty 2>/dev/null || echo unknown)"
  record grouplog "$(sed -n "s/^default_version = '\(.*\)'/\1/p" "$top/grouplog.control")"
  record settings "$(base_settings | paste -sd ';' | sed 's/;/; /g')"
  if command -v fio >/dev/null; then
    record fio "$(fio --version)"
  else
    record fio "skipped: not installed"
  fi
  if have_redis; then
    record Redis "$(redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/'), appendfsync always"
  else
    record Redis "skipped: not installed"
  fi
  command -v gnuplot >/dev/null || record charts "skipped: gnuplot is not installed"
}

record_io() {
  record "PostgreSQL's WAL, $1" "wal_sync_method $(query "SHOW wal_sync_method")"
  record "grouplog I/O, $1" "$(query "SELECT io_method || ', ' || sync_method || ', fsync ' || CASE WHEN fsync THEN 'on' ELSE 'off' END FROM grouplog.status")"
}
