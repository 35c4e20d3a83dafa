"""What is drawn of faults of the network and the disk."""

from __future__ import annotations

import json
from random import Random

from .workload.close_ups import close_up
from .workload.fault_draws import UPON, crash_moment, disk_steps, network_steps
from .workload.narrow_moments import DECIDED, DELETED, REPLACED, ROLLED, WRITTEN
from .workload.plans import plan
from .workload.scenes import scenes
from .workload.spark_driver import MOMENTS, STOPS
from .world.disk import OPERATIONS
from .world.disk_contents import FATES

ACTORS = ["producer-1", "member-1"]


def drawn(seed):
    random = Random(seed)
    nodes = random.choice([1, 3])
    return network_steps(random, ACTORS, 10.0, nodes) + disk_steps(random, 10.0)


def test_steps_are_the_seeds_and_stand_in_json_as_they_are():
    for seed in range(100):
        steps = drawn(seed)
        assert steps == drawn(seed) == json.loads(json.dumps(steps))
        assert all(0 < step["at"] < 10 and step["seconds"] > 0 for step in steps)


def test_every_kind_is_drawn_and_some_runs_have_faults_that_meet():
    steps = [drawn(seed) for seed in range(200)]
    assert {step["kind"] for each in steps for step in each} == {
        *("partition", "cut", "half_open", "slow", "lossy", "refuse"),
        *("disk_error", "disk_full", "disk_slow"),
    }
    meeting = [
        each
        for each in steps
        if any(one is not other and 0 <= other["at"] - one["at"] < one["seconds"] for one in each for other in each)
    ]
    assert len(meeting) > 100


def test_scenes_befall_those_that_a_plan_has_and_every_scene_is_in_some_plan():
    kinds = set()
    for seed in range(300):
        drawn_plan = plan(seed)
        actors = {actor["name"] for actor in drawn_plan["actors"]}
        steps = scenes(Random(seed), drawn_plan)
        assert steps == scenes(Random(seed), drawn_plan) == json.loads(json.dumps(steps))
        assert all(step["at"] >= 0 or step["kind"] == "broker_kill" for step in steps)
        assert all(step["target"] in actors for step in steps if "target" in step)
        kinds |= {step["kind"] for step in steps}
    assert kinds >= {
        "client_pause",
        "partition",
        "client_kill",
        "slow",
        "half_open",
        "cut",
        "move_leader",
        "disk_error",
    }


def test_brokers_end_at_once_after_some_steps_and_near_every_operation_that_a_crash_may_undo():
    moments = [crash_moment(Random(seed)) for seed in range(300)]
    assert {moment.get("upon") for moment in moments} == {None, *UPON}
    assert set(UPON) <= set(OPERATIONS)
    steps = [step for seed in range(300) for step in plan(seed)["nemesis"] if step["kind"] == "broker_power"]
    narrow = {operation for operation, _ in WRITTEN + ROLLED + REPLACED + DELETED + DECIDED}
    assert {step.get("upon") for step in steps} == {None, *UPON, *narrow}
    assert narrow <= set(OPERATIONS)


def test_some_close_ups_have_what_meets_in_a_narrow_moment():
    plans = [drawn for seed in range(400) if (drawn := close_up(seed)) is not None]
    steps = [step for drawn in plans for step in drawn["nemesis"]]
    amid = [step for step in steps if "part" in step and step["kind"] == "broker_power"]
    assert amid == json.loads(json.dumps(amid))
    assert {(step["upon"], step["part"]) for step in amid} == {*WRITTEN, *ROLLED, *REPLACED, *DELETED, *DECIDED}
    assert {step["spares"] for step in amid} <= {*FATES, None}
    for drawn in plans:
        smallest = [topic["configs"].get("segment.bytes", 1 << 20) for topic in drawn["topics"]]
        if any(step.get("part") == "topic-" and step.get("upon") == "write" for step in drawn["nemesis"]):
            assert all(actor.get("value_size", 0) < min(smallest) for actor in drawn["actors"]), (
                "none of it would be taken"
            )


def test_drivers_of_sinks_stop_at_every_moment_in_every_way_in_some_close_up():
    plans = [drawn for seed in range(900) if (drawn := close_up(seed)) is not None]
    assert plans == json.loads(json.dumps(plans))
    sinks = [actor for drawn in plans for actor in drawn["actors"] if actor["kind"] == "sink"]
    stops = [stop for actor in sinks for stop in actor.get("stops", {}).items()]
    drawn = {(moment, how) for moment, chances in stops for how, chance in chances.items() if chance}
    assert drawn == {(moment, how) for moment in MOMENTS for how in STOPS}
    assert all(sum(chances.values()) < 1 for _, chances in stops), "it would never go on"
    assert any(step["kind"] == "hurry" for plan in plans for step in plan["nemesis"])
    assert any(not actor.get("stops") for actor in sinks)
