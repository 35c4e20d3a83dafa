"""The Parquet files of an audit. Each appears under its name only when it is whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

from tagwire.capture.census import Offers
from tagwire.capture.requests import Seen
from tagwire.capture.tables import OBSERVATIONS, observation_batch, verdict_table
from tagwire.capture.verdicts import Verdict
from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow.parquet as pq


class ObservationFile:
    """Writes what is seen as it comes, one row group for each batch.

    with ObservationFile(path) as keep:
        for seen in seen_in(capture, losses):
            keep(seen)
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = _part(path)
        self._offers = Offers()

    def __enter__(self) -> Callable[[Seen], None]:
        self._writer = pq.ParquetWriter(self._part, OBSERVATIONS, compression="zstd")
        return self._keep

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        if kind is None:
            if self._path.is_dir():  # as an audit by Spark leaves it
                shutil.rmtree(self._path)
            self._part.rename(self._path)
        else:
            self._part.unlink(missing_ok=True)

    def _keep(self, seen: Seen) -> None:
        self._writer.write_batch(observation_batch(seen, self._offers))


def write_verdicts(path: Path, verdicts: Iterable[Verdict]) -> None:
    """The verdicts as one file."""
    part = _part(path)
    pq.write_table(verdict_table(verdicts), part, compression="zstd")
    part.rename(path)


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")
