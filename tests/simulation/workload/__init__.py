"""What clients do in a run, and what goes wrong meanwhile: a plan drawn from a seed, as plain data, and its run."""

from tests.simulation.workload.load import Host, Running, run
from tests.simulation.workload.nemesis import Faults
from tests.simulation.workload.plans import plan

__all__ = ["Faults", "Host", "Running", "plan", "run"]
