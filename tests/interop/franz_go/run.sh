#!/usr/bin/env bash
# franz-go: cases of ours, then those of its own published tests that talk to a broker. A line for each case.
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-../../../.venv/bin/python}
cache=$(cd ../../.. && pwd)/.cache/clients/franz-go
command -v go >/dev/null || { echo "NOT RUN: go is not on the PATH"; exit; }
mkdir -p "$cache"
for attempt in 1 2 3; do
    go mod download >&2 && break
    if ((attempt == 3)); then echo "NOT RUN: the modules could not be fetched"; exit; fi
    sleep 5
done
go build -o "$cache/client" .
# Built with the modules named here: the published tests are part of the client's own module.
[[ $cache/tests -nt go.sum ]] || go test -c -o "$cache/tests" github.com/twmb/franz-go/pkg/kgo
exec "$python" ../with_broker.py -- bash cases.sh "$cache" "$@"
