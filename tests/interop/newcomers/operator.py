"""The operator's way: what is on a cluster, who breaks on the next release, and what is named and is not there."""

from __future__ import annotations

import re

from tagwire.client import Admin, NewTopic, Producer

from .way import Way

LINE = (
    '[2026-11-01 12:{minute:02}:{second:02},000] DEBUG Completed request:{{"requestHeader":{{"requestApiKey":{key},'
    '"requestApiVersion":{version},"clientId":"{client}","requestApiKeyName":"{api}"}},'
    '"connection":"127.0.0.1:9092-127.0.0.1:{port}-0","securityProtocol":"PLAINTEXT","principal":"User:shop",'
    '"listener":"PLAINTEXT","clientInformation":{{"softwareName":"unknown","softwareVersion":"unknown"}}}} '
    "(kafka.request.logger)\n"
)
LOG = "".join(
    LINE.format(
        minute=number // 60,
        second=number % 60,
        port=40000 + number % 9,
        client="telegraf" if number % 9 == 0 else f"orders-{number % 9}",
        **(
            {"key": 11, "version": 1, "api": "JOIN_GROUP"}
            if number % 9 == 0
            else {"key": 3, "version": 9, "api": "METADATA"}
        ),
    )
    for number in range(250)
)
SERVER_LOG = "[2026-11-01 12:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"

OWN_BROKER = """
tagwire broker --data data --listen 127.0.0.1:0 > broker.out 2>&1 &
broker=$!
for ((i = 0; i < 600; i++)); do grep -q '127.0.0.1:[1-9]' broker.out && break; sleep 0.1; done
address=$(grep -o '127.0.0.1:[1-9][0-9]*' broker.out | head -1)
echo one | tagwire produce own --bootstrap "$address" && tagwire topics --bootstrap "$address"
done=$?
kill $broker
wait
exit $done
"""


def walk(way: Way) -> None:
    """All of it, in order."""
    with Admin(way.broker.bootstrap) as admin:
        admin.create_topics([NewTopic("flights", num_partitions=2)])
        with Producer(way.broker.bootstrap) as producer:
            for number in range(10):
                producer.send("flights", b"EWR to ORD", key=b"UA-%d" % number)
        admin.alter_group_offsets("billing", {"flights": "earliest"})
    bootstrap = f"--bootstrap {way.broker.bootstrap}"
    way.writes("kafka-request.log", LOG)
    way.writes("server.log", SERVER_LOG)

    # The commands alone.
    way.installs("pip install 'tagwire[cli]'")
    found = way.types(f"tagwire doctor {way.broker.bootstrap}", "extras installed: cli;", "answered in", "all is well")
    assert "audit (lacks msgspec, pyarrow)" in found
    way.types("tagwire --help", "audit", "doctor", "lag")
    way.types(f"tagwire topics {bootstrap}", "flights", "2  0-")
    way.types(f"tagwire lag {bootstrap}", "billing  flights          1       0    5    5")
    way.types(f"tagwire groups describe billing {bootstrap}", "flights")
    way.types(f"tagwire configs {bootstrap}", "broker/1")
    way.types(f"tagwire versions {bootstrap}", "everything tagwire needs is there")
    way.types(f"echo 'EWR to SFO' | tagwire produce flights {bootstrap}", "1 record to flights")
    way.follows("tagwire spec diff 3.9 4.3", code=1)
    way.follows(
        "tagwire decode --frame --annotate --hex 0000000d0012000000000007000378797a",
        "header.client_id            string  'xyz'",
    )
    way.writes("own_broker.sh", OWN_BROKER)
    way.types("bash own_broker.sh", "1 record to own")

    # What is named, and is not there; what is misspelt; what is not installed.
    for command, says in (
        ("tagwire audti kafka-request.log", "No such command 'audti'. Did you mean 'audit'?"),
        ("tagwire topics descibe flights", "No such command 'descibe'. Did you mean 'describe'?"),
        ("tagwire topics --bootstrp kafka-1:9092", "No such option: --bootstrp (Possible options: --bootstrap)"),
        (f"tagwire topics -X secruity.protocol=SSL {bootstrap}", "security.protocol is one"),
        (f"tagwire topics describe flihgts {bootstrap}", "topic 'flihgts'. Did you mean 'flights'?"),
        (f"tagwire consume flihgts {bootstrap}", "topic 'flihgts'. Did you mean 'flights'?"),
        (f"tagwire consume flights {bootstrap}", "pyarrow is not installed: pip install 'tagwire[arrow]'"),
        (f"tagwire lag --group biling {bootstrap}", "no group is called 'biling'"),
        ("tagwire lag --bootstrap 127.0.0.1:1", "no broker can be reached: 127.0.0.1:1 (Connection refused)"),
        ("tagwire audit kafka-request.log", "msgspec is not installed: pip install 'tagwire[audit]'"),
        ("tagwire land flights --to lake", "pyspark is not installed: pip install 'tagwire[spark]'"),
        ("tagwire lag --files .", "pyspark is not installed: pip install 'tagwire[spark]'"),
        ("tagwire lag --spark", "pyspark is not installed: pip install 'tagwire[spark]'"),
    ):
        way.types(command, says, code=2, lines=1)

    # From "I run 3.x" to an answer.
    way.installs("pip install 'tagwire[audit]'")
    way.types(f"tagwire consume flights --from earliest --limit 3 {bootstrap}", "EWR to ORD", lines=6)
    whole = way.types(
        "tagwire audit kafka-request.log --target 4.0.0,4.3 --out audit", "9 clients, 250 requests;", code=1
    )
    assert re.search(
        r"client id 'telegraf' as User:shop, from 127.0.0.1: breaks on 4.0.0\n +JoinGroup v1: 2-9 are served", whole
    )
    assert (way.folder / "audit" / "report.html").stat().st_size > 10_000
    for command in (
        "cat kafka-request.log | tagwire audit - --target 4.0.0",
        "cat kafka-request.log | tagwire audit /dev/stdin --target 4.0.0",
        "tagwire audit <(cat kafka-request.log) --target 4.0.0",
        "mkdir rotated; gzip -c kafka-request.log > rotated/kafka-request.log.gz; tagwire audit rotated --target 4.0.0",
    ):
        way.types(command, "9 clients, 250 requests;", code=1)
    way.types("tagwire capture show kafka-request.log --client telegraf", "JoinGroup v1")
    way.types("tagwire audit server.log", "no request in it", "--set kafka.request.logger=DEBUG", code=2, lines=1)
    way.types("tagwire audit nosuch.log", "nosuch.log: no such file", code=2, lines=1)
    way.types("tagwire audit kafka-request.log --target 9.9", "release='9.9'", "nearest: 4.4.0", code=2, lines=1)
    way.types("tagwire audit --spark kafka-request.log", "pip install 'tagwire[spark]'", code=2, lines=1)
