"""The columns of a landed table, from those of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tagwire.spark.columns import quoted
from tagwire.spark.tables.identity import Identity
from tagwire.spark.tables.table_settings import DATE, HOUR, MONTH

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KEY_LISTS = 1000


def table_columns(records: DataFrame, identity: Identity) -> DataFrame:
    """The columns of the table from those of the source, which include the headers."""
    from pyspark.sql import functions as F  # noqa: N812

    from tagwire.spark.functions import header

    texts = [name for name in ("key", "value") if identity.text and name not in identity.corrupt]
    plain = [(_text(F.col(name)) if name in texts else F.col(name)).alias(name) for name in ("key", "value")]
    named = [_text(header("headers", name)).alias(name) for name in identity.headers]
    broken = [  # the source has them with mode=PERMISSIVE alone
        F.col(quoted(name)) if name in records.columns else F.lit(None).cast("binary").alias(name)
        for name in identity.corrupt.values()
    ]
    folders = []
    if identity.time_folder is not None:
        # Of other years few readers know a directory's name; one record of such a time would close the table to them.
        time = F.when(F.year("timestamp").between(1, 9999), F.col("timestamp"))
        made = {
            MONTH: F.trunc(F.to_date(time), "month"),
            DATE: F.to_date(time),
            HOUR: F.date_format(time, "yyyy-MM-dd-HH"),
        }
        folders = [made[identity.time_folder].alias(identity.time_folder)]
    return records.select(*plain, "partition", "offset", "timestamp", *named, *broken, *folders)


def _text(value: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.coalesce(F.try_validate_utf8(value.cast("string")), F.concat(F.lit("0x"), F.lower(F.hex(value))))


def header_key_lists() -> Column:
    """How often each list of header keys occurs: exact up to 750 different lists, and bounded in memory beyond."""
    from pyspark.sql import functions as F  # noqa: N812

    keys = "to_json(array_distinct(transform(headers, header -> header.key)))"
    return F.expr(f"approx_top_k({keys}, {_KEY_LISTS}, {_KEY_LISTS})").alias("lists")
