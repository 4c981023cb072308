#!/usr/bin/env bash
# Runs librdkafka's own integration tests (those that need a broker) against a running broker, one
# test per process, and prints TSV on stdout:
#   suite  test  PASS|FAIL|SKIP  seconds  note
#
#   run-librdkafka.sh --build-only
#   run-librdkafka.sh BOOTSTRAP NNNN[:SUBTEST]..
#
# NNNN is a test's number; with SUBTEST only the subtests run whose name holds that text, and the
# row is named NNNN_name(SUBTEST). The first run downloads the sources (shipped inside an npm
# package) and builds them: needs npm, gcc, g++, make and the headers of zlib and OpenSSL (and, if
# found, zstd and RapidJSON: without the latter 0053 0098 0101 0110 skip).
#
# Environment:
#   RDKAFKA_DIR     where the sources are kept
#   RDKAFKA_NPM     npm package that ships them (@confluentinc/kafka-javascript@1.10.1: librdkafka
#                   2.15.1)
#   KAFKA_TOOL      command "KAFKA_TOOL CLASS ARGS.." that runs one of Kafka's Java tools; without
#                   it 0052 and 0077 fail: they call kafka-topics.sh
#   SCENARIO        default, or noautocreate for a broker with auto.create.topics.enable=false
#   TEST_TIMEOUT    seconds for one test process (300)
#   TEST_FLAGS      flags of test-runner (-Q: quick mode)
#   TEST_MULT       test.timeout.multiplier (2, as in librdkafka's CI)
#   LOG_DIR         keep each test's output there (default: a temporary directory, removed)
#   SUITE           first column (librdkafka)
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
DIR=${RDKAFKA_DIR:-${OTTLA_CACHE:-$HOME/.cache/ottla-test}/librdkafka}
NPM=${RDKAFKA_NPM:-@confluentinc/kafka-javascript@1.10.1}
SRC=$DIR/package/deps/librdkafka
LIMIT=${TEST_TIMEOUT:-300}
[ $# -ge 1 ] || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
BOOT=$1; shift

if [ ! -e "$DIR/complete" ]; then
  mkdir -p "$DIR"
  { cd "$DIR" && npm pack --silent "$NPM" && tar xzf ./*.tgz package/deps/librdkafka &&
    cd "$SRC" && ./configure --enable-devel && make -j"${JOBS:-$(nproc)}" libs &&
    make -j"${JOBS:-$(nproc)}" -C tests build && touch "$DIR/complete"; } >"$DIR/build.log" 2>&1 ||
    { tail -20 "$DIR/build.log" >&2; echo "build failed; see $DIR/build.log" >&2; exit 2; }
fi
[ "$BOOT" != --build-only ] || exit 0

work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
logs=${LOG_DIR:-$work/logs}; mkdir -p "$logs"; logs=$(cd "$logs" && pwd)

{ echo "bootstrap.servers=$BOOT"
  echo "broker.address.family=v4"
  echo "test.timeout.multiplier=${TEST_MULT:-2}"; } > "$work/test.conf"

# Some tests call $KAFKA_PATH/bin/kafka-topics.sh
if [ -n "${KAFKA_TOOL:-}" ]; then
  mkdir -p "$work/kafka/bin"
  printf '#!/bin/sh\nexec %s TopicCommand "$@"\n' "$KAFKA_TOOL" > "$work/kafka/bin/kafka-topics.sh"
  chmod +x "$work/kafka/bin/kafka-topics.sh"
  export KAFKA_PATH=$work/kafka BROKERS=$BOOT
fi

export LD_LIBRARY_PATH=$SRC/src:$SRC/src-cpp TEST_KAFKA_VERSION=${TEST_KAFKA_VERSION:-4.4.0}
export RDKAFKA_TEST_CONF=$work/test.conf TEST_SCENARIO=${SCENARIO:-default}
unset CI TESTS SUBTESTS TESTS_SKIP TEST_DEBUG

cd "$SRC/tests" || exit 2
for spec in "$@"; do
  number=${spec%%:*} subtest=
  [ "$number" = "$spec" ] || subtest=${spec#*:}
  log=$logs/$(tr -c 'A-Za-z0-9_.\n' _ <<<"$spec").log
  start=$(date +%s)
  env ${subtest:+"SUBTESTS=$subtest"} TESTS="$number" TEST_REPORT="$work/$number.json" \
    timeout -k 5 "$LIMIT" ./test-runner -p1 -L ${TEST_FLAGS:--Q} >"$log" 2>&1 </dev/null
  rc=$?
  python3 "$here/librdkafka_rows.py" "${SUITE:-librdkafka}" "$number" "$subtest" "$rc" \
    "$(($(date +%s) - start))" "$work/$number.json" "$log" "$LIMIT"
done
