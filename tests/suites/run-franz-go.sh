#!/usr/bin/env bash
# Runs the tests of franz-go's kgo package that need a broker; prints TSV
# (suite, test, PASS|FAIL|SKIP, seconds, note). Subtests are rows of their own.
#
#   run-franz-go.sh --build-only
#   run-franz-go.sh BOOTSTRAP [SKIP_REGEXP]
#
# Environment:
#   FRANZ_DIR         where the sources are kept; FRANZ_VERSION (v1.22.3)
#   KGO_TEST_RF       replication factor of the test topics (1)
#   KGO_TEST_RECORDS  records per ETL test (50000; upstream's default is 500000)
#   TIMEOUT           go test -timeout (15m); PARALLEL go test -parallel (GOMAXPROCS)
#   LOG_DIR           keep the raw go test -json output there
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
DIR=${FRANZ_DIR:-${OTTLA_CACHE:-$HOME/.cache/ottla-test}/franz-go}; V=${FRANZ_VERSION:-v1.22.3}
if [ ! -e "$DIR/$V/go.mod" ]; then
  mkdir -p "$DIR" && cd "$DIR" || exit 2
  src=$(go mod download -json "github.com/twmb/franz-go@$V" | sed -n 's/^\t"Dir": "\(.*\)",/\1/p')
  cp -r "$src" "$V.new" && chmod -R u+w "$V.new" && mv "$V.new" "$V" || exit 2
fi
cd "$DIR/$V" || exit 2
[ -e kgo.test ] || go test -c -o kgo.test ./pkg/kgo || exit 2
[ "$1" != --build-only ] || exit 0
export KGO_SEEDS=$1 KGO_TEST_RF=${KGO_TEST_RF:-1} KGO_TEST_RECORDS=${KGO_TEST_RECORDS:-50000}
export KGO_LOG_LEVEL=${KGO_LOG_LEVEL:-none} KGO_TEST_STABLE_FETCH=true

# The test functions whose body makes a client of the test broker.
broker_tests() { python3 - <<'PY'
import glob
import re
USES = r"newTestClient|\badm\(\)|getSeedBrokers|testClientOpts|tmpTopic|tmpGroup|scramSeeds|oauthSeeds"
names = []
for path in sorted(glob.glob("pkg/kgo/*_test.go")):
    for test in re.finditer(r"^func (Test\w+)\(.*?^}", open(path).read(), re.S | re.M):
        if re.search(USES, test.group(0)):
            names.append(test.group(1))
print("^(" + "|".join(names) + ")$")
PY
}
raw=/dev/null; [ -z "${LOG_DIR:-}" ] || { mkdir -p "$LOG_DIR"; raw=$LOG_DIR/franz-go.json; }
package=github.com/twmb/franz-go/pkg/kgo
cd pkg/kgo && go tool test2json -t -p "$package" ../../kgo.test -test.v=test2json \
  -test.count=1 -test.timeout "${TIMEOUT:-15m}" ${PARALLEL:+-test.parallel "$PARALLEL"} \
  -test.run "$(cd ../..; broker_tests)" ${2:+-test.skip "$2"} 2>&1 | tee "$raw" |
  python3 "$here/gotsv.py" "${SUITE:-franz-go}" "$package"
