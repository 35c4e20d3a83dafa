"""The Parquet files of an audit. Each appears under its name only when it is whole."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow.parquet as pq

from tagwire.capture.census import Offers
from tagwire.capture.observation import Observation
from tagwire.capture.tables import BATCH_ROWS, OBSERVATIONS, observation_batches, verdict_table
from tagwire.capture.verdicts import Verdict


class ObservationFile:
    """Writes the observations that pass through it: memory holds one row group of them.

    with ObservationFile(path) as keep:
        for observation in keep(observe(capture, losses)):
            ...
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = _part(path)
        self._rows: list[Observation] = []
        self._offers = Offers()

    def __enter__(self) -> Any:
        self._writer = pq.ParquetWriter(self._part, OBSERVATIONS, compression="zstd")
        return self._passed

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.close()
        if kind is None:
            if self._path.is_dir():  # as an audit by Spark leaves it
                shutil.rmtree(self._path)
            self._part.rename(self._path)
        else:
            self._part.unlink(missing_ok=True)

    def _passed(self, observations: Iterable[Observation]) -> Iterator[Observation]:
        for observation in observations:
            self._rows.append(observation)
            if len(self._rows) == BATCH_ROWS:
                self._flush()
            yield observation

    def _flush(self) -> None:
        for batch in observation_batches(self._rows, self._offers):
            self._writer.write_batch(batch)
        self._rows.clear()


def write_verdicts(path: Path, verdicts: Iterable[Verdict]) -> None:
    """The verdicts as one file."""
    part = _part(path)
    pq.write_table(verdict_table(verdicts), part, compression="zstd")
    part.rename(path)


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")
