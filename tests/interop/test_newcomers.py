"""Three newcomers get from an empty folder to what they came for, by README and docs alone; and no mistake of theirs
is met with silence.

Each way is a script, which runs alone too and shows what is printed: `python -m tests.interop.newcomers WAY WHEEL`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import not_run_without
from .newcomers.__main__ import WAYS
from .newcomers.way import Way


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name", WAYS)
def test_a_newcomer_gets_there_by_readme_and_docs_alone(name: str, wheel: Path, tmp_path: Path) -> None:
    with not_run_without(), Way.begin(tmp_path, wheel) as way:
        WAYS[name](way)
