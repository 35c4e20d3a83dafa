"""`tagwire acls`: who may do what to which resources; in the words of kafka-acls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tagwire.cli import acl_options, completing
from tagwire.cli.acl_options import (
    AllowHosts,
    AllowPrincipals,
    Cluster,
    Consumer,
    DelegationTokens,
    DenyHosts,
    DenyPrincipals,
    Groups,
    Idempotent,
    Operations,
    Producer,
    Resources,
    Topics,
    TransactionalIds,
    UserPrincipals,
)
from tagwire.cli.connecting import BOOTSTRAP, administer
from tagwire.cli.options import Bootstrap, DryRun, Json, check_alone
from tagwire.cli.terminal import print_json, print_rows, printable, showing_what_succeeded

if TYPE_CHECKING:
    from tagwire.client import AclBinding, AclBindingFilter

app = typer.Typer(name="acls", rich_markup_mode=None)

_TITLES: Final = ("resource", "name", "pattern", "principal", "permission", "operation", "host")


@app.callback(invoke_without_command=True)
def acls(context: typer.Context, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List ACLs: who may do what, and who may not; add and remove them.

    \b
    Examples:
      tagwire acls
      tagwire acls add --allow-principal User:alice --consumer --topic flights --group loader
      tagwire acls remove --topic flights --dry-run
    """
    check_alone(context, as_json)
    if context.invoked_subcommand is None:
        _print("no ACLs on", bootstrap, _found([None], bootstrap), as_json)


