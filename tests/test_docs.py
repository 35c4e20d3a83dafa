"""Every Python block of README and docs runs as it stands, in the order of its page, with warnings as errors.

Those that need Spark run in tests/spark/test_docs.py.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tagwire.broker import Broker
from tagwire.broker.config_file import read_config
from tagwire.broker.settings import Settings

from .certificates import Certificates
from .doc_blocks import PAGES, ROOT, Block, blocks, pages_with
from .values.registry_server import registry_server

# What a reader's own program has.
OWN = """
from tagwire.client import Producer


def place_order(bootstrap):
    with Producer(bootstrap) as producer:
        producer.send("orders", b"1 umbrella")


announce_an_order = place_order
"""
OWN_NAMES = {"client.md": 'password = "wonderland"\n'}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker(fsync="never") as broker:
        yield broker.bootstrap


@pytest.fixture
def folder(tmp_path: Path, certificates: Certificates) -> Path:
    """Where the program runs."""
    put_files(tmp_path, certificates)
    return tmp_path


def put_files(folder: Path, certificates: Certificates) -> None:
    """The files that pages name."""
    shutil.copy(certificates.authority, folder / "ca.pem")
    for name in ("me.pem", "me.key"):  # one file that has both
        shutil.copy(certificates.client, folder / name)
    (folder / "headers.toml").write_text('space = "local"\n[[entries]]\nkey = 1114000\nname = "app.name"\n')


def ran(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-W", "error", *command)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@contextmanager
def registry_of_pages() -> Iterator[str]:
    """A schema registry with the subject that pages name."""
    fields = [{"name": "id", "type": "long"}, {"name": "city", "type": ["null", "string"], "default": None}]
    with registry_server() as server:
        server.add("payments-value", json.dumps({"type": "record", "name": "Payment", "fields": fields}))
        yield server.url


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with registry_of_pages() as url:
        yield url


def program(page: Path, bootstrap: str, registry: str, found: list[Block]) -> str:
    """The blocks one after the other, each with the page's name and lines in its errors."""
    places = {"http://registry:8081": registry}
    # What brokers log of faults that a page makes is no fault of the page.
    lines = ["import gc, logging", "logging.disable()", OWN_NAMES.get(page.name, "")]
    lines += [f"exec(compile({block.placed(bootstrap, places)!r}, {page.name!r}, 'exec'))" for block in found]
    return "\n".join([*lines, "gc.collect()", ""])


@pytest.mark.parametrize("page", pages_with("program"), ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_as_they_stand_and_leave_nothing_open(
    page: Path, folder: Path, bootstrap: str, registry: str
) -> None:
    found = [block for block in blocks(page) if block.kind == "program"]
    (folder / "page.py").write_text(program(page, bootstrap, registry, found), encoding="utf-8")
    done = ran(folder, "page.py")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", pages_with("pytest"), ids=lambda page: page.name)
def test_the_tests_of_a_page_pass(page: Path, folder: Path, bootstrap: str, registry: str) -> None:
    found = [block for block in blocks(page) if block.kind == "pytest"]
    (folder / "test_page.py").write_text(OWN + program(page, bootstrap, registry, found), encoding="utf-8")
    done = ran(folder, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "test_page.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{sum(block.source.count('def test_') for block in found)} passed" in done.stdout


def test_the_pages_that_readers_begin_with_have_blocks_to_run() -> None:
    assert {page.name for page in pages_with("program")} >= {"README.md", "client.md", "messages.md", "producing.md"}
    assert {page.name for page in pages_with("pytest")} >= {"README.md", "broker.md"}
    assert {page.name for page in PAGES} >= {"README.md", "decisions.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_python_stands_where_nothing_runs_it(page: Path) -> None:
    """Examples with prompts are those of negotiation.md, which tests/rpc/test_negotiation_docs.py runs."""
    fenced = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    code = (
        r"^    (?:from \w+(?:\.\w+)* import |import \w|with \w+\(|def \w+\(|(?:Client|Producer|Reader|Admin|Broker)\()"
    )
    assert re.findall(code, fenced, re.MULTILINE) == []
    assert page.name == "negotiation.md" or ">>>" not in fenced


SETTINGS = [
    pytest.param(text, id=f"{page.name}-{number}")
    for page in PAGES
    for number, text in enumerate(re.findall(r"^```toml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S))
]


@pytest.mark.parametrize("text", SETTINGS)
def test_a_settings_file_of_a_page_is_one_that_a_broker_takes(
    text: str, folder: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the files that it names, and the password in the environment."""
    monkeypatch.setenv("ALICE_PASSWORD", "wonderland")
    for name in ("broker.pem", "broker.key"):  # one file that has both
        shutil.copy(certificates.broker, folder / name)
    shutil.copy(certificates.authority, folder / "clients.pem")
    point = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
    x, y = (base64.urlsafe_b64encode(each.to_bytes(32, "big")).decode().rstrip("=") for each in (point.x, point.y))
    (folder / "issuer.json").write_text(json.dumps({"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": y}]}))
    (folder / "broker.toml").write_text(text, encoding="utf-8")
    given = read_config(folder / "broker.toml")
    assert given
    Settings(**given)


def test_every_name_of_ours_in_the_glossary_is_in_the_source() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py")))
    known = {*re.findall(r"\w+", source), *(path.stem for path in (ROOT / "src").rglob("*"))}
    rows = re.findall(r"^\| (`.*?) \| ", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for row in rows for span in re.findall(r"`([^`]+)`", row) for name in re.findall(r"\w+", span)}
    assert len(named) > 150
    assert named - known == set()
