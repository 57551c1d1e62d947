# shellcheck shell=bash
# themes.sh: which cells there are.
# shellcheck disable=SC2034,SC2154 # from bench/run, for the other parts

peers=(insert insert_delay message)

sizes_for() {
  if [ "$1" = short ]; then
    fio_rounds=1
    rounds=3
    seconds=1
    slow_seconds=1
    tune_rounds=1
    own_delays="0/5 50/1 200/1"
    slow_delays="0/5 2500/1 5000/1"
    # when, in seconds from the begin, no other round of a theme may end
    until_clients=215
    until_calls=265
    until_slow=510
    until_openloop=585
    open_loads="0.5 0.8"
    open_rounds=3
    open_seconds=2
    bulk_rounds=3
    recovery_segment=256MB
    recovery_records=1500000
    policy_options=--quick
  else
    fio_rounds=3
    rounds=4
    seconds=2
    slow_seconds=3
    tune_rounds=3
    own_delays="0/5 20/1 50/1 100/1 200/1 100/5"
    slow_delays="0/5 1000/1 2500/1 5000/1 10000/1"
    until_clients=0
    until_calls=0
    until_slow=0
    until_openloop=0
    open_loads="0.1 0.25 0.5 0.75 0.9"
    open_rounds=3
    open_seconds=4
    bulk_rounds=5
    recovery_segment=1GB
    recovery_records=6000000
    policy_options=
  fi
}

# ---- the machine's own disk ----

theme_clients() {
  local cells=() main=(select insert batch adaptive periodic insert_async)

  # shellcheck disable=SC2086
  tune_commit_delay own "$tune_rounds" $own_delays
  if [ "$size" = full ]; then
    mapfile -t cells < <(
      cells_of "1 2 4 8 16 32" 32 "$seconds" "${main[@]}" insert_delay message group redis
      cells_of "64 128 256" 32 "$seconds" "${main[@]}" insert_delay message group redis sleep
    )
  else
    mapfile -t cells < <(
      cells_of 1 32 "$seconds" "${main[@]}" insert_delay message redis
      cells_of 2 32 "$seconds" insert batch adaptive
      cells_of 8 32 "$seconds" "${main[@]}" insert_delay message redis
      cells_of 32 32 "$seconds" insert batch adaptive
      cells_of 64 32 "$seconds" "${main[@]}" insert_delay message redis sleep
      cells_of 128 32 "$seconds" insert batch adaptive sleep
    )
  fi
  matrix clients own "$rounds" "$until_clients" "${cells[@]}"
}

theme_calls() {
  local cells all=(insert_100 append_batch_100 append_async_100
    insert_pipeline_10 append_pipeline_10 append_async_pipeline_10)

  if [ "$size" = full ]; then
    mapfile -t cells < <(cells_of "1 8 64" 32 "$seconds" "${all[@]}")
  else
    mapfile -t cells < <(cells_of "1 8" 32 "$seconds" "${all[@]}")
  fi
  matrix calls own "$([ "$size" = full ] && echo 3 || echo 2)" "$until_calls" "${cells[@]}"
}

theme_payloads() {
  local cells

  if [ "$size" = full ]; then
    mapfile -t cells < <(cells_of "1 8 64" "16 256 4096" "$seconds" "${peers[@]}" batch adaptive periodic redis)
    matrix payloads own 2 0 "${cells[@]}"
    mapfile -t cells < <(cells_of "1 8" 65536 "$seconds" "${peers[@]}" batch adaptive periodic)
    matrix payloads own 2 0 "${cells[@]}"

    # a record is at most a quarter of the buffers
    query "ALTER SYSTEM SET grouplog.buffers = '16MB'"
    stop_server
    start_server
    wait_until_open
    counters_reset
    mapfile -t cells < <(cells_of "1 8" 1048576 "$seconds" "${peers[@]}" batch adaptive periodic)
    matrix payloads own 2 0 "${cells[@]}"
    query "ALTER SYSTEM RESET grouplog.buffers"
    stop_server
    start_server
    wait_until_open
    counters_reset
  else
    mapfile -t cells < <(cells_of 8 "16 256 4096" "$seconds" insert adaptive)
    matrix payloads own 2 "$until_calls" "${cells[@]}"
  fi
}

