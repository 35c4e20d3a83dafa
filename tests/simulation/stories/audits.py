"""Logs by their batches, what brokers refuse, and what they remember."""

from tests.simulation.stories.telling import innocent, planted

P = 7
"""A producer's id."""


def batch(base, *, count=1, leader=0, producer=P, epoch=0, sequence=0, what="", age=1):
    return [base, base + count - 1, leader, producer, epoch, sequence, count, what, age]


def marker(base, what, epoch=0, producer=P, leader=0):
    return batch(base, producer=producer, epoch=epoch, sequence=-1, what=what, leader=leader)


def log(story, *batches, start=0, end=None, stable=None, listed=None, producers=None, aborted=(), epochs=()):
    end = (batches[-1][1] + 1 if batches else 0) if end is None else end
    stable = end if stable is None else stable
    answer = {
        "log_start": start,
        "batches": batches,
        "end": end,
        "stable": stable,
        "listed": stable if listed is None else listed,
        "producers": producers,
        "aborted": aborted,
        "epochs": epochs,
    }
    story.call("final", "final_log", "ok", answer, topic="t", partition=0)


@planted("offsets-out-of-order")
def _offsets_are_left_out(story):
    log(story, batch(0), batch(2, sequence=1))


@planted("offsets-out-of-order")
def _an_end_is_before_a_batch(story):
    log(story, batch(0, count=3), end=2)


@planted("leader-epoch-back")
def _a_leader_epoch_comes_back(story):
    log(story, batch(0, leader=2), batch(1, sequence=1, leader=1))


@planted("fenced-write")
def _an_older_epoch_writes_again(story):
    log(story, batch(0), batch(1, epoch=1), batch(2, sequence=1))


@planted("fenced-write")
def _a_transaction_goes_on_in_a_newer_epoch(story):
    log(story, batch(0, what="t"), batch(1, what="t", epoch=1), stable=0)


@planted("sequence-out-of-order")
def _a_batch_stands_twice(story):
    log(story, batch(0, count=2), batch(2, count=2))


@planted("sequence-out-of-order")
def _a_batch_is_missing_before_another(story):
    log(story, batch(0, count=2), batch(2, sequence=3))


@planted("sequence-out-of-order")
def _a_producers_first_batch_is_not_its_first(story):
    log(story, batch(0, sequence=3))


@planted("stable-passes-open")
def _the_committed_end_is_the_end(story):
    log(story, batch(0), batch(1, sequence=1, what="t"), stable=1, listed=2)


@planted("stable-stands-still")
def _it_is_stable_up_to_less_than_what_is_closed(story):
    log(story, batch(0, what="t"), marker(1, "commit"), stable=0)


@planted("abort-untold")
def _an_aborted_transaction_is_not_told(story):
    log(story, batch(0, what="t"), marker(1, "abort"), aborted=[[0, 2, []]])


@planted("abort-untold")
def _a_committed_transaction_is_told_as_aborted(story):
    log(story, batch(0, what="t"), marker(1, "commit"), aborted=[[0, 2, [[P, 0]]]])


@planted("producer-forgotten")
def _a_producers_last_sequence_is_another(story):
    log(story, batch(0, count=2), producers=[[P, 0, 0, -1]])


@planted("producer-forgotten")
def _compaction_takes_a_producers_last_batch(story):
    story.create(cleanup_policy="compact")
    log(story, batch(0), batch(4, sequence=3), producers=[[P, 0, 9, -1]])


@planted("epoch-end-wrong")
def _a_leader_epoch_ends_too_early(story):
    log(story, batch(0), batch(1, sequence=1, leader=1), epochs=[[0, 0, 0], [1, 1, 2]])


@innocent
def _a_log_of_which_all_is_told_as_it_is(story):
    log(
        story,
        batch(0, count=2),
        batch(2, count=3, sequence=2, leader=1),
        batch(5, producer=8, what="t", leader=1),
        marker(6, "abort", epoch=1, producer=8, leader=1),
        batch(7, producer=8, epoch=2, what="t", leader=1),
        stable=7,
        producers=[[P, 0, 4, -1], [8, 2, 0, 7]],
        aborted=[[0, 7, [[8, 5]]], [7, 7, []]],
        epochs=[[0, 0, 2], [1, 1, 8]],
    )


@innocent
def _a_compacted_log_lacks_offsets_and_sequences(story):
    story.create(cleanup_policy="compact")
    log(story, batch(0), batch(4, sequence=3), batch(9, sequence=8, count=2), producers=[[P, 0, 9, -1], [8, 1, -1, -1]])


@innocent
def _a_producer_that_was_forgotten_for_its_age_begins_anywhere(story):
    log(story, batch(0, age=90_000), batch(1, sequence=7, age=90_000), producers=[])


@planted("broken-files")
def _a_file_has_a_batch_that_is_torn(story):
    story.note("broker", "files", topic="t", partition=0, faults=["t-0/0.log: the batch is torn"], aborted=[])


@planted("broken-files")
def _a_transaction_index_forgets_what_was_open(story):
    log(story, batch(0, producer=8, what="t"), batch(1, what="t"), marker(2, "abort"), stable=0)
    story.note("broker", "files", topic="t", partition=0, faults=[], aborted=[[P, 1, 2, 3]])


