"""The type stubs of `tagwire.messages` are generated, committed, and current."""

from pathlib import Path

import tagwire.messages
from tagwire.codec.stubs import stubs

STUBS = Path(tagwire.messages.__file__).with_suffix(".pyi")


def test_the_committed_stubs_are_what_make_stubs_writes() -> None:
    assert STUBS.read_text(encoding="utf-8") == stubs()
