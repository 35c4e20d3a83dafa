"""An Iceberg table that grows by whole micro-batches, each exactly once, committed by pyiceberg: no JAR.

    OUT/metadata/..., OUT/data/...   the table; files that no snapshot names are no part of it
    OUT/_catalog.db                  its catalog, where the user has none: SQLite
    OUT/_tagwire/, OUT/_checkpoint/  the lock, Spark's log, and Spark's checkpoint of a run that goes on

What the table was begun with is a property of the table, `tagwire.land`. What it holds is another one,
`tagwire.land.committed`: where each partition of the topic goes on, and which micro-batch of which run was the last. It
is set in the transaction that adds the micro-batch's files; a mark in a snapshot would expire with it. A run starts its
query at these offsets, with an empty checkpoint, so nothing but the table says what is landed.

A commit loads the table, looks at the mark, and asks that the table's snapshot is still the one that was looked at. A
conflict, or an answer that was lost, loads it anew and looks again. pyiceberg's own tries after a conflict are kept
from it: they would add the files to whatever the table has become, and put the mark over another job's.
Sources: Iceberg's table specification; REST catalog, "Update table"; pyiceberg, `Transaction.add_files`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.errors import ConfigError, StorageError, StorageUnavailableError
from tagwire.extras import MissingExtraError
from tagwire.spark.tables.iceberg_catalog import FILE, NAME, CatalogSettings, IcebergCatalog
from tagwire.spark.tables.iceberg_commit import ConflictError, add_files
from tagwire.spark.tables.iceberg_files import destination_of, local_path
from tagwire.spark.tables.iceberg_schema import file_schema, iceberg_schema, lacking, partition_spec
from tagwire.spark.tables.identity import Identity
from tagwire.spark.tables.marked_table import PROPERTY, MarkedTable, described
from tagwire.spark.tables.table_format import Destination, Totals, Written
from tagwire.spark.tables.table_settings import Upkeep

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

COMMITTED = "tagwire.land.committed"
"""The table's property that says what of the topic it holds."""

_ATTEMPTS = 10
_AGE = "history.expire.max-snapshot-age-ms"
_FIVE_DAYS = 5 * 24 * 60 * 60 * 1000
_BEGUN_WITH = {"commit.manifest-merge.enabled": "true", "write.metadata.delete-after-commit.enabled": "true"}


