"""What docs/client.md says the client is not is true of its public names; whoever adds one takes its row out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import tagwire.client
from tagwire.client import Admin, Client, Consumer, Producer, Reader, aio
from tagwire.client.security import MECHANISMS
from tagwire.client.versions import OURS
from tagwire.spec.api_keys import API_NAMES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## What it is not")[2].partition("\n## ")[0]
ROWS = [row for row in re.findall(r"^\| (.+?) \|", SECTION, re.MULTILINE) if row not in ("missing", "---")]

FACES = (Admin, Client, Consumer, Producer, Reader, *(getattr(aio, name) for name in aio.__all__))
NAMES = {name.lower() for kind in FACES for name in dir(kind) if not name.startswith("_")}
CLASSES = {name.lower() for name in (*tagwire.client.__all__, *aio.__all__)}
SPOKEN = {API_NAMES[api] for api in OURS}


def nowhere(*words: str) -> bool:
    """Whether no public name of the client has one of these words in it."""
    return not any(word in name for word in words for name in NAMES | CLASSES)


def parameters(kind: type) -> set[str]:
    return set(inspect.signature(kind).parameters)


ABSENT: dict[str, Callable[[], bool]] = {
    "share groups": lambda: not SPOKEN & {"ShareGroupHeartbeat", "ShareFetch"},
    "AWS_MSK_IAM": lambda: set(MECHANISMS) == {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"},
    "JKS": lambda: not any(word in name for name in parameters(tagwire.client.Security) for word in ("jks", "pkcs")),
    "telemetry": lambda: nowhere("telemetry") and not SPOKEN & {"GetTelemetrySubscriptions", "PushTelemetry"},
    "delegation tokens": lambda: (
        nowhere("delegation", "quorum", "voter", "unregister")
        and not SPOKEN & {"CreateDelegationToken", "DescribeQuorum", "AddRaftVoter", "UnregisterBroker"}
    ),
    "Windows": lambda: (
        "PollSelector()" in (ROOT / "src" / "tagwire" / "client" / "blocking_driver.py").read_text(encoding="utf-8")
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_what_the_page_says_is_missing_is_missing(row: str) -> None:
    (claim,) = [claim for claim in ABSENT if row.startswith(claim)]
    assert ABSENT[claim](), f"the client has it by now: take the row {row!r} out of docs/client.md"


def test_every_claim_has_its_row() -> None:
    assert len(ROWS) == len(ABSENT)
    assert all(any(row.startswith(claim) for row in ROWS) for claim in ABSENT)


def test_the_first_screen_of_the_readme_says_it_in_short() -> None:
    first_screen = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40])
    assert "**What it is not**" in first_screen
    assert "[docs/client.md]" in first_screen
