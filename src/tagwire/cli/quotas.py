"""`tagwire quotas`: what users, clients and addresses may take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tagwire.cli import completing
from tagwire.cli.connecting import BOOTSTRAP, administer
from tagwire.cli.options import Bootstrap, DryRun, Json, check_alone, pairs
from tagwire.cli.terminal import print_json, print_rows, printable
from tagwire.codec.json_form import json_number

if TYPE_CHECKING:
    from tagwire.client import ClientQuotaEntity, ClientQuotaFilter

app = typer.Typer(name="quotas", rich_markup_mode=None)

_QUOTAS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
_DEFAULT: Final = ""

User = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", autocompletion=completing.scram_users, help="A user, without User:."),
]
UserDefaults = Annotated[bool, typer.Option("--user-defaults", help="All users that have none of their own.")]
ClientId = Annotated[str | None, typer.Option("--client-id", metavar="NAME", help="A client id.")]
ClientDefaults = Annotated[bool, typer.Option("--client-defaults", help="All client ids that have none of their own.")]
Ip = Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="An address.")]
IpDefaults = Annotated[bool, typer.Option("--ip-defaults", help="All addresses that have none of their own.")]


@app.callback(invoke_without_command=True)
def quotas(context: typer.Context, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List client quotas, and change them: bytes a second, shares of a broker's time, connections a second.

    \b
    Examples:
      tagwire quotas
      tagwire quotas alter --user alice --set producer_byte_rate=1048576
    """
    check_alone(context, as_json)
    if context.invoked_subcommand is None:
        _list(None, bootstrap, as_json)


@app.command("list")
def list_(
    user: User = None,
    user_defaults: UserDefaults = False,
    client_id: ClientId = None,
    client_defaults: ClientDefaults = False,
    ip: Ip = None,
    ip_defaults: IpDefaults = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """List quotas, of some users, clients or addresses alone where they are named.

    In JSON a null is the default: whoever has no quotas of their own.

    \b
    Examples:
      tagwire quotas list --user alice
      tagwire quotas list --json | jq 'select(.entity.user == "alice") | .quotas'
    """
    from tagwire.client import ClientQuotaFilter

    named = (
        _name("user", user, user_defaults),
        _name("client-id", client_id, client_defaults),
        _name("ip", ip, ip_defaults),
    )
    _list(ClientQuotaFilter(*named), bootstrap, as_json)


@app.command()
def alter(
    user: User = None,
    user_defaults: UserDefaults = False,
    client_id: ClientId = None,
    client_defaults: ClientDefaults = False,
    ip: Ip = None,
    ip_defaults: IpDefaults = False,
    put: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=NUMBER",
            autocompletion=completing.of(*(f"{name}=" for name in _QUOTAS)),
            help="Such as producer_byte_rate=1048576; may be repeated.",
        ),
    ] = None,
    reset: Annotated[
        list[str] | None,
        typer.Option(
            "--reset", metavar="KEY", autocompletion=completing.of(*_QUOTAS), help="No such quota; may be repeated."
        ),
    ] = None,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Set quotas of a user, a client id, a user's client id, or an address; their others stay as they are.

    \b
    Examples:
      tagwire quotas alter --user alice --set producer_byte_rate=1048576 --set consumer_byte_rate=2097152
      tagwire quotas alter --user-defaults --client-id loader --reset request_percentage --dry-run
    """
    from tagwire.client import ClientQuotaAlteration, ClientQuotaEntity

    entity = ClientQuotaEntity(
        _name("user", user, user_defaults), _name("client-id", client_id, client_defaults), _name("ip", ip, ip_defaults)
    )
    given: list[tuple[str, float | None]] = [(key, _number(key, text)) for key, text in pairs(put or [], "--set")]
    given += [(key, None) for key in reset or []]
    changes = dict(given)
    if not changes:
        raise typer.BadParameter("nothing to change: give --set or --reset")
    if len(changes) < len(given):
        raise typer.BadParameter("a quota can be changed in one way at a time")
    with administer(bootstrap) as admin:
        admin.alter_client_quotas(ClientQuotaAlteration(entity, changes), validate_only=dry_run)
    if as_json:
        print_json([{"entity": _entity(entity), "quotas": _limits(changes), "altered": not dry_run}])
    else:
        count = "1 quota" if len(changes) == 1 else f"{len(changes)} quotas"
        print(printable(f"{'could change' if dry_run else 'changed'} {count} of {entity}"))


def _list(wanted: ClientQuotaFilter | None, bootstrap: str, as_json: bool) -> None:
    with administer(bootstrap) as admin:
        found = admin.describe_client_quotas(wanted)
    shown = sorted(found.items(), key=lambda row: str(row[0]))
    if as_json:
        print_json({"entity": _entity(entity), "quotas": _limits(limits)} for entity, limits in shown)
    elif shown:
        rows = [
            (str(entity), name, f"{limit:.15g}") for entity, limits in shown for name, limit in sorted(limits.items())
        ]
        print_rows(("of", "quota", "limit"), rows, numbers=(2,))
    else:
        print(f"no{' such' if wanted else ''} quotas on {printable(bootstrap)}")


def _limits(limits: Mapping[str, float | None]) -> dict[str, float | str | None]:
    """As JSON has them: a limit may be Infinity."""
    return {name: None if limit is None else json_number(limit) for name, limit in limits.items()}


def _entity(entity: ClientQuotaEntity) -> dict[str, str | None]:
    named = {"user": entity.user, "client-id": entity.client_id, "ip": entity.ip}
    return {kind: name or None for kind, name in named.items() if name is not None}


def _name(option: str, given: str | None, is_default: bool) -> str | None:
    if given is not None and is_default:
        raise typer.BadParameter("give either a name or the defaults", param_hint=f"'--{option}'")
    if given == "":
        raise typer.BadParameter("it is empty", param_hint=f"'--{option}'")
    return _DEFAULT if is_default else given


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{key}={text!r} is no number", param_hint="'--set'") from None
