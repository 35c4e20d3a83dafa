#!/usr/bin/env bash
# aiokafka: a line for each case. Its source distribution has no tests of its own.
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-../../../.venv/bin/python}
exec "$python" ../with_broker.py -- env PYTHONPATH="..:${PYTHONPATH:-}" "$python" client.py "$@"
