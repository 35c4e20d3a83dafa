"""`tagwire configs`: what topics, brokers and groups are set to, and setting it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tagwire.cli.completing import resources
from tagwire.cli.connecting import BOOTSTRAP, connect
from tagwire.cli.options import Bootstrap, DryRun, Json, check_alone, pairs
from tagwire.cli.suggestions import configs_meant, topics_meant
from tagwire.cli.terminal import print_json, print_rows, printable
from tagwire.errors import UNREACHABLE, ConfigError, Error, KafkaError, PartlyRefusedError, TagwireError
from tagwire.suggestions import did_you_mean

if TYPE_CHECKING:
    from tagwire.client import Client, ConfigEntry
    from tagwire.client.admin.configs import Change, ConfigResource

app = typer.Typer(name="configs", rich_markup_mode=None)

_LONGEST_ID: Final = 10  # digits

Resource = Annotated[
    str,
    typer.Argument(
        metavar="KIND/NAME",
        show_default=False,
        autocompletion=resources,
        help="Such as topic/flights, broker/1, group/g.",
    ),
]


@app.callback(invoke_without_command=True)
def configs(context: typer.Context, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List what brokers and topics are set to; show and change configs.

    \b
    Examples:
      tagwire configs
      tagwire configs describe topic/flights --all
    """
    check_alone(context, as_json)
    if context.invoked_subcommand is None:
        _list(bootstrap, as_json)


