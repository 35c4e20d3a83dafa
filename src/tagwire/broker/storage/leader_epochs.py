"""Which leader epoch each offset of a partition was written in, and where the epochs end.

Source: docs/log-files.md#leader-epochs; KIP-101, KIP-320.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

NO_EPOCH = -1


class LeaderEpochs:
    """The leader epochs of a log, each with the offset it begins at, oldest first. There is at least one.

    It never changes."""

    def __init__(self, starts: Sequence[tuple[int, int]]) -> None:
        # Tuples of numbers, which the garbage collector leaves out after its first look.
        self._epochs = tuple([epoch for epoch, _ in starts])
        self._offsets = tuple([offset for _, offset in starts])

    @property
    def starts(self) -> list[tuple[int, int]]:
        """Each epoch with the offset it begins at, oldest first."""
        return list(zip(self._epochs, self._offsets))

    @property
    def latest(self) -> int:
        """The epoch that is written in now."""
        return self._epochs[-1]

    def at(self, offset: int) -> int:
        """The epoch of an offset; the oldest that is known for one before it."""
        return self._epochs[max(bisect_right(self._offsets, offset) - 1, 0)]

    def end_of(self, epoch: int, start: int, end: int) -> tuple[int, int] | None:
        """The newest epoch that is not newer than `epoch`, and the offset after its last; None for an epoch to come,
        and for -1, which stands for none.

        A client whose own log of that epoch reaches further has read what this one does not hold. Before the oldest
        epoch there is nothing: such an epoch ends, as itself, where the log starts.

        Args:
            start, end: the offsets that the log holds.
        """
        if epoch > self.latest or epoch == NO_EPOCH:
            return None
        found = bisect_right(self._epochs, epoch)
        if not found:
            return epoch, max(self._offsets[0], start)
        ends = self._offsets[found] if found < len(self._epochs) else end
        return self._epochs[found - 1], max(ends, start)


def held_epochs(starts: Sequence[tuple[int, int]], log_start: int) -> list[tuple[int, int]]:
    """Of leader epochs and where they begin those of which a log from `log_start` on may hold something: of what was
    deleted nothing is told, and each crash would leave one more. As Kafka's LeaderEpochFileCache.truncateFromStart."""
    followed = sum(1 for _, start in starts if start <= log_start)
    return list(starts[max(followed - 1, 0) :])
