"""The module by which Spark finds the format: every user of any Python data source imports it."""

from __future__ import annotations

import subprocess
import sys


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_offers_the_format_by_its_name():
    assert run("import pyspark_tagwire as m; print(m.DefaultSource.name(), m.DefaultSource.__name__)") == (
        "tagwire TopicDataSource"
    )


def test_importing_it_loads_neither_arrow_nor_the_client_beyond_what_pyspark_does():
    code = """
import sys
import pyspark.sql.datasource, pyspark.sql.types
before = set(sys.modules)
import pyspark_tagwire
new = set(sys.modules) - before
print(sorted(name for name in new if not name.startswith(("tagwire", "pyspark"))), "tagwire.client" in new)
"""
    assert run(code) == "[] False"


def test_without_pyspark_it_offers_nothing_and_does_not_raise():
    code = "import sys; sys.modules['pyspark'] = None; import pyspark_tagwire as m; print(hasattr(m, 'DefaultSource'))"
    assert run(code) == "False"
