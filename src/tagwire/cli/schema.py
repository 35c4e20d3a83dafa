"""`tagwire schema`: what a schema registry has, and whether a file fits it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagwire.cli import completing
from tagwire.cli.options import DryRun, Json, check_alone
from tagwire.cli.registries import Registry, open_registry
from tagwire.cli.schema_check import Check, check_file
from tagwire.cli.schema_files import Format, References, schema_in
from tagwire.cli.terminal import print_json, print_rows, printable
from tagwire.errors import ConfigError, SchemaRegistryError
from tagwire.suggestions import did_you_mean

if TYPE_CHECKING:
    from tagwire.values.registry import SchemaRegistry
    from tagwire.values.schemas import Reference, RegisteredSchema, Schema

app = typer.Typer(rich_markup_mode=None)
Subject = Annotated[str, typer.Argument(metavar="SUBJECT", show_default=False, autocompletion=completing.subjects)]
File = Annotated[Path, typer.Argument(metavar="FILE", show_default=False)]
Version = Annotated[
    int | None, typer.Option("--version", metavar="N", min=1, help="This version of the subject, not the newest.")
]


@app.callback(invoke_without_command=True)
def schema(context: typer.Context, registry: Registry = None, as_json: Json = False) -> None:
    """List a schema registry's subjects; show, check and register schemas.

    How to reach it is said in the words of Confluent's clients, with -X or in a file: schema.registry.url,
    schema.registry.basic.auth.user.info, schema.registry.ssl.ca.location, ...

    \b
    Examples:
      tagwire schema --registry http://localhost:8081
      tagwire schema show orders-value
      tagwire schema check orders-value order.avsc
    """
    check_alone(context, as_json)
    if context.invoked_subcommand is None:
        _print_subjects(open_registry(registry), None, False, as_json)


@app.command("list")
def list_(
    beginning: Annotated[
        str | None, typer.Argument(metavar="[BEGINNING]", show_default=False, autocompletion=completing.subjects)
    ] = None,
    long: Annotated[
        bool, typer.Option("--long", "-l", help="Type, versions and newest id, too: asks for each.")
    ] = False,
    registry: Registry = None,
    as_json: Json = False,
) -> None:
    """List the subjects of a schema registry, those that begin with BEGINNING.

    \b
    Examples:
      tagwire schema list
      tagwire schema list orders- --long
      tagwire schema list --json | jq -r .subject
    """
    _print_subjects(open_registry(registry), beginning, long, as_json)


@app.command()
def show(
    subject: Annotated[
        str | None, typer.Argument(metavar="[SUBJECT]", show_default=False, autocompletion=completing.subjects)
    ] = None,
    version: Version = None,
    schema_id: Annotated[int | None, typer.Option("--id", metavar="N", min=0, help="The schema of an id.")] = None,
    guid: Annotated[str | None, typer.Option("--guid", metavar="GUID", help="The schema of a GUID.")] = None,
    text: Annotated[bool, typer.Option("--text", help="The schema's text alone, as the registry has it.")] = False,
    registry: Registry = None,
    as_json: Json = False,
) -> None:
    """Show a schema: a subject's newest version, another one, or the schema of an id.

    \b
    Examples:
      tagwire schema show orders-value
      tagwire schema show orders-value --version 3 --text > order.avsc
      tagwire schema show --id 42 --json
    """
    if sum(each is not None for each in (subject, schema_id, guid)) != 1:
        raise typer.BadParameter("needs a SUBJECT, --id or --guid, one of them")
    if version is not None and subject is None:
        raise typer.BadParameter("is of a SUBJECT", param_hint="'--version'")
    if as_json and text:
        raise typer.BadParameter("says other than --json", param_hint="'--text'")
    from tagwire.values.subjects import version_of

    opened = open_registry(registry)
    if subject is not None:
        found = version_of(opened, subject, version)
    elif schema_id is not None:
        found = opened.by_id(schema_id)
    else:
        assert guid is not None
        found = opened.by_guid(guid.strip().lower())
    if as_json:
        print_json([{**described(found), "schema": found.schema.text}])
    elif text:
        _print_text(found.schema.text)
    else:
        _print_schema(found)


@app.command()
def check(
    subject: Subject,
    file: File,
    format_: Format = None,
    references: References = None,
    version: Version = None,
    level: Annotated[
        str | None, typer.Option("--level", metavar="LEVEL", help="By our rules, not the subject's level: FULL, ...")
    ] = None,
    registry: Registry = None,
    as_json: Json = False,
) -> None:
    """Check whether a schema in a file is compatible with a subject: by the registry's answer, and by our own rules.

    The registry compares by the subject's compatibility level, with the newest version, or with all where the level is
    a transitive one. Our rules say where and why. Exit code 1 where either finds that somebody breaks.

    \b
    Examples:
      tagwire schema check orders-value order.avsc
      tagwire schema check orders-value order.proto --version 3 --json
    """
    from tagwire.values.subjects import version_of

    opened = open_registry(registry)
    schema, named = schema_in(file, format_, references, opened)
    version_of(opened, subject, version)  # says what was meant where there is none
    found = check_file(opened, subject, schema, named, version, level)
    if as_json:
        print_json([found.row()])
    else:
        _print_check(found)
    if found.breaks:
        raise typer.Exit(1)


@app.command()
def register(
    subject: Subject,
    file: File,
    format_: Format = None,
    references: References = None,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Have the registry put it into one form first.")
    ] = False,
    dry_run: DryRun = False,
    registry: Registry = None,
    as_json: Json = False,
) -> None:
    """Register a schema in a file as a subject's newest version; one that it has already keeps its version.

    With --dry-run the registry is asked whether it would take it; exit code 1 where it would not.

    \b
    Examples:
      tagwire schema register orders-value order.avsc
      tagwire schema register orders-value order.proto --reference money.proto=money:1
      tagwire schema register orders-value order.avsc --dry-run
    """
    opened = open_registry(registry)
    schema, named = schema_in(file, format_, references, opened)
    if dry_run:
        reasons = _refusals(opened, subject, schema, named)
        if as_json:
            print_json([{"subject": subject, "registered": False, "compatible": not reasons, "messages": reasons}])
        else:
            for line in reasons or [f"{subject}: the registry would take {file}"]:
                print(printable(line))
        if reasons:
            raise typer.Exit(1)
        return
    found = opened.register(subject, schema, named, normalize)
    if found.version is None:
        # A registration tells the id alone; which version that is, a look-up does.
        found = opened.lookup(subject, schema, named, normalize)
    if as_json:
        print_json([{**described(found), "registered": True}])
    else:
        print(printable(f"{subject}: version {found.version}, id {found.schema_id}"))


def described(found: RegisteredSchema) -> dict[str, Any]:
    """What is known of a schema beside its text."""
    references = [{"name": each.name, "subject": each.subject, "version": each.version} for each in found.references]
    return {
        "subject": found.subject,
        "version": found.version,
        "id": found.schema_id,
        "guid": found.guid,
        "type": found.schema.schema_type,
        "references": references,
    }


def _print_subjects(registry: SchemaRegistry, beginning: str | None, long: bool, as_json: bool) -> None:
    there = registry.subjects()
    subjects = [each for each in there if each.startswith(beginning or "")]
    if beginning and not subjects:
        raise ConfigError(f"subject {beginning!r}: none begins so{did_you_mean(beginning, there)}")
    if not long:
        if as_json:
            print_json({"subject": each} for each in subjects)
        else:
            for each in subjects:
                print(printable(each))
        return
    rows = []
    for each in subjects:
        try:
            versions, newest = registry.versions(each), registry.latest(each)
        except SchemaRegistryError as error:
            if not error.not_found:
                raise
            continue  # it was deleted meanwhile
        rows.append({**described(newest), "versions": versions})
    if as_json:
        print_json(rows)
        return
    cells = [(row["subject"], row["type"], _versions(row["versions"]), str(row["id"])) for row in rows]
    print_rows(("subject", "type", "versions", "id"), cells, numbers=(3,))


def _versions(versions: list[int]) -> str:
    """Such as `1-4, 6`."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and version == runs[-1][1] + 1:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _refusals(registry: SchemaRegistry, subject: str, schema: Schema, references: tuple[Reference, ...]) -> list[str]:
    """Why a registry would not take a schema; a subject that it does not have yet takes any that can be parsed.

    Raises:
        SchemaRegistryError: it cannot be reached, or cannot parse the schema.
    """
    try:
        level = registry.compatibility_level(subject)
        versions: list[int | None] = [*registry.versions(subject)] if level.endswith("_TRANSITIVE") else [None]
        return [line for each in versions for line in registry.incompatibilities(subject, schema, references, each)]
    except SchemaRegistryError as error:
        if not error.not_found:
            raise
    try:
        # Nothing was compared, and so the schema perhaps not parsed: a look-up does that, and registers nothing.
        registry.lookup(subject, schema, references)
    except SchemaRegistryError as error:
        if not error.not_found:
            raise
    return []


