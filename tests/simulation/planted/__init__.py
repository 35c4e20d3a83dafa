"""Defects that the simulator has to find: each a small change of one function, carried out in this process and taken
back. `python -m tests.simulation --plants` lists them, `--plant NAME` runs with one.

They read as the mistakes that they are: the text that stands in the function, and the text that stands there instead. A
defect whose text is no longer there is refused, so that none is planted that changes nothing.
"""

from __future__ import annotations

from .as_they_were import AS_THEY_WERE
from .broker_groups import GROUPS
from .broker_network import NETWORK
from .broker_storage import STORAGE
from .broker_transactions import TRANSACTIONS
from .client_consuming import CONSUMING
from .client_producing import PRODUCING
from .defect import Defect, Edit, PlantError, plant, planted
from .fourth_thoughts import FOURTH_THOUGHTS
from .fourth_thoughts_of_clients import FOURTH_THOUGHTS_OF_CLIENTS
from .leaders_and_coordinators import LEADERS_AND_COORDINATORS
from .mutants import PREFIX, mutant
from .quotas_and_administration import QUOTAS_AND_ADMINISTRATION
from .records_and_rpc import RECORDS_AND_RPC
from .second_thoughts import SECOND_THOUGHTS
from .security import SECURITY
from .slips_of_the_broker import SLIPS_OF_THE_BROKER
from .slips_of_the_client import SLIPS_OF_THE_CLIENT
from .spark_sink import SPARK_SINK
from .third_thoughts import THIRD_THOUGHTS

_ROOMS = (
    PRODUCING,
    CONSUMING,
    STORAGE,
    GROUPS,
    TRANSACTIONS,
    NETWORK,
    LEADERS_AND_COORDINATORS,
    RECORDS_AND_RPC,
    SPARK_SINK,
    SECOND_THOUGHTS,
    SLIPS_OF_THE_BROKER,
    SLIPS_OF_THE_CLIENT,
    THIRD_THOUGHTS,
    AS_THEY_WERE,
    FOURTH_THOUGHTS,
    FOURTH_THOUGHTS_OF_CLIENTS,
    QUOTAS_AND_ADMINISTRATION,
    SECURITY,
)

DEFECTS: dict[str, Defect] = {defect.name: defect for room in _ROOMS for defect in room}
"""All of them, by name."""


def defect(name: str) -> Defect:
    """The one of this name, which may be a mutant's.

    Raises:
        PlantError: there is none.
    """
    if name.startswith(PREFIX):
        return mutant(name).defect
    if name not in DEFECTS:
        raise PlantError(f"{name} is no planted defect")
    return DEFECTS[name]


__all__ = ["DEFECTS", "Defect", "Edit", "PlantError", "defect", "plant", "planted"]
