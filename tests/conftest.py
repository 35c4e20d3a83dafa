"""What every test can have, and what every run of the suite says of itself."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

# Before the broker is imported, and for brokers that tests start as processes: see tagwire.broker.storage.log_lock.
os.environ["TAGWIRE_CHECK_LOCKS"] = "1"

from tagwire import kernel

from .certificates import Certificates
from .kernel.differential.seed import SEED, seed_of_environment
from .limits import stretch_timer
from .scheduling import FilesTogether, turn

# Tests that others inherit: without this their failures would not tell the values.
pytest.register_assert_rewrite(
    "tests.client.walks",
    "tests.client.admin_walks",
    "tests.client.transaction_walks",
    "tests.spark.exactly_once_query",
    "tests.spark.exactly_once_stories",
)

# How long an example takes depends on who else is on the machine.
hypothesis.settings.register_profile("tagwire", deadline=None)
hypothesis.settings.load_profile("tagwire")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority and what it vouches for, made for this run."""
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def _logging_stays_on() -> Iterator[None]:
    """What a test switches off, those after it in its process would not see."""
    yield
    disabled = logging.root.manager.disable
    logging.disable(logging.NOTSET)
    assert not disabled, "logging was disabled and not enabled again"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing that is collected here is garbage: to look for it again and again is a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Fourteen thousand tests are a million objects that stay: each `gc.collect` of a test would look at them all."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # what is left open is collected before Python takes its modules apart


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any):
    done = yield
    stretch_timer(settings.timeout)
    return done


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesTogether | None:
    return FilesTogether(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # a process of pytest-xdist's
        items.sort(key=lambda item: turn(item.nodeid))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    mode = "compiled" if kernel.compiled else "uncompiled (TAGWIRE_PURE=1)"
    terminalreporter.write_line(f"This suite ran on kernels that are {mode}; {SEED}={seed_of_environment()}.")
