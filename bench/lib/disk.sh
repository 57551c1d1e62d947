# shellcheck shell=bash
# disk.sh: what the disk can do, by fio: the ceiling of everything that is durable.
# shellcheck disable=SC2154 # from bench/run

# figure THEME NAME VALUE UNIT
figure() {
  csv figures "$1" "$2" "$round" "$3" "$4"
}

# fio_figure FIELD FOLDER OPTION...: one field of fio's terse output. The file is
# written first, if it isn't there, so that nothing is measured on blocks that were never written.
fio_figure() {
  local field=$1 file=$2/fio.file line

  shift 2
  # a colon would divide two names
  line=$(fio --name=bench --filename="${file//:/\\:}" --overwrite=1 --direct=1 --ioengine=psync \
    --output-format=terse --terse-version=3 "$@" 2>"$work/tmp/fio.err" | grep '^3;')
  # the fifth is its error
  if [ "$(cut -d ';' -f 5 <<<"$line")" != 0 ]; then
    failed "fio $*" "$(tail -n 1 "$work/tmp/fio.err")" >&2
    return 1
  fi
  cut -d ';' -f "$field" <<<"$line"
}

# fio_reads FILE: the file as it is, kB a second
fio_reads() {
  local line

  line=$(fio --name=bench --readonly --filename="${1//:/\\:}" --direct=1 --ioengine=psync --rw=read --bs=1M \
    --output-format=terse --terse-version=3 2>"$work/tmp/fio.err" | grep '^3;')
  if [ "$(cut -d ';' -f 5 <<<"$line")" != 0 ]; then
    failed "fio reads" "$(tail -n 1 "$work/tmp/fio.err")" >&2
    return 1
  fi
  cut -d ';' -f 7 <<<"$line"
}

# fio_syncs VOLUME FOLDER: single writes of a block, each durable
fio_syncs() {
  local line percent

  line=$(fio_figure 1- "$2" --rw=write --bs=4k --size=16M --time_based --runtime=2 --sync=dsync)
  [ -n "$line" ] || return 0
  figure disk "$1: 4 kB writes, direct, dsync" "$(cut -d ';' -f 49 <<<"$line")" "a second"
  for percent in 50 95 99; do
    # in the terse form the reads' percentiles come first
    figure disk "$1: their latency, ${percent}th percentile" \
      "$(tr ';' '\n' <<<"$line" | sed -n "s/^$percent.000000%=//p" | tail -n 1 | awk '{ printf "%.3f", $1 / 1000 }')" ms
  done
}

fio_write() { # FOLDER NAME OPTION...: MB a second
  local kb

  kb=$(fio_figure 48 "$1" --rw=write --bs=1M --size=256M "${@:3}")
  [ -z "$kb" ] || figure disk "$2" "$(awk -v kb="$kb" 'BEGIN { printf "%.1f", kb * 1024 / 1e6 }')" "MB/s"
}

# theme_disk VOLUME FOLDER
theme_disk() {
  local kb

  command -v fio >/dev/null || return 0
  for ((round = 1; round <= fio_rounds; round++)); do
    fio_syncs "$1" "$2"
    [ "$1" = own ] || continue
    fio_write "$2" "own: 1 MB writes in sequence, direct"
    fio_write "$2" "own: 1 MB writes in sequence, direct, dsync" --sync=dsync
    kb=$(fio_figure 7 "$2" --rw=read --bs=1M --size=256M)
    [ -z "$kb" ] ||
      figure disk "own: 1 MB reads in sequence, direct" "$(awk -v kb="$kb" 'BEGIN { printf "%.1f", kb * 1024 / 1e6 }')" "MB/s"
    rm -f "$2/fio.file"
  done
  round=1
  rm -f "$2/fio.file"
}
