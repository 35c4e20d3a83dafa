"""The programs of other clients that docs/client.md sets beside ours run as they stand, against our broker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Reader

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python (confluent-kafka|aiokafka)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = dict(BLOCK.findall(PAGE))
SECONDS = 60


def test_the_page_has_a_program_of_each_client() -> None:
    assert set(PROGRAMS) == {"confluent-kafka", "aiokafka"}


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_program_of_another_client_does_what_ours_does(client: str, tmp_path: Path) -> None:
    pytest.importorskip(client.replace("-", "_"))
    with Broker(str(tmp_path / "data")) as broker:
        program = tmp_path / "program.py"
        program.write_text(f"bootstrap = {broker.bootstrap!r}\n{PROGRAMS[client]}\nassert seen == 100\n", "utf-8")
        done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        with Reader(broker.bootstrap, "orders", stop_at_end=True) as reader:
            keys = {record.key for record in reader.records()}
        assert keys == {b"customer-%d" % number for number in range(100)}
        with Admin(broker.bootstrap) as admin:
            assert sum(found.offset for found in admin.group_offsets("billing").values()) == 100