own_volume() {
  say "the machine's own disk"
  ! chosen disk || theme_disk own "$work/own"
  if chosen clients calls payloads bulk; then
    make_server "$work/own"
    record_io "own disk"
    redis_start "$work/own"
    ! chosen clients || theme_clients
    ! chosen calls || theme_calls
    ! chosen payloads || theme_payloads
    redis_stop
    ! chosen bulk || theme_bulk
    remove_server
  fi
  if chosen growth && [ "$size" = full ]; then
    theme_growth
  fi
}

# ---- the volume of 200 syncs a second ----

# group_5: the best fixed window should be about what a sync costs.
theme_slow() {
  local cells main=(insert batch group group_5 adaptive)

  if [ "$size" = full ]; then
    mapfile -t cells < <(
      cells_of "1 2 4 8 16" 32 "$slow_seconds" "${main[@]}" insert_delay message redis
      cells_of "32 64 128 256" 32 "$seconds" "${main[@]}" insert_delay message redis
    )
  else
    mapfile -t cells < <(
      cells_of "1 2 4" 32 "$slow_seconds" insert batch group adaptive
      cells_of 8 32 "$slow_seconds" "${main[@]}" insert_delay message redis
      cells_of "16 32" 32 "$slow_seconds" insert batch group adaptive
      cells_of 64 32 "$slow_seconds" "${main[@]}" insert_delay message redis
      cells_of 256 32 "$slow_seconds" insert batch group adaptive
    )
  fi
  matrix slow slow "$([ "$size" = full ] && echo 3 || echo "$rounds")" "$until_slow" "${cells[@]}"
}

# Sessions enough that an arrival finds a free one. The loads are parts of what batch
# mode can take, as beyond that its sessions only queue; and half of what adaptive can.
theme_openloop() {
  local most least load cells=() name offered

  # what 64 clients make without a pause
  cell tuning slow adaptive 64 32 3
  most=${cell_rate%.*}
  cell tuning slow batch 64 32 3
  least=${cell_rate%.*}
  [ -n "$most" ] && [ -n "$least" ] || return 0
  record "saturation, adaptive" "$most"
  record "saturation, batch" "$least"
  for load in $open_loads half; do
    offered=$(awk -v s="$least" -v l="$load" -v m="$most" 'BEGIN { printf "%.0f", l == "half" ? m / 2 : s * l }')
    for name in insert batch group adaptive; do
      [ "$size" = full ] || [ "$name" != insert ] || continue
      cells+=("$name 64 32 $open_seconds $offered")
    done
  done
  matrix openloop slow "$open_rounds" "$until_openloop" "${cells[@]}"
}

slow_volume() {
  slow_volume_make || {
    slow_volume_remove
    return 0
  }
  say "the volume of 200 syncs a second"
  make_server "$slow_mounted/v"
  record_io "slow volume"
  redis_start "$slow_mounted/v"
  # fio's file is there before the throttle, and so are the log's spares
  ! command -v fio >/dev/null ||
    fio_figure 49 "$slow_mounted" --rw=write --bs=1M --size=16M --end_fsync=1 >/dev/null
  sync -f "$slow_mounted"
  slow_throttle on
  theme_disk slow "$slow_mounted"
  if chosen slow; then
    # shellcheck disable=SC2086
    tune_commit_delay slow "$tune_rounds" $slow_delays
    theme_slow
  fi
  ! chosen openloop || theme_openloop
  slow_throttle off
  redis_stop
  remove_server
  slow_volume_remove
}

# ---- the policy alone, without a server or a disk ----

theme_policy() {
  local include

  say "simulating the sync policy"
  include=$("$PG_CONFIG" --includedir-server)
  # shellcheck disable=SC2086 # it may have options
  if ! ${CC:-cc} -O2 -std=gnu11 -D_GNU_SOURCE -DFRONTEND -I"$top/src" -I"$include" \
    -o "$work/policy_sim" "$bench"/policy/*.c "$top/src/sync_policy.c" "$top/src/sync_meter.c" -lm 2>"$work/policy.err"; then
    record policy "failed to build: $(head -n 1 "$work/policy.err")"
    policy_status=1
    return 0
  fi
  # shellcheck disable=SC2086
  "$work/policy_sim" $policy_options >"$out/policy.md"
  policy_status=$?
  record policy "bench/policy, ${policy_options:-every cell}: exit status $policy_status"
}
