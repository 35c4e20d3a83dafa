"""What no spec says and this project wrote down: what a message is for, why a version was made, what an error asks of a
client. The texts are in JSON files beside this one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from tagwire.errors import Error

_DATA: Final = Path(__file__).with_name("data")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a version was made.

    Attributes:
        kips: such as KIP-320; none where it is not known for certain.
        text: what it means where its fields do not say; "" where they do.
    """

    kips: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class ApiError:
    """An error that an API may respond with.

    Attributes:
        advice: what a client does about it.
    """

    error: Error
    advice: str


def purpose(path: str) -> str:
    """What a subject of Kafka's is for, by the path of its page; "" for what is none."""
    return str(_read("purposes").get(path, ""))


def reason(path: str, version: int) -> Reason:
    """Why `version` of a subject was made, as far as it is known."""
    found = _read("versions").get(path, {}).get(str(version), {})
    return Reason(tuple(found.get("kips", ())), found.get("text", ""))


def kips() -> dict[str, str]:
    """{KIP: what it is about} of all that any version names."""
    return dict(_read("kips"))


def api_errors(name: str) -> list[ApiError]:
    """The errors that an API may respond with, in the order of their codes; empty where nothing is known."""
    found = sorted(Error[error] for error in _read("errors").get(name, ()))
    return [ApiError(error, advice(error)) for error in found]


def advice(error: Error) -> str:
    """What a client does that gets an error in a response."""
    said = _read("advice").get(error.name)
    if said is not None:
        return str(said)
    if error.refreshes_metadata:
        return "Fetch the metadata again, wait for the retry backoff, and send it again."
    if error.retriable:
        return "Wait for the retry backoff, and send it again."
    return "Do not send it again as it is: tell the caller."


@cache
def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found
