#!/usr/bin/env bash
# kafka-go: a line for each case.
set -euo pipefail
cd "$(dirname "$0")"
source ../go_cases/client.sh
exec "$python" ../with_broker.py -- "$cache/client" "$@"
