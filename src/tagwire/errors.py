"""The error tree, and Kafka's error codes.

Everything tagwire raises on purpose is a `TagwireError`. Bad bytes raise `DecodeError`, bad values `EncodeError`; a
broker's refusal is a `KafkaError` carrying an `Error`. Source of the codes: Kafka's Errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tagwire.escaping import printable

if TYPE_CHECKING:
    from tagwire.partitions import TopicPartition

AnyError = TypeVar("AnyError", bound=Exception)


class TagwireError(Exception):
    """Root of every error tagwire raises. Its text is one line that can steer no terminal, whatever a peer or a file
    put into it: see `tagwire.escaping`."""

    def __str__(self) -> str:
        return printable(super().__str__())


class SpecError(TagwireError):
    """A message specification breaks a rule of the spec language. The text has a line for each that is broken, naming
    file, field and rule."""

    def __str__(self) -> str:
        return _printable_lines(self)


class SchemaError(SpecError):
    """A schema built in code breaks a rule of the spec language."""


class EncodeError(TagwireError):
    """A value cannot be written: wrong type, out of range, or null where null is not allowed."""


class DecodeError(TagwireError):
    """Bytes do not hold what they should.

    Attributes:
        path: where in the value, such as `MetadataResponse.topics[3].partitions[0].leader_id`; "" when unknown.
        offset: byte position in the input, or None when unknown.
    """

    def __init__(self, message: str, *, path: str = "", offset: int | None = None) -> None:
        self.path = path
        self.offset = offset
        where = path + (f" at byte {offset}" if offset is not None else "")
        super().__init__(f"{where}: {message}" if where else message)
        self._init = (message, path, offset)

    def under(self, place: str) -> DecodeError:
        """The same error as part of something larger: `place`, such as `row 3`, comes before its path."""
        message, path, offset = self._init
        return type(self)(message, path=f"{place}, {path}" if path else place, offset=offset)

    def behind(self, count: int) -> DecodeError:
        """The same error in an input with `count` bytes more before it."""
        message, path, offset = self._init
        return type(self)(message, path=path, offset=None if offset is None else offset + count)

    def __reduce__(self) -> tuple[object, ...]:
        message, path, offset = self._init
        return _rebuild_decode_error, (type(self), message, path, offset)


def _rebuild_decode_error(kind: type[DecodeError], message: str, path: str, offset: int | None) -> DecodeError:
    return kind(message, path=path, offset=offset)


class CorruptRecordError(DecodeError):
    """A record batch fails its checksum or contradicts itself."""


class ReadOnlyError(TagwireError):
    """A record that was read was to be changed. The text says how to make a copy that can be."""


class UnsupportedVersionError(TagwireError):
    """A version is not served, not shared with the peer, or cannot carry a value that was set."""


class ConfigError(TagwireError):
    """An option is wrong. The text names the option, its value and what is allowed."""


def afresh(error: AnyError) -> AnyError:
    """An error that was raised before, to be raised again: without where that was. Each time would make its traceback
    longer, and keep what those frames hold."""
    return error.with_traceback(None)


def no_such_option(name: str, known: Iterable[str]) -> ConfigError:
    """The error about an option that there is none of: it names the one that is likely to be meant, or all."""
    from difflib import get_close_matches  # not before something is wrong

    options = sorted(known)
    near = get_close_matches(name, options, 1)
    meant = f"{near[0]} is one" if near else f"allowed are {', '.join(options)}"
    return ConfigError(f"{name}: no such option; {meant}")


class HeaderRegisterError(TagwireError):
    """A register of header keys breaks its rules. The text has a line for each of `problems`: file, entry, rule."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))

    def __str__(self) -> str:
        return _printable_lines(self)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.problems,)


class ValueSchemaError(TagwireError):
    """A schema of values (Avro, Protobuf, JSON Schema) cannot be understood, resolved to another, or fit by columns."""


