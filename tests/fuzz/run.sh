#!/bin/sh
# Builds the fuzz targets with clang and runs each for SECONDS (60), with seeds from the golden
# vectors; what is found stays under BUILD/corpus (new inputs) and BUILD/crashes.
#   tests/fuzz/run.sh [BUILD [SECONDS [TARGET...]]]
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$tree/build-fuzz}
seconds=${2:-60}
[ $# -gt 2 ] && shift 2 || set -- message request batch unpack storage
[ -d "$build" ] || CC=clang meson setup "$build" "$tree" -Dfuzz=true -Dtests=true \
    -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 \
    -Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=undefined' >/dev/null
mkdir -p "$build/crashes"
for target; do
    ninja --quiet -C "$build" "tests/fuzz/fuzz_$target"
    python3 "$tree/tests/fuzz/seeds.py" "$target" "$build/corpus/$target"
    "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=16384 -rss_limit_mb=1024 \
        -print_final_stats=1 -artifact_prefix="$build/crashes/$target-" "$build/corpus/$target"
done
