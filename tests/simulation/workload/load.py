"""A run of a plan: topics, actors, faults, and what is read at the end."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin
from tagwire.errors import Error, KafkaError
from tests.simulation.history import History
from tests.simulation.workload.administering import Administering
from tests.simulation.workload.altering import Altered, Altering
from tests.simulation.workload.blocking import ConsumingInThread, ProducingInThreads
from tests.simulation.workload.consuming import Consuming
from tests.simulation.workload.cut_off import CutOff
from tests.simulation.workload.failing import Failing
from tests.simulation.workload.final_reading import FinalReading
from tests.simulation.workload.foreign import Foreign
from tests.simulation.workload.foreign_abiding import Abides, Abiding
from tests.simulation.workload.foreign_administrators import ForeignAdministrators
from tests.simulation.workload.foreign_bounded import ForeignBounded
from tests.simulation.workload.foreign_followers import ForeignFollowers
from tests.simulation.workload.foreign_guarded import Changing, Guarded, Guarding, Opening, Superuser
from tests.simulation.workload.foreign_idle import ForeignIdle
from tests.simulation.workload.foreign_members import ForeignMembers
from tests.simulation.workload.foreign_offline import ForeignOffline
from tests.simulation.workload.foreign_offsets import ForeignOffsets
from tests.simulation.workload.foreign_owners import ForeignOwners
from tests.simulation.workload.foreign_readers import ForeignReaders
from tests.simulation.workload.foreign_rebalances import ForeignRebalances
from tests.simulation.workload.foreign_refused import ForeignRefused
from tests.simulation.workload.foreign_waiting import ForeignWaiting
from tests.simulation.workload.forsaking import Forsaking, Racing
from tests.simulation.workload.going_back import GoingBack
from tests.simulation.workload.guarded_plans import amid_changes
from tests.simulation.workload.limiting import Bounded, Limiting
from tests.simulation.workload.listening import Listening
from tests.simulation.workload.meanwhile import Meanwhile
from tests.simulation.workload.moving import Moving
from tests.simulation.workload.nemesis import Faults, Nemesis
from tests.simulation.workload.planned_quotas import TOPIC
from tests.simulation.workload.producing import Producing
from tests.simulation.workload.querying import Querying
from tests.simulation.workload.refusing import Refusing, Waiting
from tests.simulation.workload.remembering import Remembering
from tests.simulation.workload.renewing import Renewed, Renewing
from tests.simulation.workload.repeating import Repeating
from tests.simulation.workload.resending import Resending
from tests.simulation.workload.returning import Returning
from tests.simulation.workload.sinking import Sinking
from tests.simulation.workload.stage import PATIENCE, Actor, Phase, Spec, Stage, is_refusal
from tests.simulation.workload.storing import ANEW, Storing
from tests.simulation.workload.tidying import Tidying
from tests.simulation.workload.tidying_later import TidyingLater
from tests.simulation.workload.tidying_offsets import TidyingOffsets
from tests.simulation.workload.tidying_young import TidyingYoung
from tests.simulation.workload.told_late import ToldLate
from tests.simulation.workload.transacting import Transacting
from tests.simulation.workload.written_while_moved import MOVED_EVERY_S, MOVES, WrittenWhileMoved

KINDS: dict[str, type[Actor]] = {
    "producer": Producing,
    "consumer": Consuming,
    "transactions": Transacting,
    "mover": Moving,
    "admin": Administering,
    "sink": Sinking,
    "threads": ProducingInThreads,
    "thread-consumer": ConsumingInThread,
    "limiter": Limiting,
    "bounded": Bounded,
}
"""The actors of a plan, by the kind that its entries have."""


UPKEEP_S = 12.0
"""By then a broker has done all that it does by the clock, as often as plans have it."""

COMPACTION_S = 1.0
"""How long one of a small log takes."""

TIDIES = 0.3
"""In how many runs compaction is looked at round after round, which takes its time."""

MEANWHILE = 0.5
"""In how many it is looked at what groups commit while something else becomes of it."""
QUERIES = 0.4
"""In how many a query with the exactly-once sink runs when all else is over: it takes its time, too."""


ALTERED = 0.4
"""In how many runs without quotas it is looked at what administrators do."""

BOUNDED = 0.2
"""In how many of them clients are bounded when all else is over."""

SET_BACK_S = 60.0
SLOW_S = 0.2
KILLED = {"at": 0.0, "kind": "broker_kill", "seconds": 1.0}
COORDINATORS = ("__consumer_offsets", "__transaction_state")

GUARD_ROUNDS = 5
"""How often a broker ends while it is changed who may do what."""

TWICE = 0.9
"""After how many kills the power is lost, too, before anything else is changed: what was in memory alone is gone."""

SLOWLY = 0.4
"""In how many of those what is changed is stored slowly."""

OF_GUARDS = ("tagwire-acls", "tagwire-acls", "tagwire-scram")
"""What files are called in which that is kept."""

BEGUN_S = 1.0
"""By then, and a round trip, a request that was begun is with the broker."""

LOOK_S = 0.1


class Running(Protocol):
    """A process that was started."""

    def join(self, timeout: float) -> bool:
        """Waits for its end; whether it has come."""
        ...


class Host(Protocol):
    """Where processes run.

    Attributes:
        bootstrap: where brokers are, which run already. faults: what can be done to all of them.
        round_trip_s: how long an answer is under way at most, where nothing is wrong.
        spikes_s: what those that take much longer add to each, on average and with room to spare.
        moves: whether leaders and coordinators can be moved.
        has_upkeep: whether what brokers do by the clock is to be waited for.
    """

    bootstrap: str
    round_trip_s: float
    spikes_s: float
    moves: bool
    has_upkeep: bool
    faults: Faults

    def start(self, name: str, main: Callable[[], None]) -> Running:
        """Runs `main` as a process of this name, which may have been one before that has ended or was killed."""
        ...


def run(plan: Spec, host: Host, history: History) -> None:
    """Runs a plan, whole, and notes it in `history`. It takes the plan's `duration`, its `settle`, and what reading at
    the end does."""
    stage = Stage(plan, host.bootstrap, history, host.round_trip_s, host.spikes_s)
    if stage.guards is not None:
        opening = Opening(stage, {"name": "opening"}, [], {})
        _ended(host.start("opening", opening.main), "opening", history, PATIENCE)
    _ended(host.start("setup", _SetUp(stage, {"name": "setup"}).main), "setup", history, PATIENCE)
    running: dict[str, Running] = {}

    def start(name: str) -> None:
        spec = next(spec for spec in plan["actors"] if spec["name"] == name)
        if stage.phase is not Phase.OVER:
            running[name] = host.start(name, KINDS[spec["kind"]](stage, spec).main)

    for spec in plan["actors"]:
        start(spec["name"])
    nemesis = Nemesis(plan["nemesis"], host.faults, stage, start)
    troubling = host.start("nemesis", nemesis.main)
    time.sleep(plan["duration"])
    nemesis.is_over = True
    nemesis.ease()
    _ended(troubling, "nemesis", history, PATIENCE)
    history.note("workload", "quiet")
    stage.phase = Phase.SETTLE
    for spec in plan["actors"]:
        if KINDS[spec["kind"]].writes:
            _ended(running[spec["name"]], spec["name"], history, KINDS[spec["kind"]].patience)
    time.sleep(plan["settle"])
    told = [spec.get("consumer", spec) for spec in plan["actors"]]
    named = [spec[name] for spec in told for name in ("group", "offsets_of") if name in spec]
    groups = list(dict.fromkeys(named))

    def done(name: str, kind: type[Actor], **spec: object) -> None:
        actor = kind(stage, {"name": name, "groups": groups, **spec})
        _ended(host.start(name, actor.main), name, history, 10 * PATIENCE)

    done("refused", Refusing, describes=True)
    stage.phase = Phase.OVER
    for spec in plan["actors"]:
        _ended(running[spec["name"]], spec["name"], history, KINDS[spec["kind"]].patience)
    if stage.guards is not None and stage.guards["alone"]:
        _guard(host, stage, start)
        done("final", FinalReading)
        return
    if host.has_upkeep:
        compacted = plan["cluster"].get("upkeep", {}).get("COMPACTION_EVERY_S", 0.0) + COMPACTION_S
        done("storing", Storing, compacted=compacted)
        _fail(host, history, lambda: done("failing", Failing))
    done("resending", Resending)
    done("remembering", Remembering, moment="before")
    if host.moves:
        _away_and_back(host, stage, start)
        _move(host, stage, groups, start)
        done("refused-again", Refusing)
    if host.has_upkeep:
        done("renewing", Renewing)
        release = plan["cluster"].get("as_release")
        done("listening", Listening, at=0.0, has_consumer_groups=release is None or release >= "4.0")
        cut_off = CutOff(stage, {"name": "cut-off"}, partial(_cut_off, host, history, "cut-off"))
        _ended(host.start("cut-off", cut_off.main), "cut-off", history, 10 * PATIENCE)
        if stage.random("querying").random() < QUERIES and (release is None or release >= "3.3"):
            done("querying", Querying, at=0.0)
    altering, alters = Altering(stage, {"name": "altering"}, partial(_broken, host, history)), _chance(stage, ALTERED)
    if host.has_upkeep and alters and plan["cluster"]["fsync"] == "batch":
        _ended(host.start("altering", altering.main), "altering", history, 10 * PATIENCE)
    abiding = Abiding(stage, {"name": "abiding"})
    if host.has_upkeep and plan["cluster"]["fsync"] == "batch":
        _ended(host.start("abiding", abiding.main), "abiding", history, 10 * PATIENCE)
    # Whatever was only in memory is gone before it is looked at.
    befalls = plan.get("last") or [KILLED] * (host.has_upkeep and stage.random("last").random() < 0.5)
    last = Nemesis(befalls, host.faults, stage, start)
    _ended(host.start("last", last.main), "last", history, PATIENCE)
    abides = Abides(stage, {"name": "abides"}, abiding)
    _ended(host.start("abides", abides.main), "abides", history, 10 * PATIENCE)
    altered = Altered(stage, {"name": "altered"}, altering)
    _ended(host.start("altered", altered.main), "altered", history, 10 * PATIENCE)
    done("remembering-after", Remembering, moment="after")
    done("resending-after", Resending)
    done("final", FinalReading)
    if host.has_upkeep:
        done("renewed", Renewed)
        time.sleep(UPKEEP_S)
        done("remembering-later", Remembering, moment="later")
        done("foreign", Foreign)
        done("foreign-members", ForeignMembers)
        done("foreign-rebalances", ForeignRebalances)
        done("repeating", Repeating)
        done("foreign-followers", ForeignFollowers)
        done("foreign-owners", ForeignOwners)
        done("foreign-waiting", ForeignWaiting)
        done("foreign-readers", ForeignReaders)
        done("foreign-administrators", ForeignAdministrators)
        if _chance(stage, BOUNDED):
            done("foreign-bounded", ForeignBounded, most_connections=plan["cluster"]["settings"].get("max_connections"))
        if stage.random("tidying-young").random() < TIDIES:
            done("tidying-young", TidyingYoung)
        reader = ForeignOffline(stage, {"name": "foreign-offline"}, partial(_broken, host, history))
        _ended(host.start("foreign-offline", reader.main), "foreign-offline", history, 10 * PATIENCE)
        producer = ForeignRefused(stage, {"name": "foreign-refused"}, partial(_refused, host, history))
        _ended(host.start("foreign-refused", producer.main), "foreign-refused", history, 10 * PATIENCE)
        done("foreign-offsets", ForeignOffsets)
        idle = ForeignIdle(stage, {"name": "foreign-idle"}, partial(_jump, host))
        _ended(host.start("foreign-idle", idle.main), "foreign-idle", history, 10 * PATIENCE)
        done("going-back", GoingBack)
        late_spec = {"name": "told-late", "has_consumer_groups": release is None or release >= "4.0"}
        told_late = ToldLate(
            stage, late_spec, lambda topic, count: host.faults.begin("lag", topic=topic, partitions=count)
        )
        _ended(host.start("told-late", told_late.main), "told-late", history, 10 * PATIENCE)
        if stage.random("tidying").random() < TIDIES:
            done("tidying", Tidying)
        if "delete.retention.ms" in plan["cluster"].get("coordinators", {}):
            done("tidying-offsets", TidyingOffsets)
        if tidies_later := stage.random("tidying-later").random() < TIDIES:
            done("tidying-later", TidyingLater, is_slow=False)
        host.faults.begin("clock", target="broker", offset=-SET_BACK_S, stays=True)
        configs = [spec.get("configs", {}) for spec in (*plan["actors"], *plan["topics"])]
        done("forsaking", Forsaking, ages=not any("retention.ms" in each for each in configs))
        if stage.random("meanwhile").random() < MEANWHILE:
            # What is stored of groups takes longer than what becomes of their topics.
            heal = host.faults.begin("disk_slow", latency=2 * SLOW_S, chance=1.0, part=COORDINATORS[0])
            done("meanwhile", Meanwhile)
            if heal is not None:
                heal()
        end = host.faults.begin("disk_slow", latency=SLOW_S, chance=1.0)
        done("racing", Racing)
        if tidies_later:
            done("tidying-late", TidyingLater, is_slow=True)
        if host.moves:
            _move_written(host, stage, start)
        if end is not None:
            end()
        if stage.guards is not None:
            _guard(host, stage, start)


def _guard(host: Host, stage: Stage, start: Callable[[str], None]) -> None:
    """Lets it be changed who may do what, and the broker end amid that, and looks what holds."""
    random = stage.random("guards")
    known: list[list[object]] = []
    secrets: dict[str, list[int]] = {}

    def begun(name: str, kind: type[Superuser], **spec: object) -> Running:
        return host.start(name, kind(stage, {"name": name, **spec}, known, secrets).main)

    def over(name: str, running: Running) -> None:
        _ended(running, name, stage.history, 10 * PATIENCE)

    def befall(name: str, step: Spec) -> None:
        nemesis = Nemesis([step], host.faults, stage, start)
        over(name, host.start(name, nemesis.main))

    over("guarding", begun("guarding", Guarding, rounds=6, requests=10))
    for number in range(1, GUARD_ROUNDS + 1):
        part = random.choice(OF_GUARDS)
        slow = None
        if random.random() < SLOWLY:
            slow = host.faults.begin("disk_slow", latency=SLOW_S, chance=1.0, part=part)
        name = f"changing-{number}"
        changing = begun(name, Changing, changes=40, users=0.7 if part == OF_GUARDS[-1] else 0.1)
        step = amid_changes(random, part, host.round_trip_s)
        befall(f"guard-nemesis-{number}", step)
        over(name, changing)
        if slow is not None:
            slow()
        name = f"guarded-{number}"
        over(name, begun(name, Guarded, requests=10))
        if step["kind"] == "broker_kill" and random.random() < TWICE:
            befall(f"guard-nemesis-{number}-again", {"at": 0.0, "kind": "broker_power", "seconds": 1.0})
            name = f"guarded-{number}-again"
            over(name, begun(name, Guarded, requests=3))


def _chance(stage: Stage, share: float) -> bool:
    """Whether quotas and administrators are looked at: in each run that has a limiter, and in a share of the others."""
    return TOPIC in stage.topics or stage.random("altering").random() < share


def _jump(host: Host, seconds: float) -> None:
    """Lets the clock of the broker's machine jump. When everything is over nothing else goes by it meanwhile."""
    host.faults.begin("clock", target="broker", offset=seconds, stays=True)