@app.command("list")
def list_(bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List the configs of all brokers and topics that are no defaults, as `tagwire configs` alone does.

    \b
    Example:
      tagwire configs list --json | jq 'select(.name == "cleanup.policy") | .resource'
    """
    _list(bootstrap, as_json)


@app.command()
def describe(
    resource: Resource,
    every: Annotated[bool, typer.Option("--all", help="Defaults too.")] = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show what a topic, a broker or a group is set to; without --all only what is not a default.

    \b
    Examples:
      tagwire configs describe topic/flights
      tagwire configs describe broker/1 --all --json | jq .name
    """
    from tagwire.client import Admin

    at = _resource(resource)
    with connect(bootstrap) as client, topics_meant(client, at[1]):
        _check_broker(client, at)
        found = Admin(client).describe_configs([at]).popitem()[1].values()
    shown = [entry for entry in found if every or not entry.is_default]
    if as_json:
        print_json(_row(entry) for entry in shown)
    elif shown:
        print_rows(("config", "value", "set by"), [(entry.name, _shown(entry), entry.source) for entry in shown])
    else:
        print(f"{printable(resource)} has only defaults (see --all)")


@app.command()
def alter(
    resource: Resource,
    put: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="May be repeated.")] = None,
    append: Annotated[
        list[str] | None,
        typer.Option("--append", metavar="KEY=VALUE", help="More for a config that is a list; may be repeated."),
    ] = None,
    subtract: Annotated[
        list[str] | None,
        typer.Option("--subtract", metavar="KEY=VALUE", help="Less of a config that is a list; may be repeated."),
    ] = None,
    reset: Annotated[
        list[str] | None, typer.Option("--reset", metavar="KEY", help="Back to the default; may be repeated.")
    ] = None,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Change configs of a topic, a broker or a group; the others stay as they are.

    \b
    Examples:
      tagwire configs alter topic/flights --set retention.ms=-1 --reset segment.bytes
      tagwire configs alter topic/flights --append cleanup.policy=compact --dry-run
    """
    from tagwire.client import Admin, Append, Subtract

    at = _resource(resource)
    given: list[tuple[str, Change]] = [
        *pairs(put or [], "--set"),
        *((name, Append(value)) for name, value in pairs(append or [], "--append")),
        *((name, Subtract(value)) for name, value in pairs(subtract or [], "--subtract")),
        *((name, None) for name in reset or []),
    ]
    changes: dict[str, Change] = dict(given)
    if not changes:
        raise typer.BadParameter("nothing to change: give --set, --append, --subtract or --reset")
    if len(changes) < len(given):
        raise typer.BadParameter("a config can be changed in one way at a time")
    with connect(bootstrap) as client, topics_meant(client, at[1]):
        _check_broker(client, at)
        admin = Admin(client)
        with configs_meant(admin, at, *changes):
            admin.alter_configs({at: changes}, validate_only=dry_run)
    if as_json:
        print_json({"resource": resource, "name": name, "altered": not dry_run} for name in changes)
        return
    count = "1 config" if len(changes) == 1 else f"{len(changes)} configs"
    print(f"{'could change' if dry_run else 'changed'} {count} of {printable(resource)}")


def _check_broker(client: Client, resource: tuple[str, str]) -> None:
    """Raises ConfigError at once where a broker is named that the cluster does not have: asking waits for one."""
    kind, name = resource
    if not kind.startswith("broker") or not name.isdecimal():
        return
    brokers = client.metadata().brokers
    if len(name) > _LONGEST_ID or int(name) not in brokers:
        raise ConfigError(
            f"{kind}/{name[:40]}: there is no such broker; there are {', '.join(map(str, sorted(brokers)))}"
        )


def _list(bootstrap: str, as_json: bool) -> None:
    with connect(bootstrap) as client:
        found = _of_all(client)
    shown = [
        (f"{at.kind}/{at.name}", entry)
        for at, entries in sorted(found.items())
        for entry in entries.values()
        if not entry.is_default
    ]
    if as_json:
        print_json({"resource": resource} | _row(entry) for resource, entry in shown)
    elif shown:
        rows = [(resource, entry.name, _shown(entry), entry.source) for resource, entry in shown]
        print_rows(("resource", "config", "value", "set by"), rows)
    else:
        print(f"only defaults on {printable(bootstrap)} (see configs describe --all)")


def _of_all(client: Client) -> dict[ConfigResource, dict[str, ConfigEntry]]:
    """The configs of all brokers and topics. What cannot be told of some is said beside that of the others; topics that
    are deleted meanwhile are left out."""
    from tagwire.client import Admin

    admin, known = Admin(client), client.metadata()
    found: dict[ConfigResource, dict[str, ConfigEntry]] = {}
    failed: list[TagwireError] = []
    topics = [("topic", name) for name in sorted(known.topics)]
    # One by one: a broker that is away, or has another right, is none of the others' business.
    for node in sorted(known.brokers):
        try:
            found |= admin.describe_configs(("broker", str(node)))
        except (KafkaError, *UNREACHABLE) as error:
            failed.append(error)
    try:
        found |= admin.describe_configs(topics)
    except PartlyRefusedError as error:
        found |= error.succeeded
        failed += _not_gone(client, error.refused)
    except KafkaError as error:
        failed += _not_gone(client, dict.fromkeys(topics, error))
    if failed and not found:
        raise failed[0]
    for failure in failed:
        typer.echo(failure, err=True)
    return found


def _not_gone(client: Client, refused: Mapping[tuple[str, str], KafkaError]) -> list[KafkaError]:
    """What is refused of topics that have not been deleted meanwhile."""
    unknown = {at for at, error in refused.items() if error.error is Error.UNKNOWN_TOPIC_OR_PARTITION}
    there = client.metadata().topics if unknown else {}
    return [error for at, error in refused.items() if at not in unknown or at[1] in there]


def _row(entry: ConfigEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source,
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
    }


def _shown(entry: ConfigEntry) -> str:
    return "(secret)" if entry.is_sensitive else "" if entry.value is None else entry.value


def _resource(text: str) -> tuple[str, str]:
    from tagwire.client.admin.configs import KINDS

    kind, slash, name = text.partition("/")
    if not slash or kind not in KINDS:
        meant = did_you_mean(kind, KINDS) if slash else ""
        raise typer.BadParameter(f"{text!r} is not KIND/NAME with a kind of {', '.join(KINDS)}{meant}")
    return kind, name
