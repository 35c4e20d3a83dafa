#!/usr/bin/env bash
# Names what is missing on this machine, one clear line each, before anything is installed.
set -u
python=${PYTHON:-python3}
missing=0

lacks() {
    echo "tagwire needs $1" >&2
    missing=1
}

if ! command -v "$python" >/dev/null 2>&1; then
    lacks "Python 3.11 or newer: '$python' is not on the PATH (name another with PYTHON=...)"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    lacks "Python 3.11 or newer: '$python' is $("$python" -V 2>&1) (name another with PYTHON=...)"
elif [ "${TAGWIRE_PURE:-}" != 1 ] && ! "$python" -c 'import platform, sys, sysconfig
known = platform.python_implementation() == "CPython" and sys.version_info < (3, 15)
sys.exit(not known or bool(sysconfig.get_config_var("Py_GIL_DISABLED")))'; then
    lacks "CPython 3.11 to 3.14, not a free-threaded one: '$python' is $("$python" -VV 2>&1) (name another with PYTHON=...; TAGWIRE_PURE=1 does without the kernels, slowly)"
elif ! "$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then
    lacks "Python's venv module (on Debian: apt-get install python3-venv)"
elif [ "${TAGWIRE_PURE:-}" != 1 ]; then
    include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ -f "$include/Python.h" ] || lacks "Python's C headers (on Debian: apt-get install python3-dev)"
fi

if [ "${TAGWIRE_PURE:-}" != 1 ] && ! command -v "${CC:-cc}" >/dev/null 2>&1; then
    lacks "a C compiler: '${CC:-cc}' is not on the PATH (on Debian: apt-get install gcc; TAGWIRE_PURE=1 does without, slowly)"
fi

java=${JAVA_HOME:+$JAVA_HOME/bin/}java
if [ "${1:-}" = --no-java ]; then
    : # for what Spark has no part in
elif ! command -v "$java" >/dev/null 2>&1; then
    lacks "Java 17 or newer for Spark: '$java' is not there (on Debian: apt-get install openjdk-17-jre-headless)"
else
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ "${version:-0}" -ge 17 ] || lacks "Java 17 or newer for Spark: '$java' is version ${version:-unknown}"
fi

exit $missing