def _fail(host: Host, history: History, deed: Callable[[], None]) -> None:
    """Does something while the first write of a coordinator is refused: its log stays online."""
    heals = [_broken(host, history, ("write",), part) for part in COORDINATORS]
    deed()
    for heal in heals:
        heal()


def _broken(host: Host, history: History, operations: tuple[str, ...], part: str, after: int = 0) -> Callable[[], None]:
    """Lets the next of each of these operations, or one after so many, fail on files of a name; until what it returns
    is called."""
    details: list[Spec] = [
        {"operation": operation, "count": 1, "after": after, "part": part, "errno": errno.EIO}
        for operation in operations
    ]
    told = [{"fault": "disk_error", "target": None, "detail": detail} for detail in details]
    for each in told:
        history.note("nemesis", "fault", seconds=0.0, **each)
    ends = [host.faults.begin("disk_error", **detail) for detail in details]

    def heal() -> None:
        for end in filter(None, ends):
            end()
        for each in told:
            history.note("nemesis", "heal", **each)

    return heal


def _refused(host: Host, history: History, part: str, after: int) -> Callable[[], None]:
    """Lets a disk take its time with files of a name, and refuse one write of them after so many; until what it returns
    is called."""
    heal = _broken(host, history, ("write",), part, after)
    slow = host.faults.begin("disk_slow", latency=SLOW_S, chance=1.0, part=part)

    def is_over() -> None:
        if slow is not None:
            slow()
        heal()

    return is_over


