"""What a shell offers for topics, groups, subjects, messages, APIs and releases when Tab is pressed.

Topics and groups are those of the cluster that the line so far names. A shell waits meanwhile and shows nothing of
errors, so the request gets a second, and no response is an empty list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from tagwire.cli.connecting import BOOTSTRAP, connect, given_bootstrap, named_brokers

if TYPE_CHECKING:
    from tagwire.client import Client

# Seconds in which the cluster has to respond.
_PATIENCE = 1.0


def topics(context: typer.Context, incomplete: str) -> list[str]:
    """The cluster's topics; internal ones only when their first letters are there."""
    return _completed(context, incomplete, _topics(incomplete))


def groups(context: typer.Context, incomplete: str) -> list[str]:
    """The cluster's groups."""

    def listed(client: Client) -> Iterable[str]:
        from tagwire.client import Admin

        return [group.group for group in Admin(client).list_groups()]

    return _completed(context, incomplete, listed)


def resources(context: typer.Context, incomplete: str) -> list[str]:
    """`KIND/NAME`: the kinds, then the names of topics and brokers."""
    kind, slash, name = incomplete.partition("/")
    if not slash:
        from tagwire.client.admin.configs import KINDS

        return _beginning(incomplete, (f"{kind}/" for kind in KINDS))
    if kind == "topic":
        return [f"topic/{found}" for found in _completed(context, name, _topics(name))]
    if kind == "broker":
        brokers = _completed(context, name, lambda client: [str(node) for node in client.metadata([]).brokers])
        return [f"broker/{found}" for found in brokers]
    return []


def of(*words: str) -> Callable[[str], list[str]]:
    """What offers these words."""

    def offered(incomplete: str) -> list[str]:
        return _beginning(incomplete, words)

    return offered


def scram_users(context: typer.Context, incomplete: str) -> list[str]:
    """The cluster's SCRAM users."""

    def listed(client: Client) -> Iterable[str]:
        from tagwire.client import Admin

        return Admin(client).describe_user_scram_credentials()

    return _completed(context, incomplete, listed)


def features(context: typer.Context, incomplete: str) -> list[str]:
    """The features that a broker of the cluster supports."""

    def listed(client: Client) -> Iterable[str]:
        return [f"{name}=" for name in client.features().supported]

    return _completed(context, incomplete, listed)


def subjects(context: typer.Context, incomplete: str) -> list[str]:
    """The subjects of the schema registry that the line so far names."""
    from dataclasses import replace

    from tagwire.cli.registries import open_registry
    from tagwire.errors import TagwireError
    from tagwire.values.registry import SchemaRegistry

    with _nothing_logged():
        try:
            settings = open_registry(context.params.get("registry")).settings
            return _beginning(incomplete, SchemaRegistry(replace(settings, timeout=_PATIENCE, retries=0)).subjects())
        except (TagwireError, OSError):
            return []


def messages(incomplete: str) -> list[str]:
    """Kafka's messages."""
    from tagwire.spec import catalog

    return _beginning(incomplete, catalog.names())


def pages(incomplete: str) -> list[str]:
    """Pages of the reference."""
    from tagwire.reference import Shelf
    from tagwire.reference.subjects import names

    shelf = Shelf()
    return _beginning(incomplete, {*names(shelf.subjects), *shelf.general})


def apis(incomplete: str) -> list[str]:
    """Kafka's APIs."""
    from tagwire.spec.api_keys import API_NAMES

    return _beginning(incomplete, API_NAMES.values())


def releases(incomplete: str) -> list[str]:
    """Kafka's releases."""
    from tagwire.spec.releases import names

    return _beginning(incomplete, names())


def _topics(incomplete: str) -> Callable[[Client], Iterator[str]]:
    def listed(client: Client) -> Iterator[str]:
        for topic in client.metadata().topics.values():
            if not topic.is_internal or incomplete.startswith("_"):
                yield topic.name

    return listed


def _completed(context: typer.Context, incomplete: str, names: Callable[[Client], Iterable[str]]) -> list[str]:
    from tagwire.errors import TagwireError

    with _nothing_logged():
        try:
            with connect(_brokers(context)) as client:
                client.network.core.timeout = _PATIENCE
                return _beginning(incomplete, names(client))
        except (TagwireError, OSError):
            return []


@contextmanager
def _nothing_logged() -> Iterator[None]:
    """A shell would show what is logged in the middle of the line."""
    import logging

    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


def _brokers(context: typer.Context) -> str:
    said = named_brokers() or context.params.get("bootstrap") or given_bootstrap()
    return said if isinstance(said, str) else BOOTSTRAP


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete) and name.isprintable())
