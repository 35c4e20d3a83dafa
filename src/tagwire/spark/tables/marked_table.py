"""What tables share that say themselves what they hold: no checkpoint of Spark's outlives a run."""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from tagwire.errors import StorageError
from tagwire.spark.tables.identity import Identity, agreed
from tagwire.spark.tables.local_files import locked, remove_abandoned, storage
from tagwire.spark.tables.table_settings import TableSettings

PROPERTY = "tagwire.land"
"""The table's property that says what it was begun with."""

_FORMAT = 1
_PASSING = "tagwire-land-"
_OF_A_TABLE = "table-"
_ABANDONED = 3600.0


class MarkedTable:
    """The lock, the checkpoint of a run, and what the table was begun with; what is marked is a format's own.

    Args:
        out: the table's directory on this machine; None where it is elsewhere.
        where: the table's place, for errors.
        checkpoint: a directory for checkpoints, which other tables may share.
    """

    def __init__(self, out: Path | None, where: str, checkpoint: str | Path | None) -> None:
        if "://" in str(checkpoint or ""):
            raise StorageError(f"{checkpoint}: Spark's checkpoint stands in a local directory")
        self._out = out
        self.where = where
        self._run = uuid.uuid4().hex
        self._given = Path(checkpoint).absolute() if checkpoint else None
        if out is not None:
            self.state = out / "_tagwire"
        else:
            # Nothing of a run has to outlive it: the table itself says what it holds. What is locked is the table's own
            # also where the directory is shared.
            own = f"{_OF_A_TABLE}{sha256(where.rstrip('/').encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
            passing = Path(tempfile.gettempdir()) / f"{_PASSING}{self._run}"
            self.state = passing if self._given is None else self._given / own
        self._checkpoints = self._given or (self.state if out is None else out / "_checkpoint")
        self._known: Identity | None = None  # as the table says, when it was last looked at
        self._identity: Identity | None = None
        self._evolve = False

    def identity(self) -> Identity | None:
        """Whose table this is, as it is now; None where there is no table."""
        raise NotImplementedError

    def judge(self, topic: str, cluster_id: str, topic_id: str, settings: TableSettings) -> Identity:
        self._evolve = settings.evolve
        self._known = self.identity()
        return agreed(self.where, self._known, topic, cluster_id, topic_id, settings)

    def own(self) -> None:
        with storage(self.state):
            self.state.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        self.own()
        with locked(self.state, self.where):
            passing = self._out is None and self._given is None
            try:
                if passing:
                    remove_abandoned(self.state.parent, _PASSING, _ABANDONED)
                yield
            finally:
                shutil.rmtree(self.state if passing else self.checkpoint_location(), ignore_errors=True)

    def claim(self, identity: Identity) -> None:
        """Readies an empty checkpoint; runs that were killed have left theirs. A directory given may be shared."""
        with storage(self._checkpoints):
            self._checkpoints.mkdir(parents=True, exist_ok=True)
            for left in self._checkpoints.glob("run-*" if self._given is None else f"run-{identity.id}-*"):
                shutil.rmtree(left, ignore_errors=True)

    def checkpoint_location(self) -> Path:
        return self._checkpoints / f"run-{self._run}"

    def clear(self, batch: int) -> int:
        """Nothing: files that no commit names are seen by nobody."""
        return 0

    def holds(self, batch: int) -> bool:
        """Never: a run begins behind all that its table holds."""
        return False

    def _begin_run(self, identity: Identity) -> None:
        # A query that begins at the table's own marks takes no checkpoint of another one.
        shutil.rmtree(self.checkpoint_location(), ignore_errors=True)
        self._run = f"{identity.id}-{uuid.uuid4().hex}"

    def _refuse_foreign(self) -> None:
        """Raises StorageError where the directory holds what no table of ours is."""
        for path in filter(None, (self._out, self._given)):
            if path.exists() and not path.is_dir():
                raise StorageError(f"{path}: not a directory")
        known = self.identity()
        if self._out is None:
            return
        if known is None and self._out.exists() and any(self._out.iterdir()) and not self.state.is_dir():
            raise StorageError(f"{self._out}: holds other files and no table of ours; choose another directory")

    def _refuse_changed(self, there: Identity | None, identity: Identity) -> None:
        """Raises StorageError where the table is not what was judged: only the lock of one machine keeps others off.

        Args:
            identity: what it is to become; it may be so already, by a step of ours whose answer was lost.
        """
        if there not in (self._known, identity):
            raise StorageError(
                f"{self.where}: another job has begun the table, or changed it, meanwhile; this one stops, and has "
                "landed nothing"
            )

    def _read_identity(self, text: str) -> Identity:
        try:
            found = json.loads(text)
            if found.pop("format") != _FORMAT:
                raise StorageError(f"{self.where}: begun by another version of tagwire")
            return Identity(**{**found, "headers": tuple(found["headers"])})
        except (KeyError, TypeError, ValueError, AttributeError):
            raise StorageError(f"{self.where}: its property {PROPERTY} does not describe a table") from None


def described(identity: Identity) -> str:
    """What `PROPERTY` says of a table."""
    return json.dumps({"format": _FORMAT, **asdict(identity)})
