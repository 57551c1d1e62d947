# shellcheck shell=bash
# slow.sh: a volume of 200 syncs a second, for real.
#
# A loop device with ext4. Either (throttle) the kernel throttles it to 400 writes
# a second; a flush counts as a write, so a sync (write and flush) costs two. Or
# (steady) it lies on a file whose flushes take 5 ms, less what a write takes.
# BENCH_SLOW says which; by default the first, or else the second.
# shellcheck disable=SC2154 # from bench/run

slow_device=
slow_mounted=
slow_numbers=
slow_rule=
slow_group=
slow_enabled=

slow_steady=

slow_writes=400
steady_us=4750

slow_skip() {
  say "the volume of 200 syncs a second is skipped: $*"
  record "slow volume" "skipped: $*"
  return 1
}

# throttle by the block controller of cgroup v1, or else of v2
slow_find_controller() {
  local v1 v2

  v1=$(awk '$3 == "cgroup" && $4 ~ /(^|,)blkio(,|$)/ { print $2; exit }' /proc/mounts)
  if [ -n "$v1" ] && [ -w "$v1/blkio.throttle.write_iops_device" ]; then
    slow_rule=$v1/blkio.throttle.write_iops_device
    return 0
  fi
  v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
  [ -n "$v2" ] && grep -qw io "$v2/cgroup.controllers" 2>/dev/null || return 1
  if ! grep -qw io "$v2/cgroup.subtree_control" 2>/dev/null; then
    echo +io >"$v2/cgroup.subtree_control" 2>/dev/null && slow_enabled=1
  fi
  slow_group=$v2/grouplog-bench.$$
  mkdir "$slow_group" 2>/dev/null || {
    slow_group=
    return 1
  }
  slow_rule=$slow_group/io.max
  # what this shell starts from here on belongs to the group
  [ -w "$slow_rule" ] && echo $$ >"$slow_group/cgroup.procs" 2>/dev/null
}

# a file whose flushes take their time
slow_steady_start() {
  local flags tries

  flags=$(pkg-config --cflags --libs fuse3 2>/dev/null) && [ -e /dev/fuse ] || return 1
  # shellcheck disable=SC2086
  ${CC:-cc} -O2 -std=gnu11 -D_GNU_SOURCE -o "$work/steady_disk" "$bench/steady/steady_disk.c" $flags -lpthread \
    2>"$work/steady.err" || return 1
  mkdir "$work/steady"
  # in a session of its own: a signal to all of ours must not end a disk that is mounted
  (cd / && exec setsid "$work/steady_disk" "$work/slow.img" "$steady_us" "$work/steady") >/dev/null 2>&1 &
  slow_steady=$!
  for ((tries = 0; tries < 50; tries++)); do
    [ ! -e "$work/steady/disk" ] || return 0
    sleep 0.1
  done
  return 1
}

# slow_throttle on|off
slow_throttle() {
  if [ -n "$slow_steady" ]; then
    kill "-$([ "$1" = on ] && echo USR1 || echo USR2)" "$slow_steady" 2>/dev/null
    return 0
  fi
  [ -n "$slow_rule" ] && [ -n "$slow_numbers" ] || return 0
  case $1-$slow_group in
    on-) echo "$slow_numbers $slow_writes" ;;
    off-) echo "$slow_numbers 0" ;;
    on-*) echo "$slow_numbers wiops=$slow_writes" ;;
    off-*) echo "$slow_numbers wiops=max" ;;
  esac 2>/dev/null >"$slow_rule"
}