@app.command("list")
def list_(
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user_principal: UserPrincipals = None,
    cluster: Cluster = False,
    pattern_type: Annotated[
        str,
        typer.Option(
            "--resource-pattern-type",
            metavar="TYPE",
            autocompletion=completing.of(*acl_options.PATTERNS, *acl_options.PATTERNS_OF_FILTERS),
            help="literal or prefixed for these very names, any for both; match for all that hold for them.",
        ),
    ] = "any",
    principal: Annotated[
        list[str] | None,
        typer.Option("--principal", metavar="TYPE:NAME", help="Only of this one, such as User:alice; may be repeated."),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """List ACLs, of some resources or principals alone where they are named.

    \b
    Examples:
      tagwire acls list --topic flights --resource-pattern-type match
      tagwire acls list --principal User:alice --json | jq .operation
    """
    resources = Resources.of(topic, group, transactional_id, delegation_token, user_principal, cluster)
    wanted = acl_options.filters(resources, pattern_type, principal or [])
    _print("no such ACLs on", bootstrap, _found(wanted, bootstrap), as_json)


@app.command()
def add(
    allow_principal: AllowPrincipals = None,
    deny_principal: DenyPrincipals = None,
    allow_host: AllowHosts = None,
    deny_host: DenyHosts = None,
    operation: Operations = None,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user_principal: UserPrincipals = None,
    cluster: Cluster = False,
    pattern_type: Annotated[
        str,
        typer.Option(
            "--resource-pattern-type",
            metavar="TYPE",
            autocompletion=completing.of(*acl_options.PATTERNS),
            help="literal, or prefixed for all whose names begin so.",
        ),
    ] = "literal",
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Let principals do something, or forbid it; what is forbidden goes before what is allowed.

    '*' is every resource of its type, and User:* everybody. Without --operation it is about all operations.

    \b
    Examples:
      tagwire acls add --allow-principal User:alice --operation read --operation describe --topic flights
      tagwire acls add --deny-principal 'User:*' --deny-host 10.0.0.7 --operation write --topic '*'
      tagwire acls add --allow-principal User:app --producer --topic orders- --resource-pattern-type prefixed
    """
    resources = Resources.of(topic, group, transactional_id, delegation_token, user_principal, cluster)
    bindings = acl_options.bindings(
        resources,
        pattern_type,
        acl_options.Who.of(allow_principal, deny_principal, allow_host, deny_host),
        operation or [],
        acl_options.Roles.of(producer, consumer, idempotent, resources, operation),
    )

    def show(added: Iterable[AclBinding]) -> None:
        if as_json:
            print_json({**_row(each), "added": not dry_run} for each in added)
        else:
            for each in added:
                print(printable(f"{'could add' if dry_run else 'added'} {each}"))

    with administer(bootstrap) as admin, showing_what_succeeded(show):
        if not dry_run:
            admin.create_acls(bindings)
    show(bindings)


@app.command()
def remove(
    allow_principal: AllowPrincipals = None,
    deny_principal: DenyPrincipals = None,
    allow_host: AllowHosts = None,
    deny_host: DenyHosts = None,
    operation: Operations = None,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user_principal: UserPrincipals = None,
    cluster: Cluster = False,
    pattern_type: Annotated[
        str,
        typer.Option(
            "--resource-pattern-type",
            metavar="TYPE",
            autocompletion=completing.of(*acl_options.PATTERNS, *acl_options.PATTERNS_OF_FILTERS),
            help="literal or prefixed for these very names, any for both; match for all that hold for them.",
        ),
    ] = "literal",
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    every: Annotated[bool, typer.Option("--all", help="Every ACL of the cluster.")] = False,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Remove ACLs: those that `add` makes of the same words; without principals and operations all of the resources.

    \b
    Examples:
      tagwire acls remove --topic flights --dry-run
      tagwire acls remove --allow-principal User:alice --consumer --topic flights --group loader
    """
    from tagwire.client import AclBindingFilter

    resources = Resources.of(topic, group, transactional_id, delegation_token, user_principal, cluster)
    who = acl_options.Who.of(allow_principal, deny_principal, allow_host, deny_host)
    roles = acl_options.Roles.of(producer, consumer, idempotent, resources, operation)
    narrowed = bool(who.principals or operation or roles.chosen or resources.named)
    if every == narrowed:
        raise typer.BadParameter("name resources or principals; or give --all, and nothing else, for every ACL")
    wanted = (
        [AclBindingFilter()] if every else acl_options.removed(resources, pattern_type, who, operation or [], roles)
    )

    def show(found: Iterable[AclBinding]) -> None:
        if as_json:
            print_json({**_row(each), "removed": not dry_run} for each in found)
        else:
            for each in found:
                print(printable(f"{'could remove' if dry_run else 'removed'} {each}"))

    with administer(bootstrap) as admin, showing_what_succeeded(lambda gone: show(_each_once(gone.values()))):
        gone = {each: admin.describe_acls(each) for each in wanted} if dry_run else admin.delete_acls(wanted)
    found = _each_once(gone.values())
    show(found)
    if not found and not as_json:
        print(f"no such ACLs on {printable(bootstrap)}")


def _each_once(found: Iterable[Iterable[AclBinding]]) -> list[AclBinding]:
    """ACLs that several filters mean are there once."""
    return sorted({acl for acls in found for acl in acls})


def _found(wanted: Iterable[AclBindingFilter | None], bootstrap: str) -> list[AclBinding]:
    with administer(bootstrap) as admin:
        return _each_once(admin.describe_acls(each) for each in wanted)


def _print(nothing: str, bootstrap: str, found: list[AclBinding], as_json: bool) -> None:
    if as_json:
        print_json(_row(each) for each in found)
    elif found:
        print_rows(_TITLES, [list(_row(each).values()) for each in found])
    else:
        print(f"{nothing} {printable(bootstrap)}")


def _row(acl: AclBinding) -> dict[str, str]:
    return {
        "resource_type": acl.pattern.resource_type,
        "name": acl.pattern.name,
        "pattern_type": acl.pattern.pattern_type,
        "principal": acl.entry.principal,
        "permission": acl.entry.permission,
        "operation": acl.entry.operation,
        "host": acl.entry.host,
    }
