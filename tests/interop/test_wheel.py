"""The wheel carries the compiled kernels: it installs, and works, where there is no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMOKE = """
import shutil
assert shutil.which("cc") is None and shutil.which("gcc") is None
import tagwire.kernel
assert tagwire.kernel.compiled
assert tagwire.__file__.startswith({prefix!r}), tagwire.__file__
from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer, Reader, TopicPartition
with Broker() as broker:
    Admin(broker.bootstrap).create_topics([NewTopic("t")])
    with Producer(broker.bootstrap, compression="lz4") as producer:
        producer.send("t", b"v", key=b"k", headers=[("h", b"1")])
    (batch,) = Reader(broker.bootstrap, {{TopicPartition("t", 0): 0}}, stop_at_end=True)
    assert batch.to_pylist()[0]["headers"] == [{{"key": "h", "value": b"1"}}]
print("works")
"""


@pytest.mark.timeout(600)
def test_the_wheel_works_where_there_is_no_compiler(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("tagwire-*.whl")
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    python = home / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TAGWIRE"))}
    environment["PATH"] = str(home / "bin")
    install = [str(python), "-m", "pip", "install", "-q", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, env=environment)
    # Its dependencies are those of this environment: what is tried here is the wheel alone.
    packages = next((home / "lib").glob("python*/site-packages"))
    (packages / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    ran = subprocess.run(
        [str(python), "-c", SMOKE.format(prefix=str(home))],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.stdout == "works\n", ran.stderr