slow_volume_make() {
  local tool rate image how

  [ "$(id -u)" -eq 0 ] || slow_skip "it needs root" || return 1
  for tool in losetup mkfs.ext4 mount umount; do
    command -v "$tool" >/dev/null || slow_skip "there is no $tool" || return 1
  done
  truncate -s 6G "$work/slow.img" || slow_skip "no image could be made" || return 1
  image=$work/slow.img
  case ${BENCH_SLOW:-any} in
    throttle) slow_find_controller ;;
    steady) slow_steady_start ;;
    any) slow_find_controller || slow_steady_start ;;
    *) die "BENCH_SLOW is throttle or steady" ;;
  esac || slow_skip "this process may use no block I/O controller (throttle), or has no libfuse3 (steady)" || return 1
  [ -z "$slow_steady" ] || image=$work/steady/disk
  slow_device=$(losetup --find --show "$image" 2>/dev/null) ||
    slow_skip "there is no loop device to be had" || return 1
  slow_numbers=$((0x$(stat -c %t "$slow_device"))):$((0x$(stat -c %T "$slow_device")))
  mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$slow_device" >/dev/null 2>&1 ||
    slow_skip "it could not be formatted" || return 1
  mkdir -p "$work/slow"
  # who is interrupted in between unmounts it too
  slow_mounted=$work/slow
  mount -o noatime,noinit_itable "$slow_device" "$slow_mounted" ||
    slow_skip "it could not be mounted" || return 1
  mkdir "$slow_mounted/v"
  chown "$server_user" "$slow_mounted/v"
  chmod 700 "$slow_mounted/v"

  # does it hold?
  dd if=/dev/zero of="$slow_mounted/probe" bs=4k count=400 conv=fsync 2>/dev/null
  slow_throttle on
  rate=$(sync_rate "$slow_mounted/probe")
  slow_throttle off
  if [ "$rate" -lt 180 ] || [ "$rate" -gt 220 ]; then
    slow_skip "throttled, it makes $rate syncs a second" || return 1
  fi
  if [ -n "$slow_steady" ]; then
    how="on a file whose flushes take 5 ms, one at a time (steady)"
  else
    how="throttled to $slow_writes writes and flushes a second by cgroup v$([ -n "$slow_group" ] && echo 2 || echo 1)"
  fi
  record "slow volume" "ext4 on a loop device, $how; $rate syncs a second by dd (direct, dsync)"
}

# sync_rate FILE: syncs a second, by 400 of them over an existing file; the first bunch
# of them may pass at once, so it does not count
sync_rate() {
  local from to

  dd if=/dev/zero of="$1" bs=4k count=20 oflag=direct,dsync conv=notrunc 2>/dev/null
  from=$(date +%s%N)
  dd if=/dev/zero of="$1" bs=4k count=400 oflag=direct,dsync conv=notrunc 2>/dev/null
  to=$(date +%s%N)
  echo $((400000000000 / (to - from)))
}

slow_volume_remove() {
  local tries image device

  slow_throttle off
  if [ -n "$slow_mounted" ]; then
    for ((tries = 0; tries < 50; tries++)); do
      mountpoint -q "$slow_mounted" || break
      ! umount "$slow_mounted" 2>/dev/null || break
      sleep 0.2
    done
    ! mountpoint -q "$slow_mounted" || umount -l "$slow_mounted"
    slow_mounted=
  fi
  # by their file: who is interrupted while one is made knows no name yet
  for image in "$work/slow.img" "$work/steady/disk"; do
    [ -e "$image" ] || continue
    for device in $(losetup -n -O NAME -j "$image" 2>/dev/null); do
      losetup -d "$device" 2>/dev/null
    done
  done
  # and if the file is gone; by now the name may be somebody else's
  if [ -n "$slow_device" ] && losetup -n -O BACK-FILE "$slow_device" 2>/dev/null | grep -qF "$work/"; then
    losetup -d "$slow_device" 2>/dev/null
  fi
  slow_device=
  slow_numbers=
  if [ -n "$slow_steady" ]; then
    for ((tries = 0; tries < 50; tries++)); do
      ! umount "$work/steady" 2>/dev/null || break
      kill -0 "$slow_steady" 2>/dev/null || break
      sleep 0.1
    done
    kill "$slow_steady" 2>/dev/null
    wait "$slow_steady" 2>/dev/null
    slow_steady=
  fi
  rm -f "$work/slow.img"
  if [ -n "$slow_group" ]; then
    echo $$ >"${slow_group%/*}/cgroup.procs"
    rmdir "$slow_group"
    [ -z "$slow_enabled" ] || echo -io >"${slow_group%/*}/cgroup.subtree_control" 2>/dev/null
    slow_group=
  fi
}
