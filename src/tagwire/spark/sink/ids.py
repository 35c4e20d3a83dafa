"""The transactional ids of an exactly-once query.

The query's own id writes decisions. Each attempt of a task writes under an id of its own, made of a random part: no id
follows from query and partition, so no attempt that should long be gone can take another's over. A point ends the part
that names the query; a name of a query has none, so that no query's ids begin with another's.
"""

from __future__ import annotations

import uuid
from typing import Final

_PREFIX: Final = "tagwire"


def decisions_id(own_id: str) -> str:
    """Under which the query's driver writes its decisions."""
    return f"{_PREFIX}.{own_id}.decisions"


def task_prefix(own_id: str) -> str:
    """What the ids of all the query's tasks begin with, and no other's."""
    return f"{_PREFIX}.{own_id}.task."


def new_task_id(own_id: str) -> str:
    return f"{task_prefix(own_id)}{uuid.uuid4().hex}"
