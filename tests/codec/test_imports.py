"""What an import costs: nothing heavy, and no message until it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

WATCH = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
{statement}
heavy = {{"pyarrow", "pandas", "numpy", "pyspark", "cramjam", "rich", "asyncio"}} & set(sys.modules)
specs = [path for path in opened if path.endswith(".json")]
assert not heavy, heavy
assert len(specs) == {specs}, specs
"""


@pytest.mark.parametrize(
    ("statement", "specs"),
    [
        ("import tagwire", 0),
        ("import tagwire.messages", 0),
        ("import tagwire.codec, tagwire.spec", 0),
        ("from tagwire import message_class", 0),
        ("import tagwire.messages; dir(tagwire.messages)", 0),
        ("from tagwire.messages import MetadataRequest; MetadataRequest().encode(12)", 1),
        ("import tagwire.messages; tagwire.messages.request(3)().encode(0)", 1),
    ],
)
def test_an_import_reads_no_spec_and_loads_nothing_heavy(statement: str, specs: int) -> None:
    code = WATCH.format(statement=statement, specs=specs)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
