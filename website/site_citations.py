"""What a docstring cites, as links: pages of this site, KIPs and RFCs, specifications, classes of other projects."""

from __future__ import annotations

import re
from typing import Final

KIPS: Final = "https://cwiki.apache.org/confluence/dosearchsite.action?cql=space%3DKAFKA+and+title~%22{}%22"
_KAFKA: Final = "https://github.com/apache/kafka/blob/1eb7644349cb07139d6a3c1ad1986979647cac99/"
_SPARK: Final = "https://github.com/apache/spark/blob/v4.0.0/"
_CONNECTOR: Final = "connector/kafka-0-10-sql/src/main/scala/org/apache/spark/sql/kafka010/"

_SEARCH: Final = "https://github.com/search?type=code&q=repo%3A{}+symbol%3A{}"
_REPOSITORIES: Final = {
    "Kafka": "apache%2Fkafka",
    "Spark": "apache%2Fspark",
    "Confluent": "confluentinc%2Fschema-registry",
}
"""Where a class is found that is not listed below."""

DOCUMENTS: Final = {
    "the Avro specification": "https://avro.apache.org/docs/1.11.1/specification/",
    "Confluent's REST API": "https://docs.confluent.io/platform/current/schema-registry/develop/api.html",
    "Delta's protocol": "https://github.com/delta-io/delta/blob/master/PROTOCOL.md",
    "Iceberg's table specification": "https://iceberg.apache.org/spec/",
    "JSON Schema's core specifications": "https://json-schema.org/specification",
    "Protobuf's encoding": "https://protobuf.dev/programming-guides/encoding/",
    "Protobuf's language guide": "https://protobuf.dev/programming-guides/proto3/",
    "mallopt(3)": "https://man7.org/linux/man-pages/man3/mallopt.3.html",
    "preadv2(2)": "https://man7.org/linux/man-pages/man2/preadv2.2.html",
}
"""Specifications and manual pages; what follows a name of theirs is a version, or a section in quotes."""

# Of a commit, since classes are moved between releases.
CLASSES: Final = {
    "ApiKeys": f"{_KAFKA}clients/src/main/java/org/apache/kafka/common/protocol/ApiKeys.java",
    "FetchSession.scala": f"{_KAFKA}core/src/main/scala/kafka/server/FetchSession.scala",
    "GroupCoordinator": f"{_KAFKA}core/src/main/scala/kafka/coordinator/group/GroupCoordinator.scala",
    "GroupMetadataValue": f"{_KAFKA}group-coordinator/src/main/resources/common/message/GroupMetadataValue.json",
    "KafkaApis": f"{_KAFKA}core/src/main/scala/kafka/server/KafkaApis.scala",
    "KafkaMicroBatchStream": f"{_SPARK}{_CONNECTOR}KafkaMicroBatchStream.scala",
    "KafkaOffsetRangeCalculator": f"{_SPARK}{_CONNECTOR}KafkaOffsetRangeCalculator.scala",
    "KafkaRecordToRowConverter": f"{_SPARK}{_CONNECTOR}KafkaRecordToRowConverter.scala",
    "KafkaSourceOffset": f"{_SPARK}{_CONNECTOR}KafkaSourceOffset.scala",
    "KafkaSourceProvider": f"{_SPARK}{_CONNECTOR}KafkaSourceProvider.scala",
    "ListOffsetsRequest": f"{_KAFKA}clients/src/main/java/org/apache/kafka/common/requests/ListOffsetsRequest.java",
    "LogValidator": f"{_KAFKA}storage/src/main/java/org/apache/kafka/storage/internals/log/LogValidator.java",
    "OffsetSpec": f"{_KAFKA}clients/src/main/java/org/apache/kafka/clients/admin/OffsetSpec.java",
    "OffsetCommitValue": f"{_KAFKA}group-coordinator/src/main/resources/common/message/OffsetCommitValue.json",
    "OffsetMetadataManager": (
        f"{_KAFKA}group-coordinator/src/main/java/org/apache/kafka/coordinator/group/OffsetMetadataManager.java"
    ),
    "ProducerStateManager": (
        f"{_KAFKA}storage/src/main/java/org/apache/kafka/storage/internals/log/ProducerStateManager.java"
    ),
    "ReplicaManager": f"{_KAFKA}core/src/main/scala/kafka/server/ReplicaManager.scala",
    "RequestChannel": f"{_KAFKA}core/src/main/scala/kafka/network/RequestChannel.scala",
    "RequestConvertToJson": f"{_KAFKA}server/src/main/java/org/apache/kafka/network/RequestConvertToJson.java",
    "ServerTopicConfigSynonyms": (
        f"{_KAFKA}server-common/src/main/java/org/apache/kafka/server/config/ServerTopicConfigSynonyms.java"
    ),
    "TransactionLogValue": (
        f"{_KAFKA}transaction-coordinator/src/main/resources/common/message/TransactionLogValue.json"
    ),
    "TransactionMetadata": f"{_KAFKA}core/src/main/scala/kafka/coordinator/transaction/TransactionMetadata.scala",
    "TransactionStateManager": (
        f"{_KAFKA}core/src/main/scala/kafka/coordinator/transaction/TransactionStateManager.scala"
    ),
    "pyspark.sql.datasource": f"{_SPARK}python/pyspark/sql/datasource.py",
    "pyspark.sql.streaming.datasource": f"{_SPARK}python/pyspark/sql/streaming/datasource.py",
    "pyspark.sql.worker.lookup_data_sources": f"{_SPARK}python/pyspark/sql/worker/lookup_data_sources.py",
    "pyspark.worker": f"{_SPARK}python/pyspark/worker.py",
}

