# Shared by scripts/run and scripts/test: where things are, and how Debian packages get installed.
# Sourced, not run. Sets TOP, BUILD, CACHE, PYTHON.

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=${OTTLA_BUILD:-$TOP/build}
CACHE=${OTTLA_CACHE:-$HOME/.cache/ottla-test}
PYTHON=/usr/bin/python3

# What it takes to build the broker.
BUILD_PACKAGES=(gcc libc6-dev meson ninja-build pkg-config python3 libevent-dev libjansson-dev
  liblz4-dev libzstd-dev libsnappy-dev zlib1g-dev libisal-dev libssl-dev uthash-dev check)

say() { echo "== $*" >&2; }
die() { echo "$(basename "$0"): $*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "not root and no sudo: cannot run $*"; fi
}

# install_packages NAME..: installs what is missing; asks nothing, does nothing when all is there.
install_packages() {
  local name missing=()
  for name in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] ||
      missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      "${missing[@]}"
  } </dev/null >&2 || die "could not install ${missing[*]}"
}

# build_broker DIR TARGET [MESON OPTION..]: configures once, compiles what changed.
build_broker() {
  local dir=$1 target=$2
  shift 2
  [ -e "$dir/build.ninja" ] || meson setup "$@" "$dir" "$TOP" >&2 || die "meson setup failed"
  ninja -C "$dir" "$target" >&2 || die "the build in $dir failed"
}
