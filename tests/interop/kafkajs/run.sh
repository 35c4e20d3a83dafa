#!/usr/bin/env bash
# kafkajs: a line for each case. The package has no tests of its own.
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-../../../.venv/bin/python}
cache=$(cd ../../.. && pwd)/.cache/clients/kafkajs
command -v node >/dev/null && command -v npm >/dev/null || { echo "NOT RUN: node and npm are not both on the PATH"; exit; }
mkdir -p "$cache"
if ! cmp -s package.json "$cache/package.json" || ! [[ -d $cache/node_modules/kafkajs ]]; then
    for attempt in 1 2 3; do
        cp package.json "$cache/package.new"
        (cd "$cache" && cp package.new package.json && npm install --no-audit --no-fund --ignore-scripts >&2) && break
        rm -f "$cache/package.json"
        if ((attempt == 3)); then echo "NOT RUN: the packages could not be fetched"; exit; fi
        sleep 5
    done
fi
exec "$python" ../with_broker.py -- env NODE_PATH="$cache/node_modules" node client.js "$@"
