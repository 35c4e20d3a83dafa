#!/usr/bin/env bash
# kafka-python: cases of ours, then the part of its own published tests that talks to a broker. A line for each case.
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-../../../.venv/bin/python}
exec "$python" ../with_broker.py --partitions 4 -- env PYTHONPATH="..:${PYTHONPATH:-}" PYTHON="$python" bash cases.sh "$@"
