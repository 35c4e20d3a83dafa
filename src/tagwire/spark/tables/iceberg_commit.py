"""One transaction on an Iceberg table: tried once, and as dear at its ten thousandth commit as at its first.

pyiceberg copies all that is known of a table each time that a transaction looks something up in it, twenty times for an
append; and what is known grows by a snapshot with each commit. Here it is copied when the transaction has changed it,
and old snapshots go as new ones come.
Sources: Iceberg's table specification, "Snapshot Retention Policy"; pyiceberg, `Transaction`, `ExpireSnapshots`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

KEPT: Final = "history.expire.min-snapshots-to-keep"
"""Iceberg's property of a table: how many snapshots stay, at least."""

SNAPSHOTS: Final = 100
"""How many stay of a table that does not say. Twice as many are there before some go."""


class ConflictError(Exception):
    """The catalog has refused a commit, since the table is not what it was."""


class _CommittedOnce:
    """A catalog for one commit, whose conflicts pyiceberg does not see as such.

    It would add the files to what the table has become, or, as a last try, delete the metadata of the commit. But a
    commit can be there though a conflict was reported, where something between us and the catalog has sent it twice.
    """

    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit_table(self, *given: Any) -> Any:
        from pyiceberg.exceptions import CommitFailedException

        try:
            return self._catalog.commit_table(*given)
        except CommitFailedException as error:
            raise ConflictError(str(error)) from error


def add_files(table: Any, files: Sequence[str], properties: Mapping[str, str]) -> None:
    """Adds files to a `pyiceberg.table.Table` and sets properties of it, at once.

    It asks that the table's snapshot is still that of the table in hand, if there are files or not. Of snapshots that
    are too many, the oldest are expired, but those that a branch or tag names.

    Raises:
        ConflictError: the table is not what it was; nothing is done.
    """
    from pyiceberg.table import Transaction
    from pyiceberg.table.update.snapshot import ExpireSnapshots

    class Looked(Transaction):
        """Has the table's metadata at hand until a change is staged."""

        _seen: tuple[Any, Any] | None = None

        @property
        def table_metadata(self) -> Any:
            if not self._updates:
                return self._table.metadata
            if self._seen is None or self._seen[0] is not self._updates:
                self._seen = self._updates, super().table_metadata
            return self._seen[1]

    table.catalog = _CommittedOnce(table.catalog)
    with Looked(table) as change:
        change.set_properties(dict(properties))
        old = _too_old(table.metadata)
        if old:
            ExpireSnapshots(change).by_ids(old).commit()
        change.add_files(list(files), check_duplicate_files=False)


def _too_old(metadata: Any) -> list[int]:
    """The snapshots that are too many, oldest first; none until there are twice those that stay."""
    kept = int(metadata.properties.get(KEPT, SNAPSHOTS))
    if len(metadata.snapshots) < 2 * kept:
        return []
    named = {ref.snapshot_id for ref in metadata.refs.values()}
    oldest = sorted(metadata.snapshots, key=lambda snapshot: snapshot.timestamp_ms)[: len(metadata.snapshots) - kept]
    return [snapshot.snapshot_id for snapshot in oldest if snapshot.snapshot_id not in named]
