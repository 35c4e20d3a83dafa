"""A seed is one story, whatever else differs: the process, what ran before, the hash seed, the kernels."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pythons import MINORS, interpreter

from .outcome import Outcome, Plan
from .pool import ENVIRONMENT, Stem, order_of
from .workload import plan

Told = tuple[str, list[str] | None, list[str] | None]


def short(seed: int) -> Plan:
    """A seed's plan, cut short: what decides an order shows within seconds."""
    return {**plan(seed), "duration": 5.0, "settle": 4.0}


PLANS = [short(seed) for seed in (15, 26, 8)]
"""Of producers that send again, of a group, and of brokers that know who asks."""

OTHERWISE = {"PYTHONHASHSEED": "271828", "TAGWIRE_PURE": "1", "TAGWIRE_CHECK_LOCKS": "0"}


AS_IT_IS = ("pyspark", "py4j")
"""Packages of Python alone, which any version of it takes as they are installed here."""

NEEDED = ("cramjam", "crc32c", "xxhash", "pyarrow", "pandas", "Cython")
"""By what is simulated: the core, Arrow for the sink, and Cython's shadow for kernels that are not compiled."""

INSTALLED = "import importlib.metadata as m, sys; print(*(f'{n}=={m.version(n)}' for n in sys.argv[1:]))"


def told(env: dict[str, str], plans: list[Plan], python: str = sys.executable) -> list[Told]:
    with Stem(env=env, python=python) as stem:
        return [story(stem.run(order_of(plan=plan, trace=True, history=True))) for plan in plans]


def story(outcome: Outcome) -> Told:
    assert outcome.digest, outcome.found
    return outcome.digest, outcome.trace, outcome.history


@pytest.fixture(scope="module")
def first() -> list[Told]:
    return told({"PYTHONHASHSEED": "1"}, PLANS)


@pytest.mark.long
def test_a_seed_is_told_the_same_by_another_process_that_differs_in_everything(first: list[Told]) -> None:
    """Another hash seed, kernels that are not compiled, locks unchecked, and other seeds before it."""
    order = [2, 1, 0]
    assert told(OTHERWISE, [PLANS[at] for at in order]) == [first[at] for at in order]


@pytest.mark.long
def test_two_seeds_are_two_stories(first: list[Told]) -> None:
    assert len({digest for digest, _, _ in first}) == len(PLANS)
    assert all(trace and history for _, trace, history in first)


@pytest.mark.nightly
@pytest.mark.parametrize("name", OTHERWISE)
def test_a_seed_is_told_the_same_where_one_thing_differs(name: str, first: list[Told]) -> None:
    assert told({"PYTHONHASHSEED": "1", name: OTHERWISE[name]}, PLANS) == first


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("minor", MINORS)
def test_a_seed_is_told_the_same_by_another_python(minor: int, first: list[Told], tmp_path: Path) -> None:
    """With the same releases of what is installed, whose texts and bytes are told along."""
    found = interpreter(minor)
    if found is None:
        pytest.skip(f"NOT RUN: there is no CPython 3.{minor}")
    python = tmp_path / "venv" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TAGWIRE"))}
    subprocess.run([found, "-m", "venv", tmp_path / "venv"], check=True, env=environment)
    releases = subprocess.run([sys.executable, "-c", INSTALLED, *NEEDED], capture_output=True, text=True, check=True)
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *releases.stdout.split()]
    installed = subprocess.run(pip, env=environment, capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"NOT RUN: pip: {installed.stderr.strip().splitlines()[-1]}")
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in AS_IT_IS:
        (packages / name).symlink_to(next(iter(importlib.import_module(name).__path__)))
    paths = os.pathsep.join([ENVIRONMENT["PYTHONPATH"], str(packages)])
    assert told({"PYTHONHASHSEED": "1", "TAGWIRE_PURE": "1", "PYTHONPATH": paths}, PLANS, str(python)) == first


@pytest.mark.nightly
def test_to_ask_for_the_trace_changes_nothing(first: list[Told]) -> None:
    with Stem(env={"PYTHONHASHSEED": "1"}) as stem:
        assert stem.run(order_of(plan=PLANS[0])).digest == first[0][0]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_seed_is_told_the_same_as_the_fiftieth_of_its_process(first: list[Told]) -> None:
    others = [short(seed) for seed in range(1000, 1049)]
    assert told({"PYTHONHASHSEED": "1"}, [*others, PLANS[0]])[-1] == first[0]
