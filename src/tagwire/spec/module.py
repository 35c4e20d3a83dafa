"""What the specs of one directory must be together: the rules of Kafka's generator across files.

Source: docs/wire-format.md#the-spec-language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tagwire.spec import catalog
from tagwire.spec.api_keys import ApiKey
from tagwire.spec.model import Message
from tagwire.spec.parse import KEYED_TYPES

PARTNERS: Final = {
    "request": "response",
    "response": "request",
    "coordinator-key": "coordinator-value",
    "coordinator-value": "coordinator-key",
}
HEADERS: Final = {"request": "RequestHeader", "response": "ResponseHeader"}
"""The messages that stand before requests and before responses."""


def contradictions(messages: Mapping[str, Message]) -> list[str]:
    """What is wrong with `messages`, {file name: message}, as a whole; one line each: file, then rule.

    A name describes one message; an api key (record id, record type) has one message of each type; requests and
    responses come in pairs that deprecate the same versions, and so do a coordinator's keys and values; header versions
    are those of the RequestHeader and the ResponseHeader among `messages`, of Kafka's where there is none.
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
        if kind == "response" and ("request", number) in keys:
            problems += _deprecations(file, messages[file], messages[keys["request", number]])
    headers = {message.name: message for message in messages.values() if message.type == "header"}
    for file, message in messages.items():
        problems += [f"{file}: {problem}" for problem in header_problems(message, headers)]
    return problems


def _deprecations(file: str, response: Message, request: Message) -> list[str]:
    """Deprecated are versions of an API: a response that says so says what its request says."""
    said, meant = response.deprecated_versions, request.deprecated_versions
    if not said or said == meant:
        return []
    return [f"{file}: deprecatedVersions {said} are not those of {request.name}, {meant}"]


def header_problems(message: Message, headers: Mapping[str, Message]) -> list[str]:
    """What is wrong with the header versions of a request or a response, one line each (KIP-1313).

    Each header version exists, and a flexible version has a flexible header; ApiVersionsResponse alone does not.

    Args:
        headers: the headers by name, RequestHeader and ResponseHeader; Kafka's own where one is missing.
    """
    if message.header_versions is None:
        return []
    name = HEADERS[message.type]
    header = headers[name] if name in headers else catalog.message(name)
    problems = []
    for versions, number in message.header_versions.ranges:
        flexible = versions & message.flexible_versions
        is_api_versions_response = message.type == "response" and message.api_key == ApiKey.API_VERSIONS
        if number not in header.valid_versions:
            problems.append(
                f"headerVersions: {versions} cannot have header version {number}: {name} has {header.valid_versions}"
            )
        elif flexible and not header.is_flexible(number) and not is_api_versions_response:
            problems.append(
                f"headerVersions: {flexible} cannot have header version {number}: a flexible version needs a flexible "
                f"header, {name} is flexible in {header.flexible_versions}"
            )
    return problems
