"""Transactional ids: who owns one is fenced by whoever takes it over, or for its age, and by nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.simulation.history import Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly
from tests.simulation.judge.facts import Facts

FENCED: Final = ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE")
"""The last of these where a transaction of version 2 is to be committed that was aborted."""

OWNERS: Final = "__transaction_state"
"""Where brokers keep who owns a transactional id."""

CALLS: Final = ("send_offsets", "commit_transaction", "abort_transaction")
"""What is asked of a coordinator: a batch may be late, and of an epoch that its producer has left by itself."""


def owned_again(facts: Facts) -> Iterator[Anomaly]:
    """Who takes a transactional id over gets an epoch that nobody had before: it is on the disk before the answer,
    with fsync=interval too."""
    latest: dict[tuple[str, int], Operation] = {}
    inits = [each for each in facts.operations.of("init_producer") if each.type == "ok"]
    for init in sorted(inits, key=lambda each: each.completed.index):
        name, producer_id = init.value.get("transactional_id"), init.value.get("producer_id")
        if name is None or producer_id is None:
            continue
        before = latest.get((name, producer_id))
        if before is None or init.value["epoch"] > before.value["epoch"]:
            latest[name, producer_id] = init
        elif before.ended < init.began and not any(
            loss.value["fsync"] == "never" and before.began <= loss.at <= init.ended for loss in facts.losses_of(OWNERS)
        ):
            has = f"epoch {before.value['epoch']} of producer {producer_id}"
            what = f"{before.process} had {name} in {has}, and later {init.process} in epoch {init.value['epoch']}"
            yield anomaly("owner-forgotten", what, before, init)


def fenced_by_nobody(facts: Facts) -> Iterator[Anomaly]:
    """The one owner of a transactional id, all of whose transactions were short, is not told that it is fenced."""
    if facts.losses or facts.clock_jumped:
        return
    if any(fault.value.get("fault") == "fence_producers" for fault in facts.operations.of("fault")):
        return
    owners: dict[str, list[Operation]] = {}
    for init in facts.operations.of("init_producer"):
        if init.value.get("transactional_id"):
            owners.setdefault(init.value["transactional_id"], []).append(init)
    for name, inits in owners.items():
        if any(init.type == "info" for init in inits):
            continue  # it may be late, and fence whoever came meanwhile
        for call in facts.operations.of(*CALLS):
            transaction = facts.transactions.get(call.value.get("transaction") or "")
            if transaction is None or transaction.transactional_id != name or transaction.begin is None:
                continue
            if (call.value.get("error") or {}).get("code") not in FENCED:
                continue
            own = [init for init in inits if init.process == call.process and init.type == "ok"]
            others = [init for init in inits if init.process != call.process]
            timeout = min(float(init.value["transaction_timeout"]) for init in inits)
            is_alone = own and not any(other.ended >= own[-1].began for other in others)
            is_excused = _may_be_asked_again(facts, transaction.begin, call)
            if is_alone and not is_excused and call.ended - transaction.begin.began < timeout:
                what = f"{call.process} has {name} alone, and is told that it is fenced"
                yield anomaly("fenced-by-nobody", what, own[-1], transaction.begin, call)
                break


def _may_be_asked_again(facts: Facts, begin: Operation, call: Operation) -> bool:
    """Whether it may be an InitProducerId whose answer was lost, and which a coordinator was asked once more that has
    read its state meanwhile: which epoch a producer gave up is not stored, as in Kafka's TransactionMetadata."""
    is_init = "initialize, " in str((call.value.get("error") or {}).get("message"))
    return is_init and any(begin.began <= at <= call.ended for at in facts.handovers)
