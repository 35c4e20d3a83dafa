"""Client quotas: set, kept, kept to, lifted, and nobody else's."""

from tests.simulation.stories.telling import innocent, planted

WRITER = [["client-id", "writer"]]
PRODUCED = "producer_byte_rate"


def alter(story, bound, *, end="ok", entity=WRITER):
    story.call("limiter", "alter_quotas", end, entity=entity, quotas={PRODUCED: bound})


def describe(story, *quotas):
    story.call(
        "limiter", "describe_quotas", "ok", {"quotas": [[entity, {PRODUCED: bound}] for entity, bound in quotas]}
    )


def write(story, count):
    for number in range(count):
        story.send(f"r{story.clock:g}-{number}", int(story.clock), client_id="writer", bytes=2000)


def took(story, seconds, bound, *, end="ok", **more):
    asked = {"client_id": "writer", "quota": PRODUCED, "bound": bound, "bytes": 30_000, "ahead": 5000, "slack": 5.0}
    call = story.begin("audit", "took", **{"lifted": None, **asked, **more})
    story.wait(seconds - 1)
    story.end(call, end)


@planted("quota-lost")
def _a_quota_is_gone_after_a_restart(story):
    alter(story, 300.0)
    story.note("broker", "power_lost", node="broker", fsync="batch")
    describe(story)


@planted("quota-lost")
def _a_quota_is_what_it_was_before(story):
    alter(story, 300.0)
    alter(story, 600.0)
    describe(story, (WRITER, 300.0))


@planted("quota-lost")
def _a_quota_is_there_again_that_was_taken_away(story):
    alter(story, 300.0)
    alter(story, None)
    describe(story, (WRITER, 300.0))


@planted("quota-lost")
def _a_quota_is_there_that_nobody_has_set(story):
    alter(story, 300.0, end="fail")
    describe(story, (WRITER, 300.0))


@innocent
def _a_quota_is_what_somebody_may_have_set(story):
    alter(story, 300.0)
    alter(story, 600.0, end="info")
    describe(story, (WRITER, 300.0))
    describe(story, (WRITER, 600.0))
    alter(story, None)
    describe(story)
    alter(story, 900.0, end="fail")
    describe(story)


@planted("quota-exceeded")
def _a_producer_writes_more_than_it_may(story):
    alter(story, 300.0)
    write(story, 60)


@planted("quota-exceeded")
def _all_is_written_sooner_than_it_may_be(story):
    took(story, 2, 500.0)


@innocent
def _a_producer_writes_what_it_may_at_once_or_has_no_quota_for_certain(story):
    alter(story, 3000.0)
    write(story, 40)
    alter(story, None)
    write(story, 60)
    alter(story, 300.0)
    story.note("broker", "broker_killed", node="broker")
    write(story, 10)
    alter(story, 600.0, end="info")
    alter(story, 300.0)
    write(story, 60)
    took(story, 50, 500.0)


@planted("held-by-quota")
def _a_producer_is_throttled_for_ever(story):
    took(story, 200, 500.0)


@planted("held-by-quota")
def _a_producer_goes_on_slowly_when_its_quota_was_lifted(story):
    took(story, 60, 500.0, lifted=2.0)


@planted("held-by-quota")
def _who_has_no_quota_is_slow(story):
    took(story, 20, None)


@planted("held-by-quota")
def _who_has_a_quota_is_not_served(story):
    took(story, 50, 500.0, end="info")


@innocent
def _a_producer_waits_for_what_it_was_told_before_its_quota_was_lifted(story):
    took(story, 20, 500.0, lifted=2.0)
    took(story, 3, None)


@planted("throttled-for-nothing")
def _another_client_is_throttled(story):
    alter(story, 300.0)
    story.note("p", "throttled", client_id="p", api="Produce", most_ms=500.0)


@innocent
def _a_client_is_throttled_that_has_had_a_quota_or_may_have_a_default(story):
    alter(story, 300.0)
    alter(story, None)
    story.note("p", "throttled", client_id="writer", api="Produce", most_ms=500.0)
    story.note("p", "throttled", client_id="p", api="Produce", most_ms=0.0)
    alter(story, 300.0, end="info", entity=[["user", ""], ["client-id", ""]])
    story.note("p", "throttled", client_id="p", api="Produce", most_ms=500.0)
