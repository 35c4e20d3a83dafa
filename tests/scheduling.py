"""Which tests go to one process where there are several, and which begin first."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]

# What takes longest begins first, or the last process runs on alone. Arguments cannot say it: pytest takes a directory
# and what is in it as one.
LONGEST = (
    "tests/spark/",
    "tests/simulation/",
    "tests/interop/test_exactly_once.py",
    "tests/interop/test_published_clients.py",
    "tests/interop/test_spark_connector.py",
    "tests/interop/test_audit.py",
    "tests/interop/test_landed_catalogs.py",
    "tests/interop/test_landed_tables.py",
    "tests/interop/test_newcomers.py",
    "tests/interop/test_spark_cluster.py",
)

APART = {"tests/interop/test_exactly_once.py"}
"""Files whose classes may go to several processes: one after the other they take longer than all others."""

_TAKES_SPARK = re.compile(r"^ *(?:async )?def \w+\([^)]*\bspark\b", re.MULTILINE)


def turn(nodeid: str) -> int:
    """What has less begins earlier."""
    return next((n for n, path in enumerate(LONGEST) if nodeid.startswith(path)), len(LONGEST))


class FilesTogether(LoadScopeScheduling):
    """A file's tests, which share a broker, go to one process; and so does half of the files that share a session of
    Spark, since starting and warming one takes longer than most of them.

    Marks of pytest-xdist would say the same, but 3.8 writes them where pytest 9.2 does not look.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self._halves: dict[str, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file in APART:
            return "::".join(nodeid.split("::")[:2])
        if not shares_spark(file):
            return file
        return self._halves.setdefault(file, f"spark-{len(self._halves) % 2}")


@cache
def shares_spark(file: str) -> bool:
    """Whether a test or a fixture of a file takes the fixture `spark`. Each of tests/interop has its own."""
    if file.startswith("tests/interop/"):
        return False
    return _TAKES_SPARK.search((ROOT / file).read_text(encoding="utf-8")) is not None
