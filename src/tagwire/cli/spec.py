"""`tagwire spec`: check message specs, show one, say what a change breaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tagwire.cli import completing
from tagwire.cli.options import Json, check_alone
from tagwire.cli.spec_check import print_checked, reasons
from tagwire.cli.spec_derive import print_derived
from tagwire.cli.spec_files import messages_in, revision
from tagwire.cli.spec_releases import is_release, print_messages, print_release_diff
from tagwire.cli.terminal import print_rows, printable
from tagwire.errors import ConfigError
from tagwire.suggestions import did_you_mean

if TYPE_CHECKING:
    from tagwire.spec import Field, Message, Struct

app = typer.Typer(rich_markup_mode=None)
MessageType = Literal["request", "response", "header", "data", "metadata", "coordinator-key", "coordinator-value"]
Paths = Annotated[list[Path], typer.Argument(metavar="FILE", show_default=False)]


def message_named(name: str) -> Message:
    """The message that a command names: one of the catalog's, or a spec file.

    Raises:
        ConfigError: there is neither.
        SpecError: the file breaks the language.
    """
    from tagwire.spec import catalog, load

    if catalog.contains(name):
        return catalog.message(name)
    if Path(name).is_file():
        return load(Path(name))
    meant = did_you_mean(name, catalog.names())
    raise ConfigError(f"{name!r} is neither a message of Kafka's nor a spec file{meant}")


@app.callback(invoke_without_command=True)
def spec(context: typer.Context, as_json: Json = False) -> None:
    """List Kafka's messages; check message specs, show one, compare two, or two releases.

    \b
    Examples:
      tagwire spec
      tagwire spec show FetchRequest --version 12
    """
    check_alone(context, as_json)
    if context.invoked_subcommand is None:
        print_messages(None, as_json)


@app.command("list")
def list_(
    kind: Annotated[MessageType | None, typer.Option("--type", help="Only these.")] = None, as_json: Json = False
) -> None:
    """List Kafka's messages, as `tagwire spec` alone does, with their versions and the releases that serve the API.

    \b
    Examples:
      tagwire spec list --type request
      tagwire spec list --json | jq 'select(.api_key == 3)'
    """
    print_messages(kind, as_json)


@app.command()
def check(files: Paths, as_json: Json = False) -> None:
    """Check that spec files follow the language; all that is wrong in a file is told at once.

    FILE may be a directory: its files (*.json) are then also checked together, as Kafka's generator would: one message
    of a type for an api key, requests with their responses, a coordinator's keys with their values. Header versions
    must be those of the headers beside the file, or of Kafka's. Versions that are deprecated, or not to be used, are
    told. Exit code 1 when something is wrong.

    \b
    Examples:
      tagwire spec check specs/
      tagwire spec check MyRequest.json --json | jq .problems
    """
    if print_checked(files, as_json):
        raise typer.Exit(1)


@app.command()
def show(
    message: Annotated[str, typer.Argument(metavar="MESSAGE", show_default=False, autocompletion=completing.messages)],
    version: Annotated[int | None, typer.Option("--version", metavar="N", help="As this version has it.")] = None,
    as_json: Json = False,
) -> None:
    """Show a message: its versions, and every field with its type, versions, tag and default.

    MESSAGE is one of Kafka's messages or a spec file. Deprecated and unstable versions are marked. With --json the
    first line is the message, each other one a field.

    \b
    Examples:
      tagwire spec show FetchRequest --version 12
      tagwire spec show MyRequest.json
    """
    found = message_named(message)
    if version is not None and version not in found.valid_versions:
        raise ConfigError(f"{found.name} has no version {version}: it has {found.valid_versions}")
    fields = list(_fields(found.root, "", version))
    if as_json:
        print(json.dumps(_message_described(found)))
        for path, field in fields:
            print(json.dumps({"field": path} | _described(field, version)))
        return
    for line in _heading(found, version):
        print(line)
    rows = []
    for path, field in fields:
        described = _described(field, version)
        rows.append((path, described["type"], described["versions"], _marks(described), described["about"]))
    print_rows(("field", "type", "versions", "", "about"), rows)


@app.command()
def derive(
    directory: Annotated[Path, typer.Argument(metavar="DIR", show_default=False)],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", file_okay=False, help="Where the new specs are written.")],
    dialect: Annotated[
        Literal["optional", "tagged"],
        typer.Option(help="What messages get that have neither: the draft's optional fields, or tagged fields."),
    ] = "optional",
    field: Annotated[
        list[str] | None,
        typer.Option(
            "--field", metavar="NAME:TYPE[:TAG]", help="A field for every message, such as TraceId:string; repeatable."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--every", help="A new version also of messages that have such fields already.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over files.")] = False,
    as_json: Json = False,
) -> None:
    """Make the next version of every message of a directory, with optional fields on.

    A message that has optional or tagged fields already keeps its versions, and takes the fields that are given in all
    versions that have them: that is what they are for. What is written is checked, and compared with what was there:
    exit code 1 where it would break somebody. Headers, a coordinator's keys and APIs that are gone stay as they are.

    \b
    Examples:
      tagwire spec derive specs/ --to next/
      tagwire spec derive specs/ --to next/ --field TraceId:string --dialect tagged
      tagwire spec derive specs/ --to next/ --field TraceId:string:0x0100 --json
    """
    if print_derived(directory, to, dialect, field or [], every=every, force=force, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", show_default=False)],
    history: Annotated[
        list[Path] | None,
        typer.Option("--history", metavar="DIR", help="Earlier revisions: their tags must not come back."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what a change of specs breaks for those who still have the old ones, or what two releases differ in.

    OLD and NEW are two spec files, or two directories whose messages are compared by name. Exit code 1 when old and
    new do not understand each other in a version that both know. Of two releases of Kafka: which APIs and versions
    their brokers serve, and which fields came or went; exit code 1 when the newer serves something no longer.

    \b
    Examples:
      tagwire spec diff old/FooRequest.json new/FooRequest.json
      tagwire spec diff v1/ v2/ --history archive/ --json
      tagwire spec diff 3.9 4.3
    """
    if (is_release(old) or is_release(new)) and not (Path(old).exists() or Path(new).exists()):
        if history:
            raise typer.BadParameter("releases have none", param_hint="'--history'")
        if print_release_diff(old, new, as_json):
            raise typer.Exit(1)
        return
    if _diff_files(Path(old), Path(new), history, as_json):
        raise typer.Exit(1)


