"""Rates and token buckets, and how long to wait, as Kafka's QuotaUtilsTest and TokenBucketTest have them."""

from __future__ import annotations

import pytest

from tagwire.broker.quotas.rates import LONGEST_MS, Rate, TokenBucket


def test_within_the_bound_nobody_waits():
    rate = Rate()
    for second in range(30):
        assert rate.record(450, 500, second * 1000) == 0


def test_a_client_may_begin_with_what_it_may_have_in_ten_seconds():
    assert Rate().record(5000, 500, 0) == 0
    assert Rate().record(5001, 500, 0) > 0


def test_who_is_over_the_bound_waits_until_it_is_within_it():
    rate = Rate()
    assert rate.record(6000, 500, 0) == 2000  # 6,000 in 12 seconds are 500 a second
    assert rate.record(0, 500, 500) == 1500
    assert rate.record(0, 500, 12_000) == 0


def test_what_was_long_ago_counts_no_more():
    rate = Rate()
    rate.record(1e9, 500, 0)
    assert rate.record(1, 500, 10_999) > 0
    assert rate.record(1, 500, 23_000) == 0


def test_what_is_taken_back_was_not_there():
    rate = Rate()
    assert rate.record(9000, 500, 100) > 0
    rate.take_back(9000, 500, 100)
    assert rate.record(5000, 500, 100) == 0


def test_a_rate_holds_no_more_than_its_samples():
    rate = Rate()
    for millisecond in range(0, 100_000, 7):
        rate.record(1, 500, millisecond)
    assert len(rate._samples) <= 12


def test_a_bucket_is_full_at_first_and_waits_below_zero():
    bucket = TokenBucket()
    assert bucket.record_strictly(60, 5.0, 0) == 0  # 55 are in it, and it may go below zero once
    assert bucket.record_strictly(1, 5.0, 0) == 1000
    assert bucket.record_strictly(1, 5.0, 400) == 600
    assert bucket.record_strictly(1, 5.0, 1000) == 0
    assert bucket.record(1, 5.0, 1000) == 400
    bucket.take_back(1000, 5.0, 1000)
    assert bucket.record(55, 5.0, 1000) == 0
    assert bucket.record(1, 5.0, 1000) == 200


@pytest.mark.parametrize("bound", [0.001, 1.0, 1e18])
def test_any_bound_will_do(bound):
    assert Rate().record(1e-9, bound, 5) == 0
    assert TokenBucket().record(1e-9, bound, 5) == 0


def test_of_a_bound_next_to_nothing_the_wait_can_be_told():
    assert Rate().record(1e9, 5e-324, 5) == LONGEST_MS
    assert TokenBucket().record(1e9, 5e-324, 5) == LONGEST_MS
