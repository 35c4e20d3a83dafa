# What a type checker knows of this kernel: decorators of Cython hide it in the source. tests/test_typing.py compares.
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeGuard

COMPILED: bool

HeaderKey = int | str
Headers = Sequence[tuple[HeaderKey, bytes | None]]

def text(data: bytes) -> str: ...
def is_int_key(key: object) -> TypeGuard[int]: ...

class MalformedKey(str):
    raw: bytes
    def __new__(cls, raw: bytes) -> MalformedKey: ...

class Record:
    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __init__(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = ...,
        timestamp: int = ...,
        offset: int = ...,
    ) -> None: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def raw_headers(self) -> tuple[tuple[int | bytes, bytes | None], ...]: ...
    @property
    def topic(self) -> str | None: ...
    @property
    def partition(self) -> int: ...
    @property
    def consumed(self) -> bool: ...
    def get_header(self, key: HeaderKey) -> bytes | None: ...
    def set_header(self, key: HeaderKey, value: bytes | None) -> None: ...
    def replace(
        self,
        *,
        key: bytes | None = ...,
        value: bytes | None = ...,
        headers: Headers = ...,
        timestamp: int = ...,
        offset: int = ...,
    ) -> Record: ...
    def __eq__(self, other: object) -> bool: ...

def consumed_record(
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[HeaderKey, bytes | None], ...],
    timestamp: int,
    offset: int,
) -> Record: ...
def placed(record: Record, topic_partition: object) -> Record: ...
def with_headers(record: Record, headers: tuple[tuple[HeaderKey, Any], ...]) -> Record: ...
def objects(
    payload: memoryview,
    count: int,
    origin: int,
    base_offset: int,
    last_delta: int,
    base_timestamp: int,
    append_timestamp: int,
    appended: bool,
    key_of: Callable[[bytes], HeaderKey] | None = ...,
) -> Iterator[Record]: ...
