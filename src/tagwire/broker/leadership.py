"""Who leads a partition, in which epoch, and which nodes hold it."""

from __future__ import annotations

from dataclasses import dataclass

from tagwire.errors import Error, KafkaError

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Leadership:
    """What every node knows of a partition, as Kafka's PartitionRegistration; another one takes its place.

    Attributes:
        leader: the node that leads it, -1 while none does.
        epoch: rises whenever the leader changes.
        replicas: the nodes that hold it, the preferred leader first.
        isr: those of them that may lead it.
    """

    leader: int
    epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    def check_leader(self, node_id: int, epoch: int = -1) -> None:
        """Refuse what only the leader does; `epoch` is the one that the client knows, -1 if it does not say.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER; as `check_epoch`.
        """
        if epoch != -1 and node_id in self.replicas:
            self.check_epoch(epoch)
        if node_id != self.leader:
            raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER, f"node {node_id} does not lead it")

    def check_replica(self, node_id: int, epoch: int) -> None:
        """Refuse what any replica does; as `check_leader`."""
        if node_id not in self.replicas:
            raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER, f"node {node_id} does not hold it")
        self.check_epoch(epoch)

    def check_epoch(self, epoch: int) -> None:
        """Refuse a client that knows another leader epoch; -1 stands for one that does not say.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH for an older one, UNKNOWN_LEADER_EPOCH for a newer.
        """
        if epoch not in (-1, self.epoch):
            raise KafkaError(Error.FENCED_LEADER_EPOCH if epoch < self.epoch else Error.UNKNOWN_LEADER_EPOCH)
