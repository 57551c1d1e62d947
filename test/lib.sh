# shellcheck shell=bash disable=SC2034
# lib.sh: what test/run and test/demo share.  Read with ".", in bash.
#
# Both build the extension in a folder of their own and install it into a
# private copy of the PostgreSQL installation (PostgreSQL finds its files
# relative to its own binary, so a copy of bin/ with links to the rest is a
# whole installation).  Nothing in the system or in the source tree is touched,
# no privilege is needed, and several may run at once.

# cd would say where it went
unset CDPATH
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PG_CONFIG=${PG_CONFIG:-pg_config}

die() {
  echo "error: $*" >&2
  exit 1
}

# PostgreSQL refuses to run as root.
if [ "$(id -u)" -eq 0 ]; then
  server_user=postgres
else
  server_user=$(id -un)
fi

as_server_user() {
  if [ "$(id -u)" -eq 0 ]; then
    runuser -u "$server_user" -- "$@"
  else
    "$@"
  fi
}

# What the caller's session says about servers and languages must not matter.
clean_environment() {
  local name

  for name in $(compgen -e); do
    case $name in
      PG_CONFIG | PG_TEST_*) ;;
      PG[A-Z]* | LC_* | LANGUAGE) unset "$name" ;;
    esac
  done
  export LANG=C.UTF-8
  umask 022

  # a make above this one: keep what was set on its command line, not its flags
  case ${MAKEFLAGS-} in
    *"-- "*) export MAKEFLAGS=" -- ${MAKEFLAGS#*-- }" ;;
    *) unset MAKEFLAGS ;;
  esac
  unset MFLAGS MAKELEVEL
}

# copy_sources DIR: the sources, without anything built from them
copy_sources() {
  as_server_user mkdir "$1"
  tar -C "$top" --exclude=./.git --exclude=./build --exclude=./tmp_check \
    --exclude=./log --exclude=./results --exclude=./output_iso \
    --exclude='*.o' --exclude='*.bc' --exclude='*.so' --exclude='*.a' \
    -cf - . | as_server_user tar -C "$1" --no-same-owner -xf -
}

# find_postgresql DIR: where the installation is; DIR is where its copy will be
find_postgresql() {
  local private=$1

  system_bin=$("$PG_CONFIG" --bindir)
  system_share=$("$PG_CONFIG" --sharedir)
  system_lib=$("$PG_CONFIG" --pkglibdir)
  [ -x "$system_bin/postgres" ] || die "there is no server in $system_bin"
  private_root=$private
  bin=$private$system_bin
}

# copy_postgresql: lay the private copy of the installation
copy_postgresql() {
  as_server_user mkdir -p "$private_root$system_bin" "$private_root$system_share" \
    "$private_root$system_lib"
  as_server_user cp -a "$system_bin/." "$private_root$system_bin"
  as_server_user cp -rs "$system_share/." "$private_root$system_share"
  as_server_user cp -rs "$system_lib/." "$private_root$system_lib"

  # a grouplog of the system itself is not the one meant here
  as_server_user find "$private_root$system_share" "$private_root$system_lib" \
    -name 'grouplog*' -prune -exec rm -rf {} +
}

# build SOURCE [make arguments]
build() {
  local source=$1

  shift
  as_server_user make -C "$source" -s -j"$(nproc)" PG_CONFIG="$PG_CONFIG" "$@" all
}

# install_built SOURCE: into the private copy
install_built() {
  as_server_user make -C "$1" -s PG_CONFIG="$PG_CONFIG" DESTDIR="$private_root" install
}

# set_tap_environment DIR: tap_environment, for a TAP test that works in DIR, and
# pgxs_dir. PostgreSQL's modules look for DIR in TESTDIR, since 16 in the two after it.
set_tap_environment() {
  pgxs_dir=$(dirname "$("$PG_CONFIG" --pgxs)")/../..
  tap_environment=(
    TESTDIR="$1" TESTDATADIR="$1/tmp_check" TESTLOGDIR="$1/tmp_check/log"
    PATH="$bin:$PATH" PGPORT=65432
    PG_REGRESS="$pgxs_dir/src/test/regress/pg_regress"
  )
}