_NAMES: Final = "|".join(re.escape(name) for name in sorted(CLASSES, key=len, reverse=True))
_CITED: Final = re.compile(
    rf"docs/(?P<page>[\w-]+)\.md(?P<anchor>#[\w-]+)?|(?P<kip>KIP-\d+)|RFC (?P<rfc>\d+)"
    rf'|(?P<document>{"|".join(map(re.escape, DOCUMENTS))})(?P<section>(?:, (?:[\d.]*\d|"[^"]+"))*)'
    r"|(?P<owner>Kafka|Spark|Confluent)'s (?P<owned>(?!KIP-)[A-Z]\w+(?:, (?!KIP-)[A-Z]\w+)*)"
    rf"|(?P<name>(?<![\w.])(?:{_NAMES})(?!\w))"
)
_SOURCE: Final = re.compile(r"\bSource: (.*?)(?=\n\n|\Z)", re.DOTALL)


def linked(text: str, up: str = "../") -> str:
    """Markdown in which every citation of `text` is a link. `up` leads from the page to the site's root."""

    def link(found: re.Match[str]) -> str:
        if found["page"]:
            return f"[{found['page']}{found['anchor'] or ''}]({up}{found['page']}.md{found['anchor'] or ''})"
        if found["kip"]:
            return f"[{found['kip']}]({KIPS.format(found['kip'])})"
        if found["rfc"]:
            return f"[{found[0]}](https://www.rfc-editor.org/rfc/rfc{found['rfc']})"
        if found["document"]:
            return f"[{found[0]}]({DOCUMENTS[found['document']]})"
        if found["owner"]:
            owner = found["owner"]
            named = (f"[{name}]({_class(name, owner)})" for name in found["owned"].split(", "))
            return f"{owner}'s {', '.join(named)}"
        return f"[{found['name']}]({CLASSES[found['name']]})"

    return _CITED.sub(link, text)


def sources(docstring: str) -> list[str]:
    """What a docstring names as its source, each as it stands there."""
    return [" ".join(found.split()) for found in _SOURCE.findall(docstring)]


def leads_somewhere(source: str) -> bool:
    """Whether each of the things that a source names, between commas and semicolons, is or has a link."""
    named = re.sub(r"\[[^\]]*\]\(", "[](", linked(source.split(". ")[0]))
    return all("](" in part for part in re.split(r"[,;] ", named))


def _class(name: str, owner: str) -> str:
    return CLASSES.get(name) or _SEARCH.format(_REPOSITORIES[owner], name)
