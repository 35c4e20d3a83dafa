#!/usr/bin/env bash
# Cases of ours, then the published tests of the version that is installed, from its source distribution.
set -uo pipefail
"$PYTHON" client.py "$@"
code=$?
if (($#)) || ((code != 0 && code != 3)); then exit $code; fi

version=$("$PYTHON" -c 'import importlib.metadata as m; print(m.version("kafka-python"))')
suite=$(cd ../../.. && pwd)/.cache/clients/kafka-python-tests-$version
if ! [[ -d $suite/test ]]; then
    mkdir -p "$suite"
    for _ in 1 2 3; do
        "$PYTHON" -m pip download -q --no-deps --no-binary :all: --no-build-isolation --disable-pip-version-check \
            -d "$suite" "kafka-python==$version" && break
        sleep 5
    done
    if ! tar -xzf "$suite"/*.tar.gz -C "$suite" --strip-components=1 --wildcards '*/test/*'; then
        echo "NOT RUN published-tests: the source distribution of kafka-python $version could not be fetched"
        exit $code
    fi
fi
known=$PWD/allow
# The source distribution leaves out these two files; the tests are told of a broker that runs already.
touch "$suite/test/__init__.py"
cp service.py "$suite/test/service.py"
cd "$suite" || exit 1
export KAFKA_URI=kafka://$BOOTSTRAP KAFKA_VERSION=4.2.0 KAFKA_ROOT=$suite PYTHONPATH=
published() {
    timeout "$1" "$PYTHON" -m pytest "${@:2}" -q -rA --no-header --tb=short -p no:cacheprovider --timeout 30 2>&1
}
printed=$(published 200 test/integration/test_{admin,consumer,producer}_integration.py)
# Some have time limits of seconds, which a busy machine is over now and then: what fails and is not known to is run once
# more, alone.
mapfile -t again < <(sed -nE 's#^(FAILED|ERROR) (test/integration/[^ ]+).*#\2#p' <<<"$printed" | grep -vFf <(sed 's/ *#.*//; /^$/d' "$known"))
if ((${#again[@]})); then
    echo "once more: ${again[*]}" >&2
    second=$(published 100 "${again[@]}")
    for name in "${again[@]}"; do printed=$(grep -vF " $name" <<<"$printed"); done
    printed+=$'\n'$second
fi
grep -vE '^(PASSED|FAILED|ERROR|SKIPPED) ' <<<"$printed" >&2
sed -nE -e 's#^PASSED test/integration/([^ ]+).*#ok \1#p' \
    -e 's#^(FAILED|ERROR) test/integration/([^ ]+)( - (.*))?#FAIL \2: \4#p' <<<"$printed"
exit $code
