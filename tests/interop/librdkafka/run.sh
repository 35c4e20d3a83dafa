#!/usr/bin/env bash
# librdkafka, as PyPI's confluent-kafka carries it: a line for each case.
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-../../../.venv/bin/python}
exec "$python" ../with_broker.py -- env PYTHONPATH="..:${PYTHONPATH:-}" "$python" client.py "$@"
