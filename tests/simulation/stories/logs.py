"""The bounds of logs, and what is removed."""

from tests.simulation.stories.telling import innocent, planted


@planted("log-start-back")
def _the_log_begins_earlier_again(story):
    story.state(log_start=5)
    story.state(log_start=3)


@planted("stable-back")
def _the_stable_offset_goes_back(story):
    story.state(last_stable=5, high_watermark=5, open=[])
    story.state(last_stable=4, high_watermark=5, open=[[1, 0, 4, 0.0]])


@planted("high-watermark-back")
def _the_high_watermark_goes_back(story):
    story.state(high_watermark=5)
    story.note("world", "broker_killed", node=1)
    listed = {"offsets": [["t", 0, 4]]}
    story.call(
        "admin", "list_offsets", "ok", listed, isolation="read_uncommitted", spec="latest", partitions=[["t", 0]]
    )


@planted("high-watermark-back")
def _the_high_watermark_goes_back_where_another_partition_lost_what_was_not_synced(story):
    story.state(high_watermark=5)
    story.note("world", "sync_refused", node=1, fsync="interval", topic="t", partition=1)
    story.state(high_watermark=4)


@innocent
def _the_high_watermark_goes_back_with_what_the_disk_refused_to_sync(story):
    story.state(high_watermark=5)
    story.note("world", "sync_refused", node=1, fsync="interval", topic="t", partition=0)
    story.state(high_watermark=4)


@innocent
def _bounds_go_on(story):
    story.state(log_start=3, last_stable=4, high_watermark=5, open=[[1, 0, 4, 0.0]])
    story.state(log_start=3, last_stable=5, high_watermark=5, open=[])


@innocent
def _the_bounds_of_the_next_topic_of_a_name_begin_anew(story):
    story.create()
    story.state(log_start=3, high_watermark=5)
    story.call("admin", "delete_topic", topic="t")
    story.create()
    story.state(log_start=0, high_watermark=0)


@planted("high-watermark-past-end")
def _readable_past_the_end(story):
    story.state(high_watermark=6, log_end=5)


@planted("high-watermark-unsynced")
def _readable_before_it_is_on_the_disk(story):
    story.note("broker-1", "broker_started", node=1, fsync="batch")
    story.state(high_watermark=5, log_end=5, synced=4)


@innocent
def _readable_at_once_with_an_interval(story):
    story.note("broker-1", "broker_started", node=1, fsync="interval")
    story.state(high_watermark=5, log_end=5, synced=4)


@planted("vanished-read")
def _read_and_gone(story):
    story.send("a", end="info")
    story.poll((0, "a"))
    story.note("world", "power_lost", node=1, fsync="batch")
    story.final()


@innocent
def _read_and_gone_with_what_never_promises(story):
    story.send("a", end="info")
    story.poll((0, "a"))
    story.note("world", "power_lost", node=1, fsync="never")
    story.final()


@planted("removed-too-much")
def _more_is_deleted_than_was_asked_for(story):
    story.send("a", 0)
    story.send("b", 1)
    story.call("admin", "delete_records", "ok", {"log_start": 1}, topic="t", partition=0, before=1)
    story.final(start=2)


@planted("removed-too-much")
def _retention_takes_what_is_young(story):
    story.create(retention_ms="60000")
    story.send("a", 0)
    story.final(start=1)


@innocent
def _retention_takes_what_is_old(story):
    story.create(retention_ms="60000")
    story.send("a", 0)
    story.wait(61)
    story.final(start=1)


@planted("deleted-records-read")
def _what_was_deleted_is_read(story):
    story.send("a", 0)
    story.send("b", 1)
    story.call("admin", "delete_records", "ok", {"log_start": 1}, topic="t", partition=0, before=1)
    story.final((0, "a"), (1, "b"))


@planted("old-topic-read")
def _the_next_topic_has_the_old_ones_records(story):
    story.create()
    story.send("a", 0)
    story.call("admin", "delete_topic", topic="t")
    story.create()
    story.final((0, "a"))


@innocent
def _the_next_topic_has_its_own_records(story):
    story.create()
    story.send("a", 0)
    story.call("admin", "delete_topic", topic="t")
    story.create()
    story.send("b", 0)
    story.final((0, "b"))


@planted("stale-end")
def _the_end_is_before_what_was_acknowledged(story):
    story.send("a", 4)
    listed = {"offsets": [["t", 0, 4]]}
    story.call(
        "admin", "list_offsets", "ok", listed, isolation="read_uncommitted", spec="latest", partitions=[["t", 0]]
    )


@innocent
def _the_end_is_behind_it(story):
    story.send("a", 4)
    listed = {"offsets": [["t", 0, 5]]}
    story.call(
        "admin", "list_offsets", "ok", listed, isolation="read_uncommitted", spec="latest", partitions=[["t", 0]]
    )


@planted("removed-too-much")
def _retention_by_size_leaves_less_than_it_is_to_keep(story):
    story.create(retention_bytes="1000")
    story.state(log_start=0, size=1500)
    story.state(log_start=9, size=100)


@planted("removed-too-much")
def _retention_by_time_takes_what_is_not_old_yet(story):
    story.create(retention_ms="6000")
    story.send("a", 0)
    story.state(log_start=1)
    story.wait(100)
    story.final(start=1)


@innocent
def _retention_by_time_takes_what_is_old_when_it_is_seen(story):
    story.create(retention_ms="6000")
    story.send("a", 0)
    story.wait(10)
    story.state(log_start=1)
    story.final(start=1)


