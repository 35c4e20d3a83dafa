"""Where the last release before 4.0 differs from the catalog, which says what later releases made of it."""

from __future__ import annotations

from typing import Final

MESSAGES: Final = {
    "ListClientMetricsResourcesRequest": "ListConfigResourcesRequest",
    "ListClientMetricsResourcesResponse": "ListConfigResourcesResponse",
}
"""Messages that were renamed: the old name -> the catalog's."""

FIELDS: Final = {
    "ListConfigResourcesResponse": {"configResources": "clientMetricsResources", "resourceName": "name"},
    "TxnOffsetCommitRequest": {"generationIdOrMemberEpoch": "generationId"},
    "VoteRequest": {
        "replicaEpoch": "candidateEpoch",
        "replicaId": "candidateId",
        "replicaDirectoryId": "candidateDirectoryId",
    },
}
"""Fields that were renamed, as the JSON form spells them: message -> the catalog's name -> the old name."""

ADDED: Final = {
    "ConsumerGroupCurrentMemberAssignmentValue": {"assignmentEpochs"},
    "ConsumerGroupMetadataValue": {"metadataHash"},
    "ConsumerGroupTargetAssignmentMetadataValue": {"assignmentTimestamp"},
    "OffsetCommitValue": {"topicId"},
    "RemoteLogSegmentMetadataRecord": {"txnIndexEmpty"},
    "RemoteLogSegmentMetadataSnapshotRecord": {"txnIndexEmpty"},
    "TransactionLogValue": {"previousProducerId", "nextProducerId", "nextProducerEpoch", "clientTransactionVersion"},
}
"""Tagged fields that were added to versions that existed, as the JSON form spells them."""

REMADE: Final = {("ReadShareGroupStateSummaryResponse", 0), ("ShareGroupMetadataValue", 0)}
"""Unfinished versions of 3.9's share groups, whose layout was another when they were released."""

DROPPED: Final = {"ShareGroupPartitionMetadataKey", "ShareGroupPartitionMetadataValue"}
"""Messages of 3.9's unfinished share groups that no release ever wrote."""