@planted("broken-files")
def _a_snapshot_that_was_torn_without_power_is_left(story):
    story.note("broker", "power_lost", node="broker", fsync="batch")
    story.note("broker", "files", topic="t", partition=0, faults=["t-0/0.snapshot: 0 bytes"], aborted=[])


@planted("broken-files")
def _what_was_noted_of_segments_stays_when_they_go(story):
    story.note("broker", "files", topic="t", partition=0, faults=[], aborted=[], left=[0, 4])


@innocent
def _a_segment_is_just_being_deleted(story):
    story.note("broker", "files", topic="t", partition=0, faults=[], aborted=[], left=[4])


@innocent
def _a_disk_refuses_to_remove_files(story):
    detail = {"operation": "remove", "count": 2}
    story.note("nemesis", "fault", fault="disk_error", target=None, seconds=0.0, detail=detail)
    story.note("broker", "files", topic="t", partition=0, faults=[], aborted=[], left=[0, 4])


@innocent
def _files_that_are_whole(story):
    log(story, batch(0, producer=8, what="t"), batch(1, what="t"), marker(2, "abort"), stable=0)
    story.note("broker", "files", topic="t", partition=0, faults=[], aborted=[[P, 1, 2, 0]])


def probe(story, answer):
    asked = {"node": 2, "api": "Heartbeat", "about": "g", "answers": ["NOT_COORDINATOR"]}
    story.call("refused", "probe", "ok", {"answer": answer}, **asked)


@planted("not-refused")
def _a_node_answers_for_a_group_that_another_coordinates(story):
    probe(story, "NONE")


@innocent
def _a_node_says_that_it_does_not_coordinate(story):
    probe(story, "NOT_COORDINATOR")


def remembered(story, moment, offset, epoch=0, state="Empty"):
    offsets = [] if offset is None else [["g", "t", 0, offset]]
    owners = [] if epoch is None else [["id", P, epoch, state]]
    story.call("r", "remembered", "ok", {"offsets": offsets, "transactions": owners}, moment=moment)


@planted("group-offset-lost")
def _a_restart_forgets_a_groups_offset(story):
    remembered(story, "before", 5)
    remembered(story, "after", None)


@planted("group-offset-back")
def _a_restart_takes_a_groups_offset_back(story):
    remembered(story, "before", 5)
    remembered(story, "after", 3)


@planted("owner-forgotten")
def _a_restart_takes_an_owners_epoch_back(story):
    remembered(story, "before", None, epoch=4)
    remembered(story, "after", None, epoch=3)


@planted("owner-forgotten")
def _a_restart_forgets_an_owner(story):
    remembered(story, "before", None)
    remembered(story, "after", None, epoch=None)


def known(story, moment, *producers):
    answer = {"offsets": [], "transactions": [], "producers": [["t", 0, *each] for each in producers]}
    story.call("r", "remembered", "ok", answer, moment=moment)


@planted("producer-forgotten")
def _a_restart_forgets_a_producer(story):
    known(story, "before", (P, 0, 5))
    known(story, "after")


@planted("producer-forgotten")
def _a_restart_forgets_how_far_a_producer_had_come(story):
    known(story, "before", (P, 0, 5))
    known(story, "after", (P, 0, 4))


@innocent
def a_producer_is_fenced_between_two_looks(story):
    known(story, "before", (P, 0, 5))
    known(story, "after", (P, 1, -1), (P + 1, 0, 0))


@innocent
def _a_pending_transaction_ends_after_a_restart(story):
    remembered(story, "before", 5, state="Ongoing")
    remembered(story, "after", 8, epoch=1, state="CompleteCommit")


@planted("stable-passes-open")
def _who_reads_committed_records_is_given_what_is_open(story):
    log(story, batch(0), batch(1, what="t", sequence=1), stable=1, aborted=[[0, 2, []]])


@innocent
def who_reads_committed_records_is_given_what_is_stable(story):
    log(story, batch(0), batch(1, what="t", sequence=1), stable=1, aborted=[[0, 1, []], [1, 1, []]])


@planted("sequence-out-of-order")
def _a_producer_begins_anywhere(story):
    log(story, batch(0, sequence=7))


@innocent
def a_foreign_producer_begins_anywhere(story):
    story.call("foreign", "init_producer", "ok", {"producer_id": P, "epoch": 0}, kind="foreign", acks=-1)
    log(story, batch(0, sequence=7))


@planted("log-start-past-stable")
def _readers_of_committed_records_are_sent_before_the_start(story):
    story.call("admin", "delete_records", "ok", {"log_start": 2}, topic="t", partition=0, before=2)
    log(story, batch(2, what="t", sequence=2), start=2, stable=0)


@planted("transaction-forgotten")
def _an_emptied_batch_is_of_no_transaction(story):
    asked = {"kind": "transactional", "acks": -1, "transactional_id": "tx", "transaction_timeout": 10.0}
    story.call("tx", "init_producer", "ok", {"producer_id": P, "epoch": 0}, **asked)
    log(story, batch(0), marker(1, "commit"))


@innocent
def a_marker_that_was_emptied_ends_nothing(story):
    log(story, batch(0, what="t"), marker(1, "emptied"), stable=0)


@innocent
def _who_looks_after_groups_is_not_there_before_anybody_asks(story):
    story.note("broker", "kept", node="broker", more={"Groups._most": [10_000, 0], "Groups._most_bytes": [1 << 28, 0]})
