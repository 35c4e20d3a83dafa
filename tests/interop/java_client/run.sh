#!/usr/bin/env bash
# Kafka's own client, at the last release before 4.0 and at the newest, and its command line tools. A line for each case.
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-../../../.venv/bin/python}
cache=$(cd ../../.. && pwd)/.cache/classes
tools=4.3.1 # the newest release whose tools are published
command -v javac >/dev/null || { echo "NOT RUN: java and javac (17 or newer) are not both on the PATH"; exit; }
paths=()
for jars in "3.9.2 client" "4.4.0 client" "$tools tools"; do
    # shellcheck disable=SC2086
    path=$(PYTHONPATH=../../../scripts "$python" jars.py $jars) || { echo "NOT RUN: Kafka $jars could not be fetched"; exit; }
    paths+=("$path")
done
for number in 0 1; do
    release=(3.9.2 4.4.0)
    classes=$cache/client-${release[number]}
    mkdir -p "$classes"
    [[ $classes/Client.class -nt Client.java ]] ||
        javac -nowarn -Xlint:none --release 17 -d "$classes" -cp "${paths[number]}" Client.java >&2
    paths[number]=$classes:${paths[number]}
done
exec "$python" ../with_broker.py -- env OLD="${paths[0]}" NEW="${paths[1]}" TOOLS="${paths[2]}" bash cases.sh "$@"
