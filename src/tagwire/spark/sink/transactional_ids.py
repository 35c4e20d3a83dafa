"""The transactional ids of an exactly-once query: one for its driver, one for each attempt of a task.

The driver writes decisions under `tagwire.<exactly-once id>.decisions`. The id of a task attempt ends in a random part:
no id follows from query and partition, so a zombie attempt cannot initialise another's. The dot ends the exactly-once
id, which holds none, so that no query's ids are a prefix of another's.
"""

from __future__ import annotations

import uuid
from typing import Final

_PREFIX: Final = "tagwire"


def decisions_id(exactly_once_id: str) -> str:
    """The driver's: it writes the decisions of the query."""
    return f"{_PREFIX}.{exactly_once_id}.decisions"


def task_prefix(exactly_once_id: str) -> str:
    """What the ids of all task attempts of the query begin with, and no other's."""
    return f"{_PREFIX}.{exactly_once_id}.task."


def new_task_id(exactly_once_id: str) -> str:
    """A new one, for an attempt of a task."""
    return f"{task_prefix(exactly_once_id)}{uuid.uuid4().hex}"
