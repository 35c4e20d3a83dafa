"""What a broker can be told when it is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from tagwire.broker.topics import MAX_PARTITIONS, Fsync
from tagwire.errors import ConfigError
from tagwire.rpc.frames import DEFAULT_MAX_FRAME_BYTES

Unsupported = Literal["close", "empty"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a broker is to run.

    Attributes:
        data_dir: where topics are kept; None keeps them in a temporary directory, until the broker stops.
        host: the address to listen on; IPv4 where a name has both.
        port: the port to listen on; 0 takes a free one.
        fsync: what an acknowledgement of acks=1 or all promises. "batch": the records are on the disk, one fsync serves
            every batch that waits; what a reader sees is on the disk too. "interval": they are with the operating
            system, and on the disk within a second; a crash of the machine can lose that second. "never": they are
            with the operating system, which decides; a crash of the machine can lose more. A crash of the broker
            alone (kill -9) loses nothing in any of them.
        num_partitions: how many partitions a topic gets that is created without saying.
        auto_create_topics: whether asking for the metadata of a missing topic creates it, when the client agrees.
        unsupported: what answers a request that is not served: "close" closes the connection, as Kafka does; "empty"
            sends a response of nothing but its correlation id.
        max_frame_bytes: the largest request; a larger one closes the connection before it is read.
    """

    data_dir: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0
    fsync: Fsync = "batch"
    num_partitions: int = 1
    auto_create_topics: bool = True
    unsupported: Unsupported = "close"
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES

    def __post_init__(self) -> None:
        self._check("fsync", self.fsync in get_args(Fsync), " or ".join(get_args(Fsync)))
        self._check("unsupported", self.unsupported in get_args(Unsupported), " or ".join(get_args(Unsupported)))
        self._check("port", 0 <= self.port <= 65535, "0 to 65535")
        self._check("num_partitions", 1 <= self.num_partitions <= MAX_PARTITIONS, f"1 to {MAX_PARTITIONS}")
        self._check("max_frame_bytes", self.max_frame_bytes >= 1024, "1024 or more")

    def _check(self, name: str, holds: bool, allowed: str) -> None:
        if not holds:
            raise ConfigError(f"{name}={getattr(self, name)!r} is not {allowed}")
