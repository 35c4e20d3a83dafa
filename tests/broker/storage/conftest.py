"""A log to compact."""

from __future__ import annotations

import pytest

from .compacted import Compacted


@pytest.fixture
def kept(tmp_path):
    """A compacted log in a directory of its own."""
    return Compacted(tmp_path)
