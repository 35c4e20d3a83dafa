"""Compiled and uncompiled kernels held against each other as in tests/kernel/test_differential.py, over many more
cases, other ones in every run."""

from __future__ import annotations

import os
import random

import pytest

from ..kernel.differential.compared import compare
from ..kernel.differential.seed import SEED, seed_of_environment
from .conftest import Count

CASES = 50_000


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cases", [CASES, pytest.param(4 * CASES, marks=pytest.mark.nightly)])
def test_compiled_and_uncompiled_kernels_do_the_same_with_any_mutated_bytes_and_values(
    cases: int, count: Count
) -> None:
    seed = seed_of_environment() if SEED in os.environ else random.randrange(1 << 32)
    count(f"Compiled and uncompiled kernels: {cases} mutated cases, {SEED}={seed}")
    found = compare(seed, cases, processes=2)
    assert found.problems == [], found.report()
