"""Options of `tagwire land` that say how keys and values are decoded, and what the job's own are called here."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from tagwire.cli.value_options import job_options
from tagwire.values.formats import FORMATS

TYPED: Final = {
    "value.format": "--value-format",
    "value.schema": "--value-schema",
    "value.message": "--message",
    "value.version": "--version",
    "key.format": "--key-format",
    "key.schema": "--key-schema",
    "key.message": "--key-message",
    "key.version": "--key-version",
    "schema.registry.url": "--registry",
    "columnNameOfCorruptRecord": "--corrupt-column",
    "mode": "--mode",
    "headers": "--headers",
    "partition_by": "--partition-by",
    "topics_like": "--topics-like",
    "on_data_loss": "--on-data-loss",
    "follow.seconds": "--every",
    "format": "--format",
    "storage_options": "--storage-option",
    "catalog": "--catalog",
    "catalog_table": "--table",
    "evolve": "--evolve",
    "restart": "--restart",
    "optimize": "--optimize",
    "vacuum": "--vacuum",
}
"""{option or argument of the job: option of the command}, for `as_typed`."""

_FORMATS = "avro|protobuf|json-schema|json|message"

ValueFormat = Annotated[
    str | None, typer.Option("--value-format", metavar=_FORMATS, help="Values become typed columns.")
]
ValueSchema = Annotated[
    str | None,
    typer.Option(
        "--value-schema",
        metavar="DDL|FILE",
        help="Of json: 'a int, b array<string>'. Of the first three a schema in the place of the subject's newest.",
    ),
]
Message = Annotated[
    str | None, typer.Option("--message", metavar="NAME|FILE", help="Of message: of the catalog, or a spec.")
]
Version = Annotated[int | None, typer.Option("--version", metavar="N", help="The message's version.")]
KeyFormat = Annotated[str | None, typer.Option("--key-format", metavar=_FORMATS, help="Keys, likewise.")]
KeySchema = Annotated[str | None, typer.Option("--key-schema", metavar="DDL|FILE", help="Of keys, likewise.")]
KeyMessage = Annotated[str | None, typer.Option("--key-message", metavar="NAME|FILE", help="Of keys, likewise.")]
KeyVersion = Annotated[int | None, typer.Option("--key-version", metavar="N", help="Of keys, likewise.")]
Mode = Annotated[
    str | None,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="Of bad values and keys: PERMISSIVE keeps their bytes in a column. Else DROPMALFORMED or FAILFAST.",
    ),
]
CorruptColumn = Annotated[
    str | None,
    typer.Option("--corrupt-column", metavar="NAME", help="That column of values.", show_default="_corrupt_record"),
]


def decoding(which: str, format_: str | None, given: dict[str, str | None], registry: str | None) -> dict[str, str]:
    """The options by which a job decodes one column.

    Args:
        which: "value" or "key".
        given: schema, message and version, as far as they are given.
    """
    found = {f"{which}.{name}": text for name, text in {"format": format_, **given}.items() if text is not None}
    if format_ in FORMATS:
        found |= job_options(which, format_, given["schema"], registry)
    return found


def named_properties(option: str, given: list[str]) -> dict[str, str]:
    """What was given as `NAME=VALUE`, often. Raises typer.BadParameter, which shows no value."""
    options = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not sign or not name:
            raise typer.BadParameter("needs NAME=VALUE", param_hint=f"'{option}'")  # it may be a secret
        options[name] = value
    return options
