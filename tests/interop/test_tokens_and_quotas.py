"""Java, librdkafka and franz-go come in to our broker by a token, authenticate again, and see that they are throttled.

Each program's arguments are: where the broker listens, a topic, and for how many milliseconds it produces: three large
records, then a small one every tenth of a second. It prints the longest time for which it was throttled, in
milliseconds, and how many records it sent.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tagwire import messages
from tagwire.broker import Broker, Listener, UnsecuredTokens
from tagwire.client import Client

from .conftest import not_run_without
from .group_members import HERE, SECONDS, franz_go, java

JACKSON = ("com.fasterxml.jackson.core", "jackson-databind", "2.21.2")
"""By which Kafka's client makes tokens."""

PROGRAMS: dict[str, Callable[[], tuple[str, ...]]] = {
    "java": lambda: java("Tokens", JACKSON),
    "librdkafka": lambda: (sys.executable, str(HERE / "members" / "tokens_librdkafka.py")),
    "franz-go": lambda: franz_go("tokens"),
}
SESSION_S = 5.0
FOR_MS = 7000
RATE = 14_500.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """It has a door without authentication, by which the quota is set, and one for tokens."""
    with Broker(
        tmp_path_factory.mktemp("tokens") / "data",
        listeners=[Listener(), Listener(sasl=("OAUTHBEARER",))],
        oauthbearer_validator=UnsecuredTokens(),
        max_reauth_s=SESSION_S,
    ) as running:
        kind = messages.AlterClientQuotasRequest
        entry = kind.EntryData(
            entity=[
                kind.EntityData(entity_type="user", entity_name="alice"),
                kind.EntityData(entity_type="client-id", entity_name=None),
            ],
            ops=[kind.OpData(key="producer_byte_rate", value=RATE)],
        )
        with Client(running.bootstrap) as client:
            assert client.request(kind(entries=[entry])).entries[0].error_code == 0
        yield running


@pytest.mark.parametrize("client", PROGRAMS)
def test_it_stays_by_authenticating_again_and_sees_its_throttle_time(
    broker: Broker, client: str, tmp_path: Path
) -> None:
    with not_run_without():
        command = PROGRAMS[client]()
    log = tmp_path / "log"
    with log.open("w") as errors:
        done = subprocess.run(
            [*command, broker.addresses[1], client, str(FOR_MS)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            timeout=SECONDS,
        )
    assert done.returncode == 0, log.read_text()[-1500:]
    throttled_ms, sent = map(int, done.stdout.split())
    # 150,000 bytes where 145,000 were free.
    assert 200 < throttled_ms < 2000
    assert sent > 20
    with Client(broker.bootstrap) as reader:
        assert reader.list_offsets({(client, 0): -1}) == {(client, 0): sent}
    produced = broker.requests.select("Produce", client_id=client)
    assert {entry.user for entry in produced} == {"alice"}
    (connection,) = {entry.address for entry in produced}
    tokens = Counter(entry.address for entry in broker.requests.select("SaslAuthenticate", client_id=client))
    assert tokens[connection] >= 2, tokens
