"""What somebody may have meant who named something that is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from tagwire.suggestions import did_you_mean

if TYPE_CHECKING:
    from tagwire.client import Admin, Client


def topics_meant(client: Client, *names: str) -> AbstractContextManager[None]:
    """What says inside that a topic does not exist says too which of the cluster's was meant, maybe."""
    return _meant("UNKNOWN_TOPIC_OR_PARTITION", names, lambda: client.metadata().topics)


def groups_meant(admin: Admin, *names: str) -> AbstractContextManager[None]:
    """What says inside that a group does not exist says too which of the cluster's was meant, maybe."""
    return _meant("GROUP_ID_NOT_FOUND", names, lambda: [group.group for group in admin.list_groups()])


def configs_meant(admin: Admin, resource: tuple[str, str] | None, *names: str) -> AbstractContextManager[None]:
    """What says inside that there is no such config says too which was meant, maybe.

    Args:
        resource: one that has such configs, or will have; None takes any topic.
    """

    def known() -> Iterable[str]:
        described = [resource] if resource else [("topic", topic.name) for topic in admin.list_topics()[:1]]
        return [name for configs in admin.describe_configs(described).values() for name in configs]

    return _meant("INVALID_CONFIG", names, known)


@contextmanager
def _meant(error_name: str, names: Iterable[str], known: Callable[[], Iterable[str]]) -> Iterator[None]:
    from tagwire.errors import KafkaError, TagwireError

    try:
        yield
    except KafkaError as error:
        if error.error.name != error_name or "Did you mean" in error.message:
            raise
        try:
            there = set(known())
        except TagwireError:
            raise error from None  # the cluster responds no more: what it said before stands
        missing = next((name for name in names if name not in there), None)
        said = "" if missing is None else did_you_mean(missing, there)
        raise KafkaError(error.code, error.message.rstrip(".") + said) from None
