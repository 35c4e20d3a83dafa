"""A Delta table that grows by whole micro-batches, each exactly once, committed by delta-rs: no JAR.

    OUT/_delta_log/...                         what the table is: Delta's log
    OUT/part-*.parquet, OUT/date=.../part-*    its files; those that no commit names are no part of it
    OUT/_tagwire/                              the lock, and Spark's log
    OUT/_checkpoint/                           Spark's, of a run that goes on, unless it is elsewhere

What the table was begun with is a property of the table, `tagwire.land`. What it holds is marked in the commits that
add it, as Delta's application transactions: `tagwire/ID` is the number of the last micro-batch, and
`tagwire/ID/PARTITION` the offset at which that partition of the topic goes on. A run starts its query at these offsets,
with an empty checkpoint. So nothing but the table says what is landed: a run that was killed before a commit has left
files that nobody sees, and after it, nothing to do.

A table in an object store has no lock, and its run's checkpoint in a local directory that is forgotten with it.

A commit goes onto the snapshot whose mark was looked at. Delta lets it through where others have added rows meanwhile,
and refuses it where another run has committed a micro-batch; then the snapshot is loaded anew, and looked at again.
Sources: Delta's protocol, "Transaction Identifiers"; delta-rs, `deltalake.transaction`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tagwire.errors import StorageError, StorageUnavailableError
from tagwire.extras import Needs
from tagwire.spark.tables.data_files import LocalDestination
from tagwire.spark.tables.delta_schema import added_columns, delta_schema, refuse_unheld
from tagwire.spark.tables.iceberg_catalog import FILE as CATALOG_FILE
from tagwire.spark.tables.identity import Identity
from tagwire.spark.tables.marked_table import PROPERTY, MarkedTable, described
from tagwire.spark.tables.object_stores import ObjectStoreDestination, told
from tagwire.spark.tables.table_format import Destination, Totals, Written
from tagwire.spark.tables.table_settings import Upkeep

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

_ATTEMPTS = 10
_TIDIED = 100  # commits, as delta-rs has them between two checkpoints
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_CONSTRAINTS = "delta.constraints."
_DELETION_VECTORS = "deletionVectors"
_MAPPING = "delta.columnMapping.mode"
_EXPIRING = "delta.setTransactionRetentionDuration"


class DeltaTable(MarkedTable):
    """The Delta table in `out`: a directory of this machine, or a URL that delta-rs takes, such as s3://bucket/table.

    `storage_options` are delta-rs' for such a URL. They are in no repr and in no error, as far as they are secrets.
    """

    name = "delta"

    def __init__(
        self,
        out: str | Path,
        checkpoint: str | Path | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        local = None if "://" in str(out) else Path(out).absolute()
        super().__init__(local, str(local or out), checkpoint)
        self._options = dict(storage_options or {})
        self._table: Any = None
        self._columns: Any = None
        self._last = -1

    def inspect(self) -> None:
        if self._out is not None and _ESCAPE.search(self.where):
            raise StorageError(f"{self.where}: delta-rs reads the % in it as an escape; choose another directory")
        self._refuse_foreign()
        if self._out is None:
            return
        if (self.state / "table.json").exists():
            raise StorageError(f"{self._out}: holds a table of plain Parquet files; go on with the format parquet")
        if (self._out / CATALOG_FILE).is_file():
            raise StorageError(f"{self._out}: holds an Iceberg table; go on with the format iceberg")

    def identity(self) -> Identity | None:
        table = self._loaded()
        return None if table is None else self._identity_in(table)

    def _identity_in(self, table: Any) -> Identity:
        text = table.metadata().configuration.get(PROPERTY)
        if text is None:
            raise StorageError(f"{self.where}: is a Delta table that `land` has not begun; choose another place")
        return self._read_identity(text)

    def begin(self, identity: Identity, schema: pa.Schema, partitions: Sequence[int]) -> dict[int, int]:
        self._begin_run(identity)
        columns = delta_schema(self.where, schema)
        folders = list(identity.folders)
        begun = {PROPERTY: described(identity)}
        table = self._loaded()
        there = None if table is None else self._identity_in(table)
        self._refuse_changed(there, identity)
        with Needs("delta"), self._refusals():
            import deltalake

            # That the table has marks is marked: where none is found, they are lost.
            marked = deltalake.CommitProperties(app_transactions=[deltalake.Transaction(f"tagwire/{identity.id}", 0)])
            if table is None:
                deltalake.DeltaTable.create(
                    self.where,
                    columns,
                    partition_by=folders,
                    configuration=begun,
                    storage_options=self._options,
                    commit_properties=marked,
                    raise_if_key_not_exists=False,
                )
                table = self._loaded()
            else:
                self._refuse_expiring(table)
                self._refuse_constraints(table)
                added = self._lacking(table, columns, folders)
                if added and not self._evolve:
                    names = ", ".join(repr(field.name) for field in added)
                    raise StorageError(
                        f"{self.where}: lacks what the rows have in column {names}; with option evolve it gets that"
                    )
                if added:
                    table.alter.add_columns(added)
                if table.metadata().configuration[PROPERTY] != begun[PROPERTY]:
                    table.alter.set_table_properties(
                        begun,
                        raise_if_not_exists=False,
                        commit_properties=marked if there is not None and there.id != identity.id else None,
                    )
        self._table, self._identity, self._known = table, identity, identity
        self._columns = columns
        with self._refusals():
            self._last = self._mark()
            found = {index: table.transaction_version(f"{self._application}/{index}") for index in partitions}
        return {index: offset for index, offset in found.items() if offset is not None}

    def columns(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def left_out(self) -> tuple[str, ...]:
        return () if self._identity is None else self._identity.folders

    def partition_values(self) -> Mapping[Path, Mapping[str, str | None]]:
        table = None if self._out is None else self._loaded()
        names = [] if table is None else table.metadata().partition_columns
        return {
            path: {
                name: None if file[f"partition.{name}"] is None else str(file[f"partition.{name}"]) for name in names
            }
            for path, file in self._added(table)
        }

    def destination(self, batch: int) -> Destination:
        if self._out is None:
            return ObjectStoreDestination(self.where, self._options)
        return LocalDestination(self._out, statistics=True)

    def commit(
        self, batch: int, written: Written, ends: Mapping[int, int], moved: Callable[[], None] = lambda: None
    ) -> tuple[int, int]:
        with Needs("delta"):
            from deltalake import CommitProperties, PostCommitHookProperties, Transaction
            from deltalake.exceptions import CommitFailedError
            from deltalake.transaction import AddAction

        assert self._identity is not None
        folders = list(self._identity.folders)
        ours = f"{self._run}/{batch}"
        marks = {f"{self._application}/{index}": end for index, end in ends.items()}
        transactions = [Transaction(name, at) for name, at in {self._application: self._last + 1, **marks}.items()]
        now = int(time.time() * 1000)
        added = [
            AddAction(
                file.path,
                file.size,
                {name: value or None for name, value in file.partition_values.items()},
                now,
                True,
                file.statistics,
            )
            for file in written.files
        ]
        for left in reversed(range(_ATTEMPTS)):
            with self._refusals():
                self._table.update_incremental()
                began = self._identity_in(self._table).id == self._identity.id
                last = self._mark() if began else -1
                if last != self._last:
                    if not began or not self._is_ours(ours):
                        raise StorageError(
                            f"{self.where}: another job has landed into the table meanwhile (micro-batch {last}, after "
                            f"{self._last}); this one stops, and nothing is landed twice"
                        )
                    break
                self._refuse_constraints(self._table)
                if self._lacking(self._table, self._columns, folders):
                    raise StorageError(f"{self.where}: somebody has taken columns from the table that the rows have")
                try:
                    self._table.create_write_transaction(
                        added,
                        "append",
                        self._table.schema(),
                        partition_by=folders,
                        commit_properties=CommitProperties(
                            app_transactions=transactions, custom_metadata={PROPERTY: ours}
                        ),
                        # Looking for what of the log is expired lists all of it; None is as the table has it.
                        post_commithook_properties=PostCommitHookProperties(
                            cleanup_expired_logs=False if (self._last + 1) % _TIDIED else None
                        ),
                    )
                    break
                except CommitFailedError:
                    # Somebody else has committed what does not go with ours: look at what the table is now.
                    if not left:
                        raise
        self._last += 1
        return len(written.files), written.size

    def totals(self) -> Totals:
        table = self._loaded()
        if table is None:
            return Totals(0, 0, 0)
        import pyarrow as pa
        import pyarrow.compute as pc

        with self._refusals():
            files = pa.table(table.get_add_actions(flatten=True))
            return Totals(table.count(), files.num_rows, pc.sum(files["size_bytes"]).as_py() or 0)

    def files(self) -> list[Path]:
        return sorted(path for path, _ in self._added(None if self._out is None else self._loaded()))

    def _added(self, table: Any) -> list[tuple[Path, Mapping[str, Any]]]:
        """The files of a snapshot on this machine, each with what the log says of it."""
        if self._out is None or table is None:
            return []
        import pyarrow as pa

        with self._refusals():
            files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        # Not by its URIs, of which one part is quoted and the other is not.
        return [(self._out / unquote(file["path"]), file) for file in files]

    def has_deletes(self) -> bool:
        table = self._loaded()
        if table is None or _DELETION_VECTORS not in (table.protocol().reader_features or ()):
            return False
        import pyarrow as pa

        with self._refusals():
            return bool(pa.table(table.deletion_vectors()).num_rows)

    def keep_up(self, upkeep: Upkeep) -> None:
        table = self._loaded()
        if table is None:
            return
        with self._refusals():
            if upkeep.optimize:
                table.optimize.compact()
            if upkeep.vacuum:
                # In full: what a killed run has left is in no version of the table.
                table.vacuum(dry_run=False, full=True)

    @property
    def _application(self) -> str:
        assert self._identity is not None
        return f"tagwire/{self._identity.id}"

    def _loaded(self) -> Any:
        """The newest snapshot of the table; None where there is no table."""
        with Needs("delta"):
            import deltalake
            from deltalake.exceptions import TableNotFoundError
        if self._out is not None and not (self._out / "_delta_log").is_dir():
            return None
        with self._refusals():
            try:
                return deltalake.DeltaTable(self.where, storage_options=self._options)
            except TableNotFoundError:
                return None

    def _mark(self) -> int:
        """How many micro-batches the table has of this one."""
        last = self._table.transaction_version(self._application)
        if last is None:
            raise StorageError(
                f"{self.where}: its log has lost the marks that say what is landed ({_EXPIRING} lets them expire, and "
                "a clone may lack them); land into another place"
            )
        return int(last)

    def _refuse_expiring(self, table: Any) -> None:
        if table.metadata().configuration.get(_EXPIRING):
            raise StorageError(
                f"{self.where}: its property {_EXPIRING} lets the marks expire that say what is landed; take it away"
            )

    def _refuse_constraints(self, table: Any) -> None:
        """Whoever writes has to see to it that rows meet them, and nothing here evaluates Spark's expressions; and
        writes columns by their names, where a table may have them by ids.
        """
        configuration = table.metadata().configuration
        names = [name for name in configuration if name.startswith(_CONSTRAINTS)]
        if names:
            raise StorageError(
                f"{self.where}: its property {names[0]} is a constraint, which is not looked at here; take it away"
            )
        if configuration.get(_MAPPING) == "id":
            raise StorageError(
                f"{self.where}: its property {_MAPPING} has readers find columns by ids, which are in no file that is "
                "landed; choose another place"
            )
        refuse_unheld(self.where, table.schema())

    def _lacking(self, table: Any, columns: Any, folders: list[str]) -> list[Any]:
        """What of the columns of the rows a table lacks. Raises StorageError: it has others."""
        there = list(table.metadata().partition_columns)
        if there != folders:
            raise StorageError(
                f"{self.where}: is partitioned by {', '.join(there) or 'nothing'} now, and was begun with "
                f"{', '.join(folders) or 'nothing'}; choose another place"
            )
        return added_columns(self.where, table.schema(), columns)

    def _is_ours(self, mark: str) -> bool:
        """Whether a commit of ours went through though it was reported to have failed."""
        return any(commit.get(PROPERTY) == mark for commit in self._table.history(_ATTEMPTS))

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Errors of delta-rs as ours, in one line: theirs have traces of Rust."""
        try:
            yield
        except StorageError:
            raise
        except Exception as error:
            # Its cause is left out: a traceback would show the secrets that the line does not.
            kind = StorageUnavailableError if isinstance(error, OSError) else StorageError
            raise kind(f"{self.where}: {told(error, self._options)}") from None
