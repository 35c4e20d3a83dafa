#!/usr/bin/env bash
# franz-go: cases of ours, then those of its own published tests that talk to a broker. A line for each case.
set -euo pipefail
cd "$(dirname "$0")"
source ../go_cases/client.sh
# Built with the modules named here: the published tests are part of the client's own module.
[[ $cache/tests -nt go.sum ]] || go test -c -o "$cache/tests" github.com/twmb/franz-go/pkg/kgo
exec "$python" ../with_broker.py -- bash cases.sh "$cache" "$@"