def _print_schema(found: RegisteredSchema) -> None:
    known = described(found)
    names = ("subject", "version", "id", "guid", "type")
    print(printable(", ".join(f"{name} {known[name]}" for name in names if known[name] is not None)))
    for each in found.references:
        print(printable(f"reference {each.name}: subject {each.subject}, version {each.version}"))
    if found.has_rules:
        print("it has rules (ruleSet), which tagwire does not run")
    print()
    try:
        text = json.dumps(json.loads(found.schema.text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = found.schema.text
    for line in text.splitlines():
        print(printable(line))


def _print_text(text: str) -> None:
    """The text as it is, for programs and files; a terminal is not steered by it."""
    shown = text.removesuffix("\n")
    if sys.stdout.isatty():
        shown = "\n".join(printable(line.expandtabs()) for line in shown.split("\n"))
    print(shown)


def _print_check(found: Check) -> None:
    print(printable(f"{found.subject}: level {found.level}, compared with version {_versions(found.versions)}"))
    print("registry: compatible" if not found.registry else "registry: not compatible")
    for line in found.registry:
        print(printable(f"  {line}"))
    if found.note is not None:
        print(printable(f"our rules: not known, {found.note}"))
    else:
        print("our rules: compatible" if not found.rules else "our rules: not compatible")
    for line in found.rules:
        print(printable(f"  {line}"))
