"""What a broker may not load when it starts: most of its start is imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tagwire.broker import Broker, handlers
from tagwire.broker.registry import HANDLERS
from tagwire.broker.served_apis import SERVED
from tagwire.client import Admin, NewTopic, OffsetAndMetadata
from tagwire.partitions import TopicPartition
from tagwire.spec.api_keys import ApiKey

HEAVY = {"click", "jinja2", "jsonschema", "numpy", "pandas", "pyarrow", "pyspark", "pytest", "rich", "typer"}
ROOMS = {"capture", "cli", "client", "doctor", "reference", "spark", "values"}

LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"

IMPORTED = f"from tagwire.broker import Broker; {LOADED}"

STARTED = f"from tagwire.broker import Broker\nwith Broker(): pass\n{LOADED}"

COMMAND = f"""
import os, signal, sys
from tagwire.cli import broker, main
broker._tell_json = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
main(["broker", "--json", "--listen", "127.0.0.1:0", "--data", sys.argv[1]])
{LOADED}
"""


def loaded(program: str, *arguments: str) -> set[str]:
    """The modules that a program has imported when it ends."""
    run = [sys.executable, "-c", program, *arguments]
    return set(json.loads(subprocess.run(run, capture_output=True, check=True, timeout=60).stdout))


def is_of(module: str, rooms: set[str]) -> bool:
    first, *rest = module.split(".")
    return first == "tagwire" and bool(rest) and rest[0] in rooms


@pytest.mark.parametrize("program", [IMPORTED, STARTED], ids=["imported", "started"])
def test_a_broker_in_a_program_loads_no_other_room_and_nothing_heavy(program: str) -> None:
    found = loaded(program)
    assert "tagwire.broker" in found
    assert found & HEAVY == set()
    assert [module for module in sorted(found) if is_of(module, ROOMS)] == []


def test_the_command_loads_no_more_than_that_and_how_it_is_called(tmp_path: Path) -> None:
    found = loaded(COMMAND, str(tmp_path))
    assert {"tagwire.broker.foreground", "typer"} <= found
    assert found & (HEAVY - {"typer"}) == set()
    assert [module for module in sorted(found) if is_of(module, ROOMS - {"cli"})] == []


@pytest.mark.parametrize("program", [IMPORTED, STARTED], ids=["imported", "started"])
def test_a_broker_loads_the_handlers_that_requests_ask_for(program: str) -> None:
    found = {
        module.rpartition(".")[2] for module in loaded(program) if is_of(module, {"broker"}) and "handlers." in module
    }
    assert found == {"api_versions"}


@pytest.mark.parametrize("program", [IMPORTED, STARTED], ids=["imported", "started"])
def test_a_broker_without_groups_does_not_load_what_they_are_made_of(program: str) -> None:
    found = loaded(program)
    assert "tagwire.broker.store" in found
    assert {module for module in found if is_of(module, {"broker"}) and ".groups." in module} <= {
        "tagwire.broker.groups.group_settings"
    }


def test_groups_that_were_stored_are_loaded_when_a_broker_starts(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("t")])
        admin.alter_group_offsets("g", {TopicPartition("t", 0): OffsetAndMetadata(7)})
    program = f"import sys\nfrom tagwire.broker import Broker\nwith Broker({str(tmp_path)!r}): pass\n{LOADED}"
    assert "tagwire.broker.groups.coordinator" in loaded(program)
    with Broker(tmp_path) as broker, Admin(broker.bootstrap) as admin:
        assert admin.group_offsets("g")[TopicPartition("t", 0)].offset == 7


def test_what_is_told_before_a_handler_is_loaded_is_what_it_states() -> None:
    assert {key: HANDLERS[key].versions for key in SERVED} == dict(SERVED)


def test_every_handler_is_served() -> None:
    modules = {path.stem for path in Path(handlers.__file__).parent.glob("[a-z]*.py")}
    assert modules == {ApiKey(key).name.lower() for key in SERVED}
