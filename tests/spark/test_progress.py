"""What a run remembers of what it has landed stays small, however long it goes on."""

from __future__ import annotations

from tagwire.spark.jobs.landed import Progress


def test_of_very_many_header_keys_the_most_frequent_are_counted():
    progress = Progress()
    for number in range(10_000):
        progress.see_headers(["tenant", f"trace-{number}"], 3)
        assert len(progress.header_keys) <= 2_000
    assert progress.header_keys["tenant"] == 30_000
