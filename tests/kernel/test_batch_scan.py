"""Walking the batches of a response: as their headers say, and never beyond what agrees with itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tagwire import records
from tagwire.errors import TagwireError
from tagwire.kernel.batch_scan import pass_batches
from tagwire.kernel.leader_epochs import leader_epochs
from tagwire.records import Record

MAX_OFFSET = 2**63 - 1
LOG = b"".join(
    records.write([Record(None, b"v" * (first % 7))] * count, base_offset=first, compression=compression)
    for first, count, compression in ((5, 3, "none"), (8, 1, "lz4"), (20, 10, "zstd"), (30, 2, "none"))
)


def passed(data: bytes, after: int, limit: int) -> tuple[int, int, int]:
    return pass_batches(memoryview(data), after, limit)


def by_headers(data: bytes, after: int, limit: int) -> tuple[int, int, int]:
    """What the same walk gives header by header."""
    at = rows = 0
    try:
        for header in records.batch_headers(data):
            if header.magic != 2 or header.next_offset <= after or header.base_offset >= limit:
                break
            at, rows, after = header.position + header.size, rows + header.count, header.next_offset
    except TagwireError:
        pass
    return at, rows, after


def test_batches_are_passed_up_to_the_limit() -> None:
    assert passed(LOG, 0, MAX_OFFSET) == (len(LOG), 16, 32)
    assert passed(LOG, 6, MAX_OFFSET) == (len(LOG), 16, 32)
    assert passed(LOG, 0, 20)[1:] == (4, 9)
    assert passed(LOG, 8, MAX_OFFSET) == (0, 0, 8)
    assert passed(b"", 7, MAX_OFFSET) == (0, 0, 7)


@given(st.integers(0, len(LOG)), st.integers(0, 40), st.integers(0, 40))
def test_a_log_cut_anywhere_is_passed_as_its_headers_say(size: int, after: int, limit: int) -> None:
    assert passed(LOG[:size], after, limit) == by_headers(LOG[:size], after, limit)


@given(st.integers(0, len(LOG) - 1), st.integers(0, 255), st.integers(0, 40))
def test_a_log_with_any_byte_changed_is_passed_as_its_headers_say(at: int, byte: int, after: int) -> None:
    data = LOG[:at] + bytes([byte]) + LOG[at + 1 :]
    assert passed(data, after, MAX_OFFSET) == by_headers(data, after, MAX_OFFSET)


@given(st.lists(st.tuples(st.sampled_from([-1, 0, 7, 2**31 - 1]), st.integers(1, 3)), max_size=8))
def test_runs_of_batches_are_told_by_the_leader_epoch_that_their_headers_have(batches: list[tuple[int, int]]) -> None:
    log, after, expected = b"", 5, []
    for epoch, count in batches:
        log += records.write([Record(None, b"v")] * count, base_offset=after, partition_leader_epoch=epoch)
        after += count
        if expected and expected[-1][0] == epoch:
            expected.pop()
        expected.append((epoch, after))
    assert leader_epochs(memoryview(log + b"cut off"), len(log)) == expected