def _cut_off(host: Host, history: History, name: str) -> Callable[[], None]:
    """Lets nothing get from brokers to a process, until what it returns is called."""
    detail: Spec = {"a": "broker", "b": name, "one_way": True}
    told: Spec = {"fault": "partition", "target": ["broker", name], "detail": detail}
    history.note("nemesis", "fault", seconds=0.0, **told)
    end = host.faults.begin("partition", **detail)

    def heal() -> None:
        if end is not None:
            end()
        history.note("nemesis", "heal", **told)

    return heal


def _move(host: Host, stage: Stage, groups: list[str], start: Callable[[str], None]) -> None:
    """Lets other nodes lead and coordinate, while somebody waits for records."""
    random = stage.random("moves")
    topic = random.choice(sorted(stage.topics))
    place = {"topic": topic, "partition": random.randrange(stage.topics[topic]["partitions"])}
    reader = Waiting(stage, {"name": "waiting", **place})
    waiting = host.start("waiting", reader.main)
    # One that began to wait when all had moved would wait in vain.
    while not (reader.waits or waiting.join(LOOK_S)):
        pass
    time.sleep(BEGUN_S + host.round_trip_s)
    # To two nodes, one after the other: one of them does not lead it yet.
    steps = [{"at": 0.1 * node, "kind": "move_leader", "node": node, **place} for node in (1, 2)]
    steps += [{"at": 0.5, "kind": "move_coordinator", "node": random.randint(1, 3), "group": group} for group in groups]
    names = stage.transactional_ids
    steps += [
        {"at": 0.6, "kind": "move_coordinator", "node": random.randint(1, 3), "transactional_id": name}
        for name in names
    ]
    nemesis = Nemesis(steps, host.faults, stage, start)
    _ended(host.start("moving", nemesis.main), "moving", stage.history, PATIENCE)
    _ended(waiting, "waiting", stage.history, PATIENCE)


