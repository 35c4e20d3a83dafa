"""Which format the table in a place has, or gets."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tagwire.errors import ConfigError
from tagwire.spark.tables.iceberg_catalog import FILE, CatalogSettings
from tagwire.spark.tables.table_format import LandTable

DELTA: Final = "delta"
ICEBERG: Final = "iceberg"
PARQUET: Final = "parquet"
FORMATS: Final = (DELTA, ICEBERG, PARQUET)


def format_of(out: str | Path, wanted: str | None) -> str:
    """The format that is wanted, else that of the table that is there, else Delta where its extra is installed.

    Raises:
        ConfigError: there is no such format.
    """
    if wanted is not None:
        if wanted not in FORMATS:
            raise ConfigError(f"format={wanted!r}: needs {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
        return wanted
    if "://" not in str(out) and (Path(out) / "_tagwire" / "table.json").exists():
        return PARQUET
    if "://" not in str(out) and (Path(out) / FILE).is_file():
        return ICEBERG
    return DELTA if find_spec("deltalake") else PARQUET


def open_table(
    out: str | Path,
    wanted: str | None = None,
    checkpoint: str | Path | None = None,
    storage_options: Mapping[str, str] | None = None,
    catalog: CatalogSettings | None = None,
    topic: str = "",
) -> LandTable:
    """The table in a place; nothing is read or written yet.

    Args:
        wanted: its format; None is as `format_of` finds it.
        checkpoint: where Spark's checkpoint stands; None is below the table.
        storage_options: delta-rs' own, for a table in an object store.
        catalog: of an Iceberg table; None is one beside it.
        topic: names the table in a catalog, where `catalog` does not.

    Raises:
        ConfigError: there is no such format. StorageError: it does not go there.
    """
    if format_of(out, wanted) == DELTA:
        from tagwire.spark.tables.delta_table import DeltaTable

        return DeltaTable(out, checkpoint, storage_options)
    if format_of(out, wanted) == ICEBERG:
        from tagwire.spark.tables.iceberg_table import IcebergTable

        return IcebergTable(out, checkpoint, catalog, topic)
    from tagwire.spark.tables.parquet_table import ParquetTable

    return ParquetTable(out, checkpoint)