def _diff_files(old: Path, new: Path, history: list[Path] | None, as_json: bool) -> bool:
    """Prints what differs; whether anything breaks."""
    from tagwire.spec import diff as compare

    before, after = revision(old), revision(new)
    if old.is_file() and new.is_file():
        pairs = list(zip(before.values(), after.values()))
        gone = []
    else:
        pairs = [(before[name], after[name]) for name in sorted(before.keys() & after.keys())]
        gone = sorted(before.keys() - after.keys())
    past: dict[str, list[Message]] = {}
    for directory in history or ():
        for name, revisions in messages_in(directory).items():
            past.setdefault(name, []).extend(revisions)
    findings = [finding for pair in pairs for finding in compare(*pair, past.get(pair[1].name, ()))]
    for name in gone:
        said = {"message": name, "field": "", "rule": "message removed", "versions": [], "compatible": False}
        print(json.dumps(said) if as_json else f"{name}: message removed  BREAKS")
    for finding in findings:
        if as_json:
            row = {
                "message": finding.message,
                "field": finding.field,
                "rule": finding.rule,
                "versions": list(finding.versions),
                "text": finding.text,
                "compatible": finding.compatible,
            }
            print(json.dumps(row))
        else:
            print(f"{finding}{'' if finding.compatible else '  BREAKS'}")
    broken = len(gone) + sum(not finding.compatible for finding in findings)
    if not as_json:
        compared = "1 message" if len(pairs) == 1 else f"{len(pairs)} messages"
        print(f"{compared} compared, {broken} of {len(gone) + len(findings)} findings break old or new.")
    return broken > 0