@innocent
def _retention_by_size_leaves_what_it_is_to_keep(story):
    story.create(retention_bytes="1000")
    story.state(log_start=0, size=100)
    story.state(log_start=9, size=1000)


@innocent
def _retention_by_size_leaves_enough_and_the_power_takes_the_end(story):
    story.create(retention_bytes="1000")
    story.state(log_start=9, size=1000)
    story.note("broker-1", "power_lost", node=1, fsync="batch")
    story.state(log_start=9, size=900)


@planted("config-lost")
def _a_configuration_is_what_it_was_before(story):
    story.create(segment_bytes="1024")
    story.call("admin", "alter_config", topic="t", configs={"segment.bytes": "4096"})
    story.call("final", "describe_configs", "ok", {"configs": {"segment.bytes": "1024"}}, topic="t")


@planted("config-lost")
def _a_configuration_of_a_new_topic_is_the_default(story):
    story.create(segment_bytes="1024")
    story.call("final", "describe_configs", "ok", {"configs": {"segment.bytes": "1073741824"}}, topic="t")


@innocent
def _a_configuration_is_what_it_was_set_to_or_may_have_been(story):
    story.create(segment_bytes="1024", compression_type="gzip")
    story.call("admin", "alter_config", topic="t", configs={"segment.bytes": "4096"})
    story.call("admin", "alter_config", "fail", topic="t", configs={"segment.bytes": "1"})
    story.call("admin", "alter_config", "info", topic="t", configs={"compression.type": "lz4"})
    told = {"segment.bytes": "4096", "compression.type": "lz4"}
    story.call("final", "describe_configs", "ok", {"configs": told}, topic="t")


@planted("log-start-past-stable")
def _a_log_starts_past_its_last_stable_offset(story):
    story.state(log_start=5, last_stable=3, high_watermark=8, log_end=8)


@planted("log-start-past-end")
def _records_are_deleted_before_they_are_there(story):
    story.state(log_start=1003, log_end=3)


@innocent
def _all_records_are_deleted(story):
    story.state(log_start=3, log_end=3)


def _looked_up(story, **found):
    story.send("a", 0)
    story.send("b", 2)
    answer = {"log_start": 0, "end": 3, "records": [[0, "a"], [2, "b"]], **found}
    story.call("reader", "final_read", "ok", answer, topic="t", partition=0, isolation="read_committed")


@planted("wrong-lookup")
def _reading_from_an_offset_begins_behind_it(story):
    _looked_up(story, sought=[1, 2, []])


@planted("wrong-lookup")
def _reading_from_an_offset_begins_before_it(story):
    _looked_up(story, sought=[1, 2, [[0, "a"], [2, "b"]]])


@planted("wrong-lookup")
def _a_time_is_found_behind_its_first_record(story):
    _looked_up(story, timed=[[1000, 2, 0]])


@planted("wrong-lookup")
def _a_time_is_not_found(story):
    _looked_up(story, timed=[[900, 0, 0], [1000, -1, 0]])


@planted("wrong-lookup")
def _a_time_is_found_in_what_was_deleted(story):
    _looked_up(story, log_start=2, records=[[2, "b"]], timed=[[900, 1, 2]])


@planted("wrong-lookup")
def _the_newest_record_is_told_to_be_an_older_one(story):
    _looked_up(story, newest=[0, 2])


@planted("wrong-lookup")
def _no_record_is_told_to_be_the_newest(story):
    _looked_up(story, newest=[-1, 2])


@innocent
def _offsets_and_times_are_found(story):
    _looked_up(story, sought=[1, 2, [[2, "b"]]], timed=[[1000, 1, 2]], newest=[2, 2])


@innocent
def _the_end_of_a_transaction_is_the_newest(story):
    _looked_up(story, newest=[1, 2])


def _end(story, offset, isolation="read_committed"):
    asked = {"isolation": isolation, "spec": "latest", "partitions": [["t", 0]]}
    story.call("admin", "list_offsets", "ok", {"offsets": [["t", 0, offset]]}, **asked)


def _open(story):
    story.call("p", "init_producer", kind="transactional", transactional_id="id", transaction_timeout=60.0)
    story.transaction("t1", ("a", 5))


@planted("end-passes-open")
def _the_committed_end_is_behind_what_is_open(story):
    _open(story)
    _end(story, 6)


@planted("end-passes-open")
def _the_committed_end_is_behind_what_is_open_and_was_not_deleted(story):
    _open(story)
    story.call("admin", "delete_records", "ok", {"log_start": 5}, topic="t", partition=0, before=5)
    _end(story, 6)


@innocent
def _the_committed_end_is_the_beginning_of_a_log_that_was_deleted_past_what_is_open(story):
    _open(story)
    story.call("admin", "delete_records", "ok", {"log_start": 6}, topic="t", partition=0, before=6)
    _end(story, 6)


@innocent
def _the_committed_end_is_before_what_is_open(story):
    _open(story)
    _end(story, 5)
    _end(story, 6, isolation="read_uncommitted")


@innocent
def _the_committed_end_is_behind_what_its_time_has_ended(story):
    _open(story)
    story.wait(60)
    _end(story, 6)


@innocent
def _the_committed_end_is_behind_what_somebody_else_has_ended(story):
    _open(story)
    story.call("q", "init_producer", kind="transactional", transactional_id="id", transaction_timeout=60.0)
    _end(story, 6)
