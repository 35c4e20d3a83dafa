#!/usr/bin/env bash
# Cases of ours, then the tests of the client's module that ask a broker something, with fewer records than by default.
set -uo pipefail
cache=$1
shift
"$cache/client" "$@"
code=$?
if (($#)) || ((code != 0 && code != 3)); then exit $code; fi

tests=$(go list -f '{{.Dir}}' github.com/twmb/franz-go/pkg/kgo)
export KGO_SEEDS=$BOOTSTRAP KGO_TEST_RF=1 KGO_TEST_RECORDS=10000 KGO_TEST_MAX_TOPIC_PARTS=7 KGO_LOG_LEVEL=none
export KGO_TEST_SCRAM=$SASL_USER:$SASL_PASSWORD:512 KGO_TEST_SCRAM_SEEDS=$SASL_BOOTSTRAP
asking='Group|SCRAM|Txn|Issue|Consume|Client_|Ping|Pause|Partition(s|Purge)$|Pooling|Hook'
printed=$(cd "$tests" && "$cache/tests" -test.v -test.timeout 240s -test.run "$asking" 2>&1)
grep -vE '^ *(=== |--- |PASS$)' <<<"$printed" >&2
sed -nE -e 's/^ *--- PASS: (\S+) .*/ok \1/p' -e 's/^ *--- FAIL: (\S+) .*/FAIL \1/p' \
    -e 's/^ *--- SKIP: (\S+) .*/NOT RUN \1: it asks for what is not served/p' <<<"$printed"
exit $code
