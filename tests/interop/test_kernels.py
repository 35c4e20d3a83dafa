"""Compiled and uncompiled kernels held against each other as in tests/kernel/test_differential.py, over many more
cases, other ones in every run."""

from __future__ import annotations

import os
import random

import pytest

from ..kernel.differential.compared import compare
from ..kernel.differential.seed import SEED, seed_of_environment
from .conftest import Count

CASES = 200_000


@pytest.mark.timeout(1800)
def test_compiled_and_uncompiled_kernels_do_the_same_with_any_mutated_bytes_and_values(count: Count) -> None:
    seed = seed_of_environment() if SEED in os.environ else random.randrange(1 << 32)
    count(f"Compiled and uncompiled kernels: {CASES} mutated cases, {SEED}={seed}")
    found = compare(seed, CASES, processes=2)
    assert found.problems == [], found.report()