class SchemaRegistryError(TagwireError):
    """A schema registry cannot be reached, refuses, or answers what it should not. Its text has no secret.

    Attributes:
        status: the HTTP status; None where there was no response.
        error_code: the registry's own code, such as 40403 for a schema that is not there; None where it told none.
    """

    def __init__(self, message: str, *, status: int | None = None, error_code: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code

    @property
    def not_found(self) -> bool:
        """Whether the registry itself says that it has no such schema, subject or version: an answer, no outage."""
        return self.status == 404 and self.error_code is not None and self.error_code // 100 == 404


class SchemaRegistryUnavailableError(SchemaRegistryError):
    """No node of a schema registry could be reached, or could answer, as often as it was tried. One may later."""


class StorageError(TagwireError):
    """A data directory is not ours, is in use, or cannot be read or written."""


class StorageUnavailableError(StorageError):
    """A disk or an object store has not done what was asked of it: it is full, or away. It may later."""


class CaptureError(TagwireError):
    """A file is no capture that tagwire reads. What is broken inside a capture is counted, not raised."""


class ConnectError(TagwireError):
    """No broker could be reached. The text names every address tried and why it failed."""


class ConnectionLostError(TagwireError):
    """The peer closed or reset the connection while a response was due."""


class RequestTimeoutError(TagwireError):
    """No response within the request's time."""


UNREACHABLE: Final = (ConnectError, ConnectionLostError, RequestTimeoutError)
"""What is raised of a broker that is away, and may be back."""


class BufferFullError(RequestTimeoutError):
    """A producer has no room for a record: as much as it may keep is not delivered yet. The same record may be sent
    again when some of it is (BufferExhaustedException of Kafka, BufferError of librdkafka's Python client)."""

    retriable = True


class ProtocolError(TagwireError):
    """The protocol of a connection is broken; the two kinds below say by which side."""


class RemoteProtocolError(ProtocolError):
    """The peer broke the protocol of the connection: frame size, correlation id, unsolicited bytes. Nothing that the
    connection still holds can be trusted."""


class LocalProtocolError(ProtocolError):
    """This side was told to do what the protocol forbids, such as a response out of order. Nothing was sent, and the
    connection is as it was."""


class AuthenticationError(TagwireError):
    """Credentials were refused, or the peer could not prove who it is. The text never holds a secret."""


class TokenError(AuthenticationError):
    """A token that no broker would take, or none at all: it has expired, is for another audience, is no token, or its
    endpoint or callback refused. The text names what is wrong and where, and holds neither the token nor a secret."""


class TransactionStateError(TagwireError):
    """A call comes at a wrong time in the life of a transactional producer. The text says what is due."""


class ConsumerStateError(TagwireError):
    """A call that a consumer cannot do as it is: without a subscription, beside another kind of one, after `close`, or
    while another thread uses it. The text says what to do."""


class WakeupError(TagwireError):
    """`wakeup` was called while a consumer waited, or before it did. Nothing is lost; the next call goes on."""


class KafkaError(TagwireError):
    """A broker responded with an error code.

    Attributes:
        error: the `Error`; `UNKNOWN_SERVER_ERROR` for a code that is in no table.
        code: the code as received.
        message: what is known besides, in one line; "" where nothing is.
    """

    def __init__(self, code: int, message: str = "") -> None:
        self.code = int(code)
        self.error = Error.of(code)
        self.message = printable(message)
        super().__init__(f"{self.error.name} ({self.code})" + (f": {message}" if message else ""))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.message)

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.error.retriable

    @property
    def refreshes_metadata(self) -> bool:
        """Whether the cluster's metadata should be fetched again before a retry."""
        return self.error.refreshes_metadata


class PartlyRefusedError(KafkaError):
    """A call about several things was refused for some of them; its code is that of the first.

    Attributes:
        refused: {which of them: its `KafkaError`}.
        succeeded: {which of them: what the call gives of it}; those that are in neither were not there.
    """

    def __init__(
        self, code: int, message: str, refused: Mapping[Any, KafkaError], succeeded: Mapping[Any, Any]
    ) -> None:
        self.refused = dict(refused)
        self.succeeded = dict(succeeded)
        super().__init__(code, message)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.message, self.refused, self.succeeded)


