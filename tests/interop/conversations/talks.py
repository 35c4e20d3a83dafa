"""What may be talked about, by name."""

from __future__ import annotations

from typing import Final

from . import admin_talk, group_talk, log_talk, transaction_talk, transaction_v2_talk
from .program import Subject

SUBJECTS: Final[dict[str, Subject]] = {
    "logs": log_talk.SUBJECT,
    "administration": admin_talk.SUBJECT,
    "groups": group_talk.SUBJECT,
    "transactions": transaction_talk.SUBJECT,
    "transactions of version 2": transaction_v2_talk.SUBJECT,
    "all but administration": Subject(
        log_talk.topics,
        {**log_talk.SUBJECT.words, **transaction_talk.SUBJECT.words, **group_talk.SUBJECT.words},
        log_talk.prelude,
    ),
}
