"""Compiled and uncompiled kernels do the same with whatever they are given, good or bad: the same value, or the same
error with the same text; and what they accept can be written again, and then reads the same.

`TAGWIRE_SEED=7 make test` runs other cases than the usual ones; `make interop` runs others each time, and many more.
"""

from __future__ import annotations

import pytest

from tagwire import kernel, messages

from .differential.compared import compare
from .differential.mutations import WEIGHTS, Case, case
from .differential.outcomes import Trial, outcome, written_again
from .differential.seed import seed_of_environment

CASES = 20_000


@pytest.mark.timeout(600)
@pytest.mark.skipif(not kernel.compiled, reason="compared when the suite runs on compiled kernels")
@pytest.mark.long
def test_compiled_and_uncompiled_kernels_do_the_same_with_mutated_bytes_and_values() -> None:
    found = compare(seed_of_environment(), CASES)
    assert found.problems == [], found.report()
    assert set(found.kinds) == set(WEIGHTS)
    for kind, count in found.kinds.items():
        assert 0.05 * count < found.accepted[kind] <= count, (kind, count, found.accepted[kind])


def test_what_is_accepted_and_cannot_be_written_again_is_a_fault() -> None:
    """As a number that was read as a list: all that is left of the last one was 01, an empty list's count."""
    kind = messages.ApiVersionsRequest
    trial = Trial()
    written_again(trial, "strict", kind, kind(node_id=[]), 5)
    (fault,) = trial.faults
    assert fault.endswith("again: EncodeError: ApiVersionsRequest v5, node_id: needs an int, not list")
    found = outcome(Case(0, "message", ("ApiVersionsRequest", 5), bytes.fromhex("0101000100"), "0/0"))
    assert found.faults == []
    assert {found.lines[name] for name in ("strict", "lenient", "strict columns", "lenient columns")} == {
        "DecodeError: ApiVersionsRequest v5, node_id at byte 3: needs 4 bytes, 2 are left"
    }


def test_a_case_is_the_same_whenever_it_is_made() -> None:
    assert [case(5, number) for number in range(50)] == [case(5, number) for number in range(50)]
    assert case(5, 7) != case(6, 7)
