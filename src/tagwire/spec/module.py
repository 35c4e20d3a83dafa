"""What the specs of one directory must be together: the rules of Kafka's generator across files.

Source: docs/wire-format.md#the-spec-language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tagwire.spec.model import Message
from tagwire.spec.parse import KEYED_TYPES

PARTNERS: Final = {
    "request": "response",
    "response": "request",
    "coordinator-key": "coordinator-value",
    "coordinator-value": "coordinator-key",
}


def contradictions(messages: Mapping[str, Message]) -> list[str]:
    """What is wrong with `messages`, {file name: message}, as a whole; one line each: file, then rule.

    A name describes one message; an api key (record id, record type) has one message of each type; requests and
    responses come in pairs, and so do a coordinator's keys and values.
    """
    problems = []
    names: dict[str, str] = {}
    keys: dict[tuple[str, int], str] = {}
    for file, message in messages.items():
        if message.name in names:
            problems.append(f"{file}: the message {message.name} is already described by {names[message.name]}")
        names.setdefault(message.name, file)
        if message.type in KEYED_TYPES:
            key = (message.type, message.api_key)
            if key in keys:
                problems.append(f"{file}: the {message.type} of apiKey {message.api_key} is already in {keys[key]}")
            keys.setdefault(key, file)
    for (kind, number), file in keys.items():
        partner = PARTNERS.get(kind)
        if partner is not None and (partner, number) not in keys:
            problems.append(f"{file}: apiKey {number} has a {kind} and no {partner}")
    return problems
