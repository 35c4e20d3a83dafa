"""A plugin for pytest: the tests run with the defect that TAGWIRE_PLANT names."""

from __future__ import annotations

import os

from . import DEFECTS, plant


def pytest_collection_finish() -> None:
    plant(DEFECTS[os.environ["TAGWIRE_PLANT"]])