def _message_described(message: Message) -> dict[str, Any]:
    unstable = message.valid_versions.highest if message.latest_version_unstable else None
    return {
        "message": message.name,
        "type": message.type,
        "api_key": message.api_key,
        "listeners": list(message.listeners),
        "versions": str(message.valid_versions),
        "flexible_versions": str(message.flexible_versions),
        "optional_versions": str(message.optional_versions),
        "deprecated_versions": str(message.deprecated_versions),
        "do_not_use_versions": reasons(message),
        "header_versions": None if message.header_versions is None else message.header_versions.document(),
        "unstable_version": unstable,
    }


def _fields(struct: Struct, path: str, version: int | None) -> Iterator[tuple[str, Field]]:
    for field in struct.fields:
        if version is None or version in field.versions:
            yield path + field.name, field
            if field.struct is not None:
                yield from _fields(field.struct, f"{path}{field.name}.", version)


def _described(field: Field, version: int | None) -> dict[str, Any]:
    nullable = bool(field.nullable_versions) if version is None else version in field.nullable_versions
    tagged = field.tag is not None and (version is None or field.is_tagged(version))
    return {
        "type": str(field.type),
        "versions": str(field.versions),
        "nullable": str(field.nullable_versions) if version is None else nullable,
        "tag": field.tag if tagged else None,
        "tagged_versions": str(field.tagged_versions),
        "optional": field.optional,
        "default": _default(field),
        "ignorable": field.ignorable,
        "map_key": field.map_key,
        "entity_type": field.entity_type,
        "flexible_versions": None if field.flexible_versions is None else str(field.flexible_versions),
        "about": field.about,
    }


def _default(field: Field) -> str | None:
    """The default where it is not just the type's own."""
    from tagwire.spec.defaults import implicit_default

    if field.default == implicit_default(field.type):
        return None
    return "null" if field.default is None else str(field.default)


def _marks(described: dict[str, Any]) -> str:
    marks = []
    nullable = described["nullable"]
    if nullable is True or (isinstance(nullable, str) and nullable != "none"):
        marks.append("nullable" if nullable is True else f"nullable {nullable}")
    if described["tag"] is not None:
        kind = "optional" if described["optional"] else f"tagged {described['tagged_versions']}"
        marks.append(f"{kind}, tag {described['tag']}")
    if described["default"] is not None:
        marks.append(f"default {described['default']}")
    if described["ignorable"]:
        marks.append("ignorable")
    if described["map_key"]:
        marks.append("map key")
    if described["flexible_versions"] is not None:
        marks.append(f"compact in {described['flexible_versions']}")
    return "; ".join(marks)


def _heading(message: Message, version: int | None) -> Iterator[str]:
    key = f", api key {message.api_key}" if message.api_key >= 0 else ""
    yield f"{message.name}: {message.type}{key}"
    notes = [f"versions {message.valid_versions}"]
    if message.optional_versions:
        notes.append(f"optional fields {message.optional_versions}")
    else:
        notes.append(f"flexible {message.flexible_versions}")
    if message.deprecated_versions:
        notes.append(f"deprecated {message.deprecated_versions}")
    if message.latest_version_unstable:
        notes.append(f"unstable {message.valid_versions.highest}")
    if message.header_versions is not None:
        header = message.header_versions if version is None else message.header_version(version)
        notes.append(f"header {header}")
    if version is not None:
        marks = ["flexible"] if message.is_flexible(version) else []
        marks += ["optional fields"] if version in message.optional_versions else []
        marks += ["deprecated"] if version in message.deprecated_versions else []
        marks += ["unstable"] if version not in message.stable_versions else []
        marks += ["not to be used"] if message.reason_not_to_use(version) is not None else []
        notes.append(f"shown {version}" + (f" ({', '.join(marks)})" if marks else ""))
    yield ", ".join(notes)
    for mark in message.do_not_use_versions:
        yield f"do not use {mark.versions}: {printable(mark.reason)}"
