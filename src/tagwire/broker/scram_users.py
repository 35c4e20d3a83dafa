"""Who can come in by SCRAM: the users that the settings name, and those that clients have set and deleted (KIP-554).

What clients change is stored, as salted keys, never a password, and counts from then on, also where the settings name
the user. Source: Kafka's ScramControlManager.
"""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Final

from tagwire.broker.settings import Settings
from tagwire.broker.storage.files import Files
from tagwire.broker.stored_document import StoredDocument, fields_of
from tagwire.errors import Error, KafkaError
from tagwire.rpc import ScramCredential, scram_credential
from tagwire.rpc.scram import DEFAULT_SHAPE, MIN_ITERATIONS, SCRAM_NUMBERS, Shape

FILE: Final = "tagwire-scram-credentials.json"

MOST_CREDENTIALS: Final = 10_000
"""All of them are written anew with each change."""

_MOST_SHAPES: Final = 64

SCRAM_NAMES: Final[Mapping[int, str]] = {number: name for name, number in SCRAM_NUMBERS.items()}

Key = tuple[str, int]
"""A user, and a mechanism by its number."""

Changed = Mapping[Key, ScramCredential | None]
"""Credentials as clients have set them; None for one of a user of the settings that was deleted."""


class ScramUsers:
    """The SCRAM credentials of all users of a data directory.

    Args:
        settings: say users with their passwords, who have a credential of each mechanism that a listener asks for. It
            is made when it is first needed: that takes some milliseconds, which a broker that starts should not spend.
        files, directory: where changes are stored.
        executor: whose thread writes them.
    """

    def __init__(self, settings: Settings, files: Files, directory: Path, executor: Executor) -> None:
        self._passwords = settings.users
        requested = {mechanism for listener in settings.listeners for mechanism in listener.sasl}
        self._requested = {number for mechanism, number in SCRAM_NUMBERS.items() if mechanism in requested}
        self._made: dict[Key, ScramCredential] = {}
        self._shapes: tuple[Changed, dict[int, tuple[Shape, ...]]] | None = None  # and what they are of
        empty: Changed = {}
        self._stored = StoredDocument(files, directory / FILE, executor, empty, _read, _write, secret=True)

    def load(self) -> None:
        """Read what clients have changed.

        Raises:
            StorageError: the file cannot be read, or holds something else.
        """
        self._stored.load()

    def credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """A user's credential; None for one who has none."""
        key = user, SCRAM_NUMBERS[mechanism]
        if key in self._stored.content:
            return self._stored.content[key]
        if not self._is_told(key):
            return None
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = scram_credential(mechanism, self._passwords[user])
        return made

    def shapes(self, mechanism: str) -> tuple[Shape, ...]:
        """The shapes that users' credentials of a mechanism have, the commonest where they are very many."""
        stored = self._stored.content
        if self._shapes is None or self._shapes[0] is not stored:
            found: dict[int, Counter[Shape]] = {number: Counter() for number in SCRAM_NAMES}
            for (_, number), credential in stored.items():
                if credential is not None:
                    found[number][len(credential.salt), credential.iterations] += 1
            for number in self._requested:
                if made := sum((user, number) not in stored for user in self._passwords):
                    found[number][DEFAULT_SHAPE] += made
            most = {number: counter.most_common(_MOST_SHAPES) for number, counter in found.items()}
            self._shapes = stored, {number: tuple(shape for shape, _ in told) for number, told in most.items()}
        return self._shapes[1][SCRAM_NUMBERS[mechanism]]

    def iterations(self) -> dict[str, dict[int, int]]:
        """{user: {mechanism: iterations}} of all who have a credential."""
        found: dict[str, dict[int, int]] = defaultdict(dict)
        for user in self._passwords:
            for number in sorted(self._requested):
                if (user, number) not in self._stored.content:
                    found[user][number] = MIN_ITERATIONS
        for (user, number), credential in sorted(self._stored.content.items(), key=lambda item: item[0]):
            if credential is not None:
                found[user][number] = credential.iterations
        return found

    def has(self, key: Key) -> bool:
        """Whether a user has a credential of a mechanism."""
        return self._has(self._stored.content, key)

    def _has(self, stored: Changed, key: Key) -> bool:
        return stored[key] is not None if key in stored else self._is_told(key)

    async def change(self, changes: Changed) -> Set[Key]:
        """Set and, where it is None, delete credentials, on the disk first. Those that were to be deleted and are not
        there by then: others change them meanwhile.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR: the disk refused. POLICY_VIOLATION: there would be too many. Nothing has
                changed then.
        """

        def decide(before: Changed) -> tuple[Changed, Set[Key]]:
            missing = {key for key, wanted in changes.items() if wanted is None and not self._has(before, key)}
            after = {**before, **{key: wanted for key, wanted in changes.items() if key not in missing}}
            after = {key: kept for key, kept in after.items() if kept is not None or self._is_told(key)}
            if len(after) > max(MOST_CREDENTIALS, len(before)):
                raise KafkaError(Error.POLICY_VIOLATION, f"there may be {MOST_CREDENTIALS} SCRAM credentials")
            return after, missing

        return await self._stored.change(decide)

    def _is_told(self, key: Key) -> bool:
        """Whether the settings give the user a credential."""
        user, number = key
        return user in self._passwords and number in self._requested


def _read(entries: list[Any]) -> Changed:
    found: dict[Key, ScramCredential | None] = {}
    for entry in entries:
        fields = fields_of(entry, user=str, mechanism=str)
        key = fields["user"], SCRAM_NUMBERS[fields["mechanism"]]
        if key in found:
            raise ValueError("a credential stands in it twice")
        found[key] = None if entry.get("deleted") is True else _credential(entry)
    return found


def _credential(entry: Any) -> ScramCredential:
    fields = fields_of(entry, iterations=int, salt=str, storedKey=str, serverKey=str)
    salt, stored_key, server_key = (
        base64.b64decode(fields[name], validate=True) for name in ("salt", "storedKey", "serverKey")
    )
    return ScramCredential(salt, fields["iterations"], stored_key, server_key)


def _write(changed: Changed) -> list[Any]:
    return [
        {"user": user, "mechanism": SCRAM_NAMES[number], **_told(credential)}
        for (user, number), credential in changed.items()
    ]


def _told(credential: ScramCredential | None) -> dict[str, Any]:
    if credential is None:
        return {"deleted": True}
    return {
        "iterations": credential.iterations,
        "salt": base64.b64encode(credential.salt).decode(),
        "storedKey": base64.b64encode(credential.stored_key).decode(),
        "serverKey": base64.b64encode(credential.server_key).decode(),
    }