def _away_and_back(host: Host, stage: Stage, start: Callable[[str], None]) -> None:
    """Lets another node lead what somebody reads, and the one before again."""
    if ANEW not in stage.topics:
        return
    random = stage.random("returns")
    home = random.randint(1, 3)
    moves = iter(range(1, 10))

    def led(partition: int, node: int) -> None:
        steps = [{"at": 0.0, "kind": "move_leader", "topic": ANEW, "partition": partition, "node": node}]
        name = f"returning-{next(moves)}"
        _ended(host.start(name, Nemesis(steps, host.faults, stage, start).main), name, stage.history, PATIENCE)

    for partition in (0, 1):
        led(partition, home)
    reader = Returning(stage, {"name": "returning", "topic": ANEW, "pauses": random.random() < 0.7})
    reading = host.start("returning", reader.main)
    while not (reader.reads or reading.join(LOOK_S)):
        pass
    led(0, home % 3 + 1)
    time.sleep(random.choice([0.0, 1.0]))
    led(0, home)
    reader.is_back = True
    _ended(reading, "returning", stage.history, 3 * PATIENCE)


def _move_written(host: Host, stage: Stage, start: Callable[[str], None]) -> None:
    """Lets one node after another lead a partition that is written to."""
    random = stage.random("moved")
    steady = sorted(name for name, topic in stage.topics.items() if topic["kind"] == "steady")
    if not steady:
        return
    topic = random.choice(steady)
    place = {"topic": topic, "partition": random.randrange(stage.topics[topic]["partitions"])}

    def begun(name: str, *, audits: bool) -> Running:
        return host.start(name, WrittenWhileMoved(stage, {"name": name, "audits": audits, **place}).main)

    writing = begun("moved", audits=False)
    steps = [
        {"at": round(MOVED_EVERY_S * (1 + step), 3), "kind": "move_leader", "node": step % 3 + 1, **place}
        for step in range(MOVES)
    ]
    nemesis = Nemesis(steps, host.faults, stage, start)
    _ended(host.start("moving-written", nemesis.main), "moving-written", stage.history, PATIENCE)
    _ended(writing, "moved", stage.history, 10 * PATIENCE)
    _ended(begun("moved-audited", audits=True), "moved-audited", stage.history, 10 * PATIENCE)


def _ended(process: Running, name: str, history: History, patience: float) -> None:
    """Waits for a process that has every reason to end."""
    if not process.join(patience):
        text = f"{name} has not ended within {patience} seconds in which nothing went wrong"
        history.note(name, "logged", logger="workload", level="ERROR", message="an actor is stuck", error=text)


class _SetUp(Actor):
    """Creates the topics of the plan."""

    async def live(self) -> None:
        async with AsyncAdmin(self.stage.properties(self.process, 10.0)) as admin:
            for topic in self.stage.topics.values():
                await self._create(admin, topic)
        self.is_done = True

    async def _create(self, admin: AsyncAdmin, topic: Spec) -> None:
        asked = {"topic": topic["name"], "partitions": topic["partitions"], "configs": topic["configs"]}
        new = NewTopic(topic["name"], topic["partitions"], -1, topic["configs"])
        try:
            await self.noted("create_topic", asked, lambda: admin.create_topics([new]), has_no_effect=is_refusal)
        except KafkaError as error:
            if error.error is not Error.TOPIC_ALREADY_EXISTS:
                raise