class LogTruncationError(KafkaError):
    """Records that were read are not in the log any more: a leader that had not all of them took over (KIP-320).

    Attributes:
        partition: the `TopicPartition`.
        offset: the position that was reached.
        diverging_offset: the first offset that is known to hold something else now; None where that is not known.
    """

    def __init__(self, partition: TopicPartition, offset: int, diverging_offset: int | None) -> None:
        self.partition = partition
        self.offset = offset
        self.diverging_offset = diverging_offset
        where = (
            "and no leader knows from where on"
            if diverging_offset is None
            else f"which from offset {diverging_offset} on holds something else, or ends there"
        )
        super().__init__(
            Error.OFFSET_OUT_OF_RANGE, f"{partition}: what was read up to offset {offset} was cut off the log, {where}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.partition, self.offset, self.diverging_offset)


class NoOffsetError(TagwireError):
    """A partition has no committed offset to start from, and `auto.offset.reset` is none."""


class ProducerFencedError(KafkaError):
    """Another producer has taken the transactional id over. This one cannot be used any more."""


class CommitFailedError(KafkaError):
    """Offsets were not committed, because the consumer is not, or not at the moment, a member of its group: what it
    read since the last commit may be read again, by whoever has the partitions now. The text says why, and what to do.
    """


class Error(IntEnum):
    """Kafka's error codes. A row is name = code, flags: R retriable, M also refreshes metadata."""

    retriable: bool
    refreshes_metadata: bool

    def __new__(cls, code: int, flags: str) -> Error:
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = "R" in flags
        member.refreshes_metadata = "M" in flags
        return member

    @classmethod
    def of(cls, code: int) -> Error:
        """The member for `code`; `UNKNOWN_SERVER_ERROR` for one that is in no table."""
        return _BY_CODE.get(int(code), cls.UNKNOWN_SERVER_ERROR)

    UNKNOWN_SERVER_ERROR = -1, ""
    NONE = 0, ""
    OFFSET_OUT_OF_RANGE = 1, ""
    CORRUPT_MESSAGE = 2, "R"
    UNKNOWN_TOPIC_OR_PARTITION = 3, "RM"
    INVALID_FETCH_SIZE = 4, ""
    LEADER_NOT_AVAILABLE = 5, "RM"
    NOT_LEADER_OR_FOLLOWER = 6, "RM"
    REQUEST_TIMED_OUT = 7, "R"
    BROKER_NOT_AVAILABLE = 8, ""
    REPLICA_NOT_AVAILABLE = 9, "RM"
    MESSAGE_TOO_LARGE = 10, ""
    STALE_CONTROLLER_EPOCH = 11, ""
    OFFSET_METADATA_TOO_LARGE = 12, ""
    NETWORK_EXCEPTION = 13, "RM"
    COORDINATOR_LOAD_IN_PROGRESS = 14, "R"
    COORDINATOR_NOT_AVAILABLE = 15, "R"
    NOT_COORDINATOR = 16, "R"
    INVALID_TOPIC_EXCEPTION = 17, ""
    RECORD_LIST_TOO_LARGE = 18, ""
    NOT_ENOUGH_REPLICAS = 19, "R"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "R"
    INVALID_REQUIRED_ACKS = 21, ""
    ILLEGAL_GENERATION = 22, ""
    INCONSISTENT_GROUP_PROTOCOL = 23, ""
    INVALID_GROUP_ID = 24, ""
    UNKNOWN_MEMBER_ID = 25, ""
    INVALID_SESSION_TIMEOUT = 26, ""
    REBALANCE_IN_PROGRESS = 27, ""
    INVALID_COMMIT_OFFSET_SIZE = 28, ""
    TOPIC_AUTHORIZATION_FAILED = 29, ""
    GROUP_AUTHORIZATION_FAILED = 30, ""
    CLUSTER_AUTHORIZATION_FAILED = 31, ""
    INVALID_TIMESTAMP = 32, ""
    UNSUPPORTED_SASL_MECHANISM = 33, ""
    ILLEGAL_SASL_STATE = 34, ""
    UNSUPPORTED_VERSION = 35, ""
    TOPIC_ALREADY_EXISTS = 36, ""
    INVALID_PARTITIONS = 37, ""
    INVALID_REPLICATION_FACTOR = 38, ""
    INVALID_REPLICA_ASSIGNMENT = 39, ""
    INVALID_CONFIG = 40, ""
    NOT_CONTROLLER = 41, "R"
    INVALID_REQUEST = 42, ""
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, ""
    POLICY_VIOLATION = 44, ""
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, ""
    DUPLICATE_SEQUENCE_NUMBER = 46, ""
    INVALID_PRODUCER_EPOCH = 47, ""
    INVALID_TXN_STATE = 48, ""
    INVALID_PRODUCER_ID_MAPPING = 49, ""
    INVALID_TRANSACTION_TIMEOUT = 50, ""
    CONCURRENT_TRANSACTIONS = 51, "R"
    TRANSACTION_COORDINATOR_FENCED = 52, ""
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, ""
    SECURITY_DISABLED = 54, ""
    OPERATION_NOT_ATTEMPTED = 55, ""
    KAFKA_STORAGE_ERROR = 56, "RM"
    LOG_DIR_NOT_FOUND = 57, ""
    SASL_AUTHENTICATION_FAILED = 58, ""
    UNKNOWN_PRODUCER_ID = 59, ""
    REASSIGNMENT_IN_PROGRESS = 60, ""
    DELEGATION_TOKEN_AUTH_DISABLED = 61, ""
    DELEGATION_TOKEN_NOT_FOUND = 62, ""
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, ""
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, ""
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, ""
    DELEGATION_TOKEN_EXPIRED = 66, ""
    INVALID_PRINCIPAL_TYPE = 67, ""
    NON_EMPTY_GROUP = 68, ""
    GROUP_ID_NOT_FOUND = 69, ""
    FETCH_SESSION_ID_NOT_FOUND = 70, "R"
    INVALID_FETCH_SESSION_EPOCH = 71, "R"
    LISTENER_NOT_FOUND = 72, "RM"
    TOPIC_DELETION_DISABLED = 73, ""
    FENCED_LEADER_EPOCH = 74, "RM"
    UNKNOWN_LEADER_EPOCH = 75, "R"
    UNSUPPORTED_COMPRESSION_TYPE = 76, ""
    STALE_BROKER_EPOCH = 77, ""
    OFFSET_NOT_AVAILABLE = 78, "R"
    MEMBER_ID_REQUIRED = 79, ""
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "RM"
    GROUP_MAX_SIZE_REACHED = 81, ""
    FENCED_INSTANCE_ID = 82, ""
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "RM"
    ELECTION_NOT_NEEDED = 84, "RM"
    NO_REASSIGNMENT_IN_PROGRESS = 85, ""
    GROUP_SUBSCRIBED_TO_TOPIC = 86, ""
    INVALID_RECORD = 87, ""
    UNSTABLE_OFFSET_COMMIT = 88, "R"
    THROTTLING_QUOTA_EXCEEDED = 89, "R"
    PRODUCER_FENCED = 90, ""
    RESOURCE_NOT_FOUND = 91, ""
    DUPLICATE_RESOURCE = 92, ""
    UNACCEPTABLE_CREDENTIAL = 93, ""
    INCONSISTENT_VOTER_SET = 94, ""
    INVALID_UPDATE_VERSION = 95, ""
    FEATURE_UPDATE_FAILED = 96, ""
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, ""
    SNAPSHOT_NOT_FOUND = 98, ""
    POSITION_OUT_OF_RANGE = 99, ""
    UNKNOWN_TOPIC_ID = 100, "RM"
    DUPLICATE_BROKER_REGISTRATION = 101, ""
    BROKER_ID_NOT_REGISTERED = 102, ""
    INCONSISTENT_TOPIC_ID = 103, "RM"
    INCONSISTENT_CLUSTER_ID = 104, ""
    TRANSACTIONAL_ID_NOT_FOUND = 105, ""
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "R"
    INELIGIBLE_REPLICA = 107, ""
    NEW_LEADER_ELECTED = 108, ""
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, ""
    FENCED_MEMBER_EPOCH = 110, ""
    UNRELEASED_INSTANCE_ID = 111, ""
    UNSUPPORTED_ASSIGNOR = 112, ""
    STALE_MEMBER_EPOCH = 113, ""
    MISMATCHED_ENDPOINT_TYPE = 114, ""
    UNSUPPORTED_ENDPOINT_TYPE = 115, ""
    UNKNOWN_CONTROLLER_ID = 116, ""
    UNKNOWN_SUBSCRIPTION_ID = 117, ""
    TELEMETRY_TOO_LARGE = 118, ""
    INVALID_REGISTRATION = 119, ""
    TRANSACTION_ABORTABLE = 120, ""
    INVALID_RECORD_STATE = 121, ""
    SHARE_SESSION_NOT_FOUND = 122, "R"
    INVALID_SHARE_SESSION_EPOCH = 123, "R"
    FENCED_STATE_EPOCH = 124, ""
    INVALID_VOTER_KEY = 125, ""
    DUPLICATE_VOTER = 126, ""
    VOTER_NOT_FOUND = 127, ""
    INVALID_REGULAR_EXPRESSION = 128, ""
    REBOOTSTRAP_REQUIRED = 129, ""
    STREAMS_INVALID_TOPOLOGY = 130, ""
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, ""
    STREAMS_TOPOLOGY_FENCED = 132, ""
    SHARE_SESSION_LIMIT_REACHED = 133, "R"
    GROUP_DELETION_FAILED = 134, ""
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135, ""
    CONTROLLER_ID_NOT_REGISTERED = 136, ""


def _printable_lines(error: Exception) -> str:
    return "\n".join(map(printable, Exception.__str__(error).split("\n")))


_BY_CODE: dict[int, Error] = {int(member): member for member in Error}
