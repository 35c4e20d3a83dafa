"""The judge: what a history breaks of what tagwire promises, by the names of Jepsen's Kafka workload where it has one.

Each rule is a function from the facts of a history to anomalies, and stands with the promise that it holds, the
document that gives it, and the mechanism that keeps it. What is promised to nobody is no anomaly: records of acks=0
that a kill takes, writes without an answer that appear, duplicates of plain producers, what fsync=interval and never
lose with the power, transactions of different ids that stand interleaved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tests.simulation.history import History
from tests.simulation.judge import (
    compaction,
    errors,
    fencing,
    groups,
    guards,
    liveness,
    log_audits,
    logs,
    progress,
    quotas,
    reads,
    refusals,
    resources,
    sinks,
    staying,
    transactions,
    writes,
)
from tests.simulation.judge.anomaly import Anomaly
from tests.simulation.judge.facts import Bounds, Facts, Late

__all__ = ["RULES", "Anomaly", "Bounds", "Rule", "judge"]


@dataclass(frozen=True)
class Rule:
    """A promise, who gives it, what keeps it, and what finds it broken under which names."""

    promise: str
    document: str
    mechanism: str
    find: Callable[[Facts], Iterator[Anomaly]]
    names: tuple[str, ...]

    @property
    def judge(self) -> str:
        """The function, as a page may name it."""
        return f"{self.find.__module__.rpartition('.')[2]}.{self.find.__name__}"


RULES = (
    Rule(
        "A record acknowledged with acks 1 or all is there after kill -9, and with fsync=batch after a power failure;"
        " one of a committed transaction with fsync=interval, too",
        "broker.md#what-an-acknowledgement-means",
        "`GroupCommit` syncs before it answers; recovery reads from the recovery point on",
        writes.lost_writes,
        ("lost-write",),
    ),
    Rule(
        "Every acknowledged record can be read in the end",
        "broker.md#what-an-acknowledgement-means",
        "the high watermark follows the sync",
        writes.unseen,
        ("unseen",),
    ),
    Rule(
        "A record of an idempotent producer stands once, however often its batch was sent",
        "producing.md#once-and-in-order",
        "sequence numbers, kept in `ProducerState` and its snapshots; a batch is sent again as it was, or not at all",
        writes.duplicates,
        ("duplicate",),
    ),
    Rule(
        "An offset is one record, and a record is at the offset of its acknowledgement",
        "broker.md#what-an-acknowledgement-means",
        "offsets are assigned under the log's lock; what was synced is never cut off",
        writes.inconsistent_offsets,
        ("inconsistent-offsets",),
    ),
    Rule(
        "A leader epoch has one record at an offset: what is written in the place of what was lost is of a later one",
        "storage.md#after-a-crash",
        "each recovery begins a leader epoch",
        writes.one_in_an_epoch,
        ("inconsistent-offsets",),
    ),
    Rule(
        "Batches in flight do not overtake each other, and what is sent after an acknowledgement stands behind it",
        "producing.md#once-and-in-order",
        "sequence numbers; the epoch is bumped before anything is renumbered",
        writes.nonmonotonic_sends,
        ("nonmonotonic-send", "int-nonmonotonic-send"),
    ),
    Rule(
        "What is read was sent; what was refused is nowhere",
        "producing.md#once-and-in-order",
        "checksums of batches; errors that say what is known",
        writes.strangers,
        ("never-sent", "failed-write"),
    ),
    Rule(
        "A consumer that keeps a partition is given each of its records once, in order, none left out",
        "client.md#a-consumer-in-a-group",
        "`FetchPosition` moves with what was given; a fetch of another position is dropped",
        reads.polls,
        ("poll-skip", "nonmonotonic-poll", "int-poll-skip", "int-nonmonotonic-poll"),
    ),
    Rule(
        "After a seek a reader goes on there",
        "client.md#a-consumer-in-a-group",
        "what was fetched for another position is dropped, also what is still on its way",
        reads.sought,
        ("seek-ignored",),
    ),
    Rule(
        "A member is given nothing of a partition that was taken away",
        "client.md#a-consumer-in-a-group",
        "rebalances happen inside of `poll`, which drops what was fetched",
        reads.revoked,
        ("revoked-read",),
    ),
    Rule(
        "Nothing is given of a partition that is paused",
        "client.md#a-consumer-in-a-group",
        "what was fetched of it is kept until it is resumed",
        reads.paused,
        ("paused-read",),
    ),
    Rule(
        "Readers of committed records get nothing of a transaction that is open or aborted",
        "reading.md#committed-records-alone",
        "the last stable offset; aborted transactions' index, told with each fetch",
        transactions.dirty_reads,
        ("aborted-read", "uncommitted-read"),
    ),
    Rule(
        "A transaction counts on every partition or on none",
        "producing.md#transactions",
        "the outcome is stored before the first marker, and carried out after any crash",
        transactions.partly_visible,
        ("partial-transaction",),
    ),
    Rule(
        "Who reads past a committed transaction on a partition was given all of it",
        "producing.md#transactions",
        "the last stable offset moves when the marker is written",
        transactions.intermediate_reads,
        ("intermediate-read",),
    ),
    Rule(
        "A transaction that nobody ends is aborted when its time is over",
        "transactions-on-the-wire.md",
        "the coordinator's upkeep; what was decided is carried out at the next start, what hangs is aborted",
        transactions.stuck,
        ("stuck-transaction",),
    ),
    Rule(
        "The last stable offset is the first offset of the oldest open transaction",
        "reading.md#committed-records-alone",
        "`ProducerState` keeps what is open, across restarts too",
        transactions.stable_offsets,
        ("stable-passes-open", "stable-stands-still"),
    ),
    Rule(
        "Transactions of one id come one after another, and read nothing that depends on them",
        "transactions-on-the-wire.md",
        "epochs fence; EndTxn is answered when the markers are written",
        transactions.cycles,
        ("G0", "G1c"),
    ),
    Rule(
        "Who takes a transactional id over gets an epoch that nobody had before, whatever is lost with the power",
        "transactions-on-the-wire.md",
        "`TransactionStates.store`: an epoch is on the disk before it is told, with fsync=interval, too",
        fencing.owned_again,
        ("owner-forgotten",),
    ),
    Rule(
        "Who has a transactional id is fenced by the next one who takes it, or for its age, and by nobody else",
        "transactions-on-the-wire.md",
        "InitProducerId that is sent again is answered as the first was (KIP-360)",
        fencing.fenced_by_nobody,
        ("fenced-by-nobody",),
    ),
    Rule(
        "Consume, transform, produce: each record is consumed into one committed result",
        "client.md#a-consumer-in-a-group",
        "offsets are part of the transaction, and of the generation that sends them",
        transactions.made_once,
        ("made-twice",),
    ),
    Rule(
        "Consume, transform, produce: what the group's offset has passed has its result",
        "client.md#a-consumer-in-a-group",
        "offsets are part of the transaction; the loop goes back when that is aborted",
        progress.made_of_all,
        ("made-nothing",),
    ),
    Rule(
        "Each record is given to somebody of a group, and soon when nothing is wrong",
        "client.md#a-consumer-in-a-group",
        "automatic commits take what was given; coordinators and leaders are looked for anew",
        progress.left_behind,
        ("group-unseen", "group-stalled"),
    ),
    Rule(
        "Each partition that a group reads is a member's, soon after others died or left",
        "groups-on-the-wire.md#staying",
        "sessions' timers; every join and every leave begins a rebalance",
        progress.unowned,
        ("unowned",),
    ),
    Rule(
        "A group's offset is what was committed last, after kill -9 and a power failure too",
        "broker.md#what-an-acknowledgement-means",
        "`CoordinatorLog`: stored before it is adopted",
        groups.committed_offsets,
        ("group-offset-lost", "group-offset-back", "group-offset-unknown", "aborted-offset"),
    ),
    Rule(
        "What a group had committed of a topic is not told of the next topic of that name",
        "storage.md#what-is-on-the-disk-when",
        "`OffsetCommits.forget_topics`, before a deletion is answered",
        groups.of_deleted_topics,
        ("old-topic-offset",),
    ),
    Rule(
        "A member begins where its group stands",
        "client.md#a-consumer-in-a-group",
        "offsets are fetched after the assignment, and wait for pending transactions",
        groups.where_members_begin,
        ("group-offset-back", "group-skip"),
    ),
    Rule(
        "A partition has one owner in a generation, and one at all when nothing keeps members from hearing it",
        "groups-on-the-wire.md#staying",
        "the barrier of a rebalance; members that revoke before the next owner is told",
        groups.shared_partitions,
        ("two-owners",),
    ),
    Rule(
        "A coordinator assigns each partition once",
        "groups-on-the-wire.md",
        "assignors' tests against Kafka's; members of KIP-848 release first",
        groups.described,
        ("assigned-twice",),
    ),
    Rule(
        "A member holds what its coordinator says that it has",
        "groups-on-the-wire.md#staying",
        "a member adopts what SyncGroup or ConsumerGroupHeartbeat gave it, and lets go of the rest",
        groups.held_as_assigned,
        ("assignment-ignored",),
    ),
    Rule(
        "A member that polls keeps what it has, when nothing is wrong",
        "groups-on-the-wire.md#staying",
        "heartbeats, each of which begins the session anew",
        staying.lost,
        ("lost-for-nothing",),
    ),
    Rule(
        "Automatic commits take what was given before partitions go and at the end: nobody is given it again",
        "client.md#a-consumer-in-a-group",
        "revocation and `close` commit before the listener is told",
        staying.given_again,
        ("given-again",),
    ),
    Rule(
        "A member that commits where it stands commits what it was given, and nothing that it was not",
        "client.md#a-consumer-in-a-group",
        "`GivenRecords.positions` ends before what is unread or gathered, and what goes is dropped after the listener",
        staying.committed_unread,
        ("group-skip",),
    ),
    Rule(
        "What a member had is another's soon, when nothing is wrong and anybody is there",
        "groups-on-the-wire.md#staying",
        "every leave begins a rebalance; a static member that comes back has what it had",
        staying.taken_over,
        ("unowned",),
    ),
    Rule(
        "A member commits nothing for a partition that was given to another",
        "client.md#a-consumer-in-a-group",
        "generations and member epochs are checked; a commit that waited is refused by the client",
        groups.fenced_commits,
        ("fenced-commit",),
    ),
    Rule(
        "A commit that waited while its partition was given up is not sent in a later generation",
        "client.md#a-consumer-in-a-group",
        "`PendingCommit` remembers the membership and the assignment that it was asked for under",
        groups.committed_when_gone,
        ("fenced-commit",),
    ),
    Rule(
        "Log start, last stable offset and high watermark never go back",
        "storage.md#what-is-on-the-disk-when",
        "the log start is on the disk before records are deleted; nothing is readable before it is synced",
        logs.bounds_go_back,
        ("log-start-back", "stable-back", "high-watermark-back"),
    ),
    Rule(
        "With fsync=batch, what a reader sees is on the disk",
        "broker.md#what-an-acknowledgement-means",
        "the high watermark follows the sync",
        logs.beyond_the_disk,
        ("high-watermark-past-end", "high-watermark-unsynced", "log-start-past-end", "log-start-past-stable"),
    ),
    Rule(
        "What was read once is there in the end",
        "broker.md#what-an-acknowledgement-means",
        "the high watermark follows the sync",
        logs.vanished,
        ("vanished-read",),
    ),
    Rule(
        "Retention and DeleteRecords remove what they were asked to, and no more",
        "storage.md#configurations-of-a-topic",
        "whole closed segments go; the log start is stored first",
        logs.removed_too_much,
        ("removed-too-much",),
    ),
    Rule(
        "A partition that was created is there",
        "storage.md#what-is-on-the-disk-when",
        "the list of topics is on the disk before the answer",
        logs.partitions,
        ("partition-lost",),
    ),
    Rule(
        "A topic is set to what it was set to last, after a crash too",
        "storage.md#what-is-on-the-disk-when",
        "the list of topics is on the disk before the answer",
        logs.configurations,
        ("config-lost",),
    ),
    Rule(
        "What was deleted is not read again, nor what a deleted topic had under its name",
        "storage.md#what-is-on-the-disk-when",
        "the log start on the disk; topic ids",
        logs.removed_and_read,
        ("deleted-records-read", "old-topic-read"),
    ),
    Rule(
        "The end of a partition is behind all that was acknowledged",
        "reading.md#where-to-start-and-where-to-stop",
        "acknowledged is what the high watermark has passed",
        logs.ends,
        ("stale-end",),
    ),
    Rule(
        "A record is found by its offset and by its time",
        "reading.md#where-to-start-and-where-to-stop",
        "sparse indexes, which are checked against the batch that they point to",
        logs.looked_up,
        ("wrong-lookup",),
    ),
    Rule(
        "For readers of committed records a partition ends before what is open",
        "reading.md#where-to-start-and-where-to-stop",
        "ListOffsets answers with the last stable offset",
        logs.open_ends,
        ("end-passes-open",),
    ),
    Rule(
        "Compaction keeps each key's last record; a tombstone stays for delete.retention.ms, its effect for ever",
        "storage.md#configurations-of-a-topic",
        "`OffsetMap`; a key's records are dropped before its tombstone",
        compaction.last_values,
        ("compaction-lost-last-value", "compaction-brought-back", "tombstone-removed-early"),
    ),
    Rule(
        "Nothing that was removed comes back",
        "storage.md#after-a-crash",
        "`swap_recovery`: the directory is synced before, between and after the renames",
        compaction.brought_back,
        ("brought-back",),
    ),
    Rule(
        "Offsets of a log follow each other, and its leader epochs never go back",
        "storage.md#what-is-on-the-disk-when",
        "offsets are assigned under the log's lock; an epoch is on the disk before anything is appended in it",
        log_audits.in_order,
        ("offsets-out-of-order", "leader-epoch-back"),
    ),
    Rule(
        "Of a producer's epoch batches stand in the order of their numbers, and an older epoch never comes back",
        "producing.md#once-and-in-order",
        "`ProducerState.check`; the coordinator fences before it aborts",
        log_audits.sequences,
        ("fenced-write", "sequence-out-of-order"),
    ),
    Rule(
        "Who reads committed records is told up to where, and what in it was aborted, as the batches say it",
        "reading.md#committed-records-alone",
        "`ProducerState`; the transaction index of each segment",
        log_audits.transactions,
        ("stable-passes-open", "stable-stands-still", "abort-untold", "log-start-past-stable"),
    ),
    Rule(
        "A batch that compaction empties is of its transaction still",
        "storage.md#configurations-of-a-topic",
        "`rewrite` keeps producer, numbers and attributes",
        log_audits.attributes,
        ("transaction-forgotten",),
    ),
    Rule(
        "A partition knows of its producers what its batches say",
        "producing.md#once-and-in-order",
        "`ProducerState` follows each append, and is made anew of snapshots and batches at a start",
        log_audits.producers,
        ("producer-forgotten",),
    ),
    Rule(
        "A leader epoch ends where the next one begins",
        "storage.md#what-is-on-the-disk-when",
        "`LeaderEpochs`, written before anything is appended in a new one",
        log_audits.epochs,
        ("epoch-end-wrong",),
    ),
    Rule(
        "What is on the disk is whole, and each index says what the batches say",
        "storage.md#what-is-on-the-disk-when",
        "indexes are written with what they are of, and made anew where they may be wrong",
        log_audits.files,
        ("broken-files",),
    ),
    Rule(
        "Who does not lead or coordinate refuses, as does who does towards older epochs, generations and strangers",
        "groups-on-the-wire.md#errors",
        "`Leadership.check_leader`, `Coordinated.respond`, `Transaction.check_producer`, `check_commit` of groups",
        refusals.not_refused,
        ("not-refused",),
    ),
    Rule(
        "Groups and transactional ids stand where they stood, after a restart and whatever is done by the clock",
        "broker.md#what-an-acknowledgement-means",
        "`CoordinatorLog`: stored before it is adopted",
        refusals.remembered,
        ("group-offset-lost", "group-offset-back", "owner-forgotten", "producer-forgotten"),
    ),
    Rule(
        "An ACL that was made is there, and one that was deleted is not, after kill -9 and a power failure too",
        "broker.md#who-may-do-what",
        "`AclFile`: a request's change is one line, synced before it is adopted and answered",
        guards.acls,
        ("acl-forgotten", "acl-back"),
    ),
    Rule(
        "Who may do something can, nobody else can, and nobody is told of what they may not describe",
        "broker.md#who-may-do-what",
        "`rules.py`: a row for each API, asked with each request; `AclIndex` decides, a DENY before every ALLOW",
        guards.decisions,
        ("wrongly-allowed", "wrongly-refused"),
    ),
    Rule(
        "A user who was set comes in, with the last secret alone, and one who was deleted does not",
        "broker.md#security",
        "`StoredDocument`: stored before it is adopted",
        guards.users,
        ("user-forgotten", "user-let-in"),
    ),
    Rule(
        "A call returns or raises within its time",
        "client.md",
        "every wait of the core has a deadline",
        liveness.unanswered,
        ("unanswered",),
    ),
    Rule(
        "A broker that hangs keeps its own records waiting, and no others",
        "producing.md#once-and-in-order",
        "requests of each leader go their own way",
        liveness.waits_for_another,
        ("waits-for-another-broker",),
    ),
    Rule(
        "Calls succeed where nothing is wrong",
        "client.md#what-goes-wrong-and-what-then",
        "what is retriable is tried again, and only that is final which is for good",
        liveness.failed_for_nothing,
        ("failed-for-nothing",),
    ),
    Rule(
        "Automatic commits succeed where nothing is wrong and the group is not between two generations",
        "client.md#a-consumer-in-a-group",
        "commits of a consumer come one after the other, and each makes room for the next",
        liveness.not_committed_for_nothing,
        ("not-committed",),
    ),
    Rule(
        "When the last fault is over, every partition is readable",
        "storage.md#after-a-crash",
        "recovery cuts off what is not whole, and opens the rest",
        liveness.unavailable,
        ("unavailable",),
    ),
    Rule(
        "Calls raise tagwire's errors, and none that means a defect",
        "client.md",
        "errors are tables: what is retried, what is raised",
        errors.unexpected,
        ("unexpected-exception", "unexpected-error"),
    ),
    Rule(
        "No exception ends in a log or in a task that nobody awaits",
        "client.md",
        "tasks have owners",
        errors.logged,
        ("unexpected-log",),
    ),
    Rule(
        "What is closed gives back its tasks, threads, descriptors and memory",
        "broker.md#bounds",
        "bounds; `CoreOwner` and `AsyncCoreOwner`",
        resources.leaks,
        ("leaked-tasks", "leaked-threads", "leaked-descriptors", "leaked-memory"),
    ),
    Rule(
        "Each row of an exactly-once query stands once, whatever dies in between",
        "exactly-once.md",
        "a decision in a transaction is the commit point",
        sinks.rows,
        ("sink-row-lost", "sink-row-twice"),
    ),
    Rule(
        "A micro-batch is decided while all its transactions are open, with time left to end them",
        "exactly-once.md",
        "each transaction is looked at between the decision and its commit",
        sinks.decided_in_vain,
        ("sink-row-lost",),
    ),
    Rule(
        "A micro-batch that takes more than half of the time of its transactions is not committed",
        "exactly-once.md",
        "the driver looks how long ago it prepared it, between the decision and its commit",
        sinks.decided_late,
        ("decided-late",),
    ),
    Rule(
        "A decision that is committed late is aborted before the transactions that it lists are",
        "exactly-once.md",
        "its own transaction has a quarter of their time",
        sinks.committed_late,
        ("decided-late",),
    ),
    Rule(
        "A query whose driver is alone gets on when nothing is wrong",
        "exactly-once.md",
        "attempts have transactional ids of their own",
        sinks.stalled,
        ("sink-stalled",),
    ),
    Rule(
        "A quota that was acknowledged is there, after kill -9 and a power failure too",
        "broker.md#quotas",
        "`StoredDocument`: on the disk before it is adopted and answered",
        quotas.kept,
        ("quota-lost",),
    ),
    Rule(
        "A client takes no more than its quota allows, but for about ten seconds of it at once",
        "broker.md#quotas",
        "`Throttles` measure each client, and mute its connection for as long as it was told",
        quotas.exceeded,
        ("quota-exceeded",),
    ),
    Rule(
        "A client takes what its quota allows, and goes on soon when that is lifted; others are not slow",
        "broker.md#quotas",
        "a muted connection is read on when its time is over; a client that is to wait sends nothing meanwhile",
        quotas.goes_on,
        ("held-by-quota",),
    ),
    Rule(
        "Nobody is throttled who has no quota",
        "broker.md#quotas",
        "`ClientQuotas.of_client` finds the quota that counts, and each user and client id has a meter of its own",
        quotas.throttled_for_nothing,
        ("throttled-for-nothing",),
    ),
)


def judge(history: History, bounds: Bounds | None = None, late: Iterable[Late] = ()) -> list[Anomaly]:
    """All anomalies of a history, in the order of the rules; `late` is what its network tells of itself."""
    facts = Facts(history, bounds, late)
    return [found for rule in RULES for found in rule.find(facts)]