class IcebergTable(MarkedTable):
    """The Iceberg table in `out`, a directory of this machine; or one of a catalog, wherever that keeps it.

    Args:
        topic: names the table, where neither the settings nor a directory do.
    """

    name = "iceberg"

    def __init__(
        self,
        out: str | Path,
        checkpoint: str | Path | None = None,
        catalog: CatalogSettings | None = None,
        topic: str = "",
    ) -> None:
        settings = catalog or CatalogSettings()
        settings.check()
        if settings.embedded and "://" in str(out):
            raise StorageError(f"{out}: an Iceberg table there needs a catalog of yours: --catalog")
        local = Path(out).absolute() if settings.embedded else None
        self._catalog = IcebergCatalog(settings, local)
        self._identifier = settings.identifier(local.name if local else topic)
        self._named = settings.table is not None or local is None
        where = str(local) if local else f"iceberg://{settings.name or NAME}/{self._identifier}"
        super().__init__(local, where, checkpoint)
        self._table: Any = None
        self._mark: str | None = None

    def inspect(self) -> None:
        self._refuse_foreign()
        if self._out is None:
            return
        for mark, other in (("_tagwire/table.json", "parquet"), ("_delta_log", "delta")):
            if (self._out / mark).exists():
                raise StorageError(f"{self._out}: holds a table of the format {other}; go on with that")

    def identity(self) -> Identity | None:
        table = self._loaded()
        return None if table is None else self._identity_in(table)

    def _identity_in(self, table: Any) -> Identity:
        text = table.properties.get(PROPERTY)
        if text is None:
            raise StorageError(f"{self.where}: is an Iceberg table that `land` has not begun; choose another one")
        return self._read_identity(text)

    def begin(self, identity: Identity, schema: pa.Schema, partitions: Sequence[int]) -> dict[int, int]:
        self._begin_run(identity)
        self._identity = identity
        columns = iceberg_schema(self._kept(schema))
        table = self._loaded()
        self._refuse_changed(None if table is None else self._identity_in(table), identity)
        with self._refusals():
            if table is None:
                table = self._created(columns)
            else:
                self._fit(table, columns)
                table = self._loaded()
        self._table, self._known = table, self._identity_in(table)
        self._mark = table.properties.get(COMMITTED)
        return {index: offset for index, offset in self._offsets().items() if index in partitions}

    def columns(self, schema: pa.Schema) -> pa.Schema:
        folders = [schema.field(name) for name in (self._folder,) if name is not None]
        kept = file_schema(self._kept(schema), self._table.schema())
        for folder in folders:
            kept = kept.insert(schema.get_field_index(folder.name), folder)
        return kept

    def left_out(self) -> tuple[str, ...]:
        return () if self._folder is None else (self._folder,)

    def partition_values(self) -> Mapping[Path, Mapping[str, str | None]]:
        """Nothing: its files have all columns."""
        return {}

    def destination(self, batch: int) -> Destination:
        with self._refusals():
            # Anew where it is elsewhere: what opens a table's store may expire, and comes with the table.
            if self._out is None:
                self._table = self._found()
            return destination_of(self._table)

    def commit(
        self, batch: int, written: Written, ends: Mapping[int, int], moved: Callable[[], None] = lambda: None
    ) -> tuple[int, int]:
        assert self._identity is not None
        offsets = {str(index): end for index, end in sorted({**self._offsets(), **ends}.items())}
        mark = json.dumps({"id": self._identity.id, "commit": f"{self._run}/{batch}", "offsets": offsets})
        with self._refusals():
            files = [f"{self._table.location_provider().data_path}/{file.path}" for file in written.files]
            for left in reversed(range(_ATTEMPTS)):
                self._table = self._found()
                there = self._table.properties.get(COMMITTED)
                if there == mark:
                    break
                if there != self._mark:
                    raise StorageError(
                        f"{self.where}: another job has landed into the table meanwhile; this one stops, and nothing "
                        "is landed twice"
                    )
                try:
                    add_files(self._table, files, {PROPERTY: self._described(), COMMITTED: mark})
                    break
                except ConflictError:
                    # Somebody else has committed: look at what the table is now.
                    if not left:
                        raise
                except Exception:
                    # An answer that was lost: the table says whether the commit was.
                    if self._found().properties.get(COMMITTED) != mark:
                        raise
        self._mark, self._known = mark, self._identity
        return len(written.files), written.size

    def totals(self) -> Totals:
        table = self._loaded()
        snapshot = None if table is None else table.current_snapshot()
        if snapshot is None or snapshot.summary is None:
            return Totals(0, 0, 0)
        names = ("total-records", "total-data-files", "total-files-size")
        return Totals(*(int(snapshot.summary[name] or 0) for name in names))

    def files(self) -> list[Path]:
        table = self._loaded()
        if table is None:
            return []
        with self._refusals():
            paths = [local_path(task.file.file_path) for task in table.scan().plan_files()]
        return sorted(path for path in paths if path is not None)

    def has_deletes(self) -> bool:
        snapshot = None if (table := self._loaded()) is None else table.current_snapshot()
        return bool(snapshot and snapshot.summary and int(snapshot.summary["total-delete-files"] or 0))

    def keep_up(self, upkeep: Upkeep) -> None:
        table = self._loaded()
        if table is None or not upkeep.vacuum:
            return
        with self._refusals():
            oldest = datetime.now(UTC) - timedelta(milliseconds=int(table.properties.get(_AGE, _FIVE_DAYS)))
            if any(each.timestamp_ms < oldest.timestamp() * 1000 for each in table.snapshots()[:-1]):
                table.maintenance.expire_snapshots().older_than(oldest).commit()

    @property
    def _folder(self) -> str | None:
        return None if self._identity is None else self._identity.time_folder

    def _kept(self, schema: pa.Schema) -> pa.Schema:
        """The columns of the table: what keeps files apart is a transform of one of them."""
        import pyarrow as pa

        return pa.schema([field for field in schema if field.name != self._folder])

    def _offsets(self) -> dict[int, int]:
        """Where the topic goes on, by the mark that was seen last."""
        assert self._identity is not None
        if self._mark is None:
            raise StorageError(f"{self.where}: its property {COMMITTED} is gone, which says what the table holds")
        try:
            found = json.loads(self._mark)
            # Another id: what is marked of the old topic's offsets says nothing of the new one's.
            offsets = found["offsets"] if found["id"] == self._identity.id else {}
            return {int(index): int(offset) for index, offset in offsets.items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            raise StorageError(f"{self.where}: its property {COMMITTED} does not say what the table holds") from None

    def _described(self) -> str:
        assert self._identity is not None
        return described(self._identity)

    def _created(self, columns: Any) -> Any:
        from pyiceberg.exceptions import TableAlreadyExistsError

        assert self._identity is not None
        nothing = json.dumps({"id": self._identity.id, "commit": "", "offsets": {}})
        catalog = self._catalog.opened()
        space = self._identifier.rpartition(".")[0]
        catalog.create_namespace_if_not_exists(space)
        try:
            return catalog.create_table(
                self._identifier,
                columns,
                location=None if self._out is None else f"file://{self._out}",
                partition_spec=partition_spec(columns, self._identity.folders),
                properties={**_BEGUN_WITH, PROPERTY: self._described(), COMMITTED: nothing},
            )
        except TableAlreadyExistsError:
            raise StorageError(f"{self.where}: another job has begun the table meanwhile; run it again") from None

    def _fit(self, table: Any, columns: Any) -> None:
        """Gives the table what the rows have and it lacks; but the id, which the first commit sets with its mark."""
        added = lacking(self.where, table.schema(), columns)
        if added and not self._evolve:
            names = ", ".join(map(repr, added))
            raise StorageError(
                f"{self.where}: lacks what the rows have in column {names}; with option evolve it gets that"
            )
        known = json.loads(table.properties[PROPERTY])
        assert self._identity is not None
        same = known["id"] == self._identity.id
        if added or (same and table.properties[PROPERTY] != self._described()):
            with table.transaction() as change:
                if added:
                    with change.update_schema() as update:
                        update.union_by_name(columns)
                if same:
                    change.set_properties({PROPERTY: self._described()})

    def _found(self) -> Any:
        table = self._loaded()
        if table is None:
            raise StorageError(f"{self.where}: is gone")
        return table

    def _loaded(self) -> Any:
        """The table as it is now; None where there is none."""
        if not self._catalog.there:
            return None
        with self._refusals():
            catalog = self._catalog.opened()
            from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

            if not self._named and (tables := self._catalog.tables()):
                self._identifier, self._named = tables[0], True
            try:
                return catalog.load_table(self._identifier)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Errors of pyiceberg as ours, in one line, without secrets."""
        try:
            yield
        except (StorageError, ConfigError, MissingExtraError):
            raise
        except Exception as error:
            # Its cause is left out: a traceback would show what the line does not.
            kind = StorageUnavailableError if self._catalog.is_away(error) else StorageError
            raise kind(f"{self.where}: {self._catalog.said(error)}") from None


def opened_by(where: str) -> str:
    """The call that opens a table in Python, of `pyiceberg.catalog`; a catalog's properties are left to who reads it.

    Args:
        where: `IcebergTable.where` of a table that is there.
    """
    catalog, _, identifier = where.removeprefix("iceberg://").partition("/")
    if not where.startswith("iceberg://"):
        tables = IcebergCatalog(CatalogSettings(), Path(where)).tables()
        uri = json.dumps(f"sqlite:///{where}/{FILE}", ensure_ascii=False)
        return f'load_catalog("{NAME}", type="sql", uri={uri}).load_table({json.dumps(tables[0])})'
    return f"load_catalog({json.dumps(catalog)}).load_table({json.dumps(identifier)})"
