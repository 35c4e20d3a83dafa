"""Message classes: one class per message and per struct, for all versions.

Objects are mutable records with slots: keyword-only construction, `==`, repr, copy, pickle and pattern matching by
attribute; being mutable they are not hashable. Objects made by `decode` are acyclic data and are left out of the
garbage collector's lists: a cycle that a user builds through such an object is not collected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NoReturn, Self, TypeVar, cast

from tagwire.codec import json_form
from tagwire.codec.program import Buffer, checked_version, program_of
from tagwire.codec.secrets import SECRET_FIELDS, SETTING_VALUES, SETTINGS, is_secret
from tagwire.errors import SpecError
from tagwire.kernel import message_reading, message_writing
from tagwire.kernel.programs import Program, adopt
from tagwire.spec import Absent, Message, Struct, Versions, catalog, load

if TYPE_CHECKING:
    import pyarrow as pa


class Structure:
    """Base of every message and struct object."""

    __slots__ = ("_unknown_tags",)
    __hash__ = None  # type: ignore[assignment]
    _fields: ClassVar[tuple[str, ...]] = ()
    _secrets: ClassVar[frozenset[str]] = frozenset()
    _setting_values: ClassVar[frozenset[str]] = frozenset()
    _home: ClassVar[_Home]
    _unknown_tags: dict[int, bytes] | None

    @property
    def unknown_tags(self) -> dict[int, bytes]:
        """Tagged fields that the spec does not declare, {tag: raw bytes}; written again in the order of their tags."""
        if self._unknown_tags is None:
            self._unknown_tags = {}
        return self._unknown_tags

    @unknown_tags.setter
    def unknown_tags(self, value: Mapping[int, bytes] | None) -> None:
        self._unknown_tags = None if value is None else dict(value)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        if (self._unknown_tags or None) != (other._unknown_tags or None):  # type: ignore[attr-defined]
            return False
        return all(getattr(self, name) == getattr(other, name) for name in self._fields)

    def _hidden(self) -> frozenset[str]:
        """The attributes that nobody is shown."""
        if self._setting_values and is_secret(self):
            return self._secrets | self._setting_values
        return self._secrets

    def __repr__(self) -> str:
        secrets = self._hidden()
        shown = [f"{name}={'<secret>' if name in secrets else _shown(getattr(self, name))}" for name in self._fields]
        if self._unknown_tags:
            shown.append(f"unknown_tags={self._unknown_tags!r}")
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __copy__(self) -> Self:
        values = {name: getattr(self, name) for name in self._fields}
        return type(self)(**values, unknown_tags=self._unknown_tags)  # type: ignore[call-arg]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        values = {name: deepcopy(_owned(getattr(self, name)), memo) for name in self._fields}
        return type(self)(**values, unknown_tags=_owned_tags(self._unknown_tags))  # type: ignore[call-arg]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        values = {name: _owned(getattr(self, name)) for name in self._fields}
        return _restore, (self._home, type(self).__name__, values, _owned_tags(self._unknown_tags))


class MessageObject(Structure):
    """Base of every message object: a struct that can be encoded and decoded by itself."""

    __slots__ = ()
    spec: ClassVar[Message]
    api_key: ClassVar[int]
    valid_versions: ClassVar[Versions]
    _classes: ClassVar[Mapping[str, type]]
    _programs: ClassVar[dict[int, Program]]

    def encode(self, version: int) -> bytes:
        """The message's bytes at `version`, without frame or header.

        Raises:
            EncodeError: a value has the wrong type, is out of range, or is null where it may not be; names the field.
            UnsupportedVersionError: the message has no such version, or a field that the version cannot carry is set.
        """
        return message_writing.encode(program_of(type(self), version), self)  # type: ignore[no-any-return]

    def encode_pieces(self, version: int) -> list[bytes | memoryview]:
        """The message's bytes at `version` as buffers that follow one another, for a vectored write.

        Long `bytes` and views of them are handed on as they are, whatever else the message holds is copied. Raises as
        `encode`.
        """
        return message_writing.encode_pieces(program_of(type(self), version), self)  # type: ignore[no-any-return]

    @classmethod
    def decode(cls, data: Buffer, version: int, *, lenient: bool = False) -> Self:
        """The message that `data` holds, all of it.

        Args:
            data: the body's bytes; fields of type records stay views into it.
            version: the version it was written at.
            lenient: read as Kafka's Java reader does, trailing bytes and all, instead of strictly.

        Raises:
            DecodeError: with the field's path and the byte offset.
            UnsupportedVersionError: the message has no such version.
        """
        return message_reading.decode(program_of(cls, version), data, 0, lenient, True)[0]  # type: ignore[no-any-return]

    @classmethod
    def decode_prefix(cls, data: Buffer, version: int, *, start: int = 0, lenient: bool = False) -> tuple[Self, int]:
        """The message at byte `start` of `data`, and the position after it: for headers, which a body follows."""
        return message_reading.decode(program_of(cls, version), data, start, lenient, False)  # type: ignore[no-any-return]

    @classmethod
    def to_arrow(cls, data: Buffer, version: int, *, lenient: bool = False) -> pa.StructArray:
        """The message that `data` holds as Arrow columns: see `tagwire.codec.arrow.to_arrow`."""
        from tagwire.codec import arrow

        return arrow.to_arrow(cls, data, version, lenient=lenient)

    @classmethod
    def decode_many(
        cls,
        column: pa.Array | pa.ChunkedArray,
        version: int,
        *,
        errors: Literal["raise", "column"] = "raise",
        lenient: bool = False,
    ) -> pa.StructArray:
        """A column of messages as columns of their fields: see `tagwire.codec.arrow.decode_many`."""
        from tagwire.codec import arrow

        return arrow.decode_many(cls, column, version, errors=errors, lenient=lenient)

    @classmethod
    def encode_many(
        cls, column: pa.Array | pa.ChunkedArray, version: int, *, errors: Literal["raise", "column"] = "raise"
    ) -> pa.Array:
        """A column of structs as messages, binary: see `tagwire.codec.arrow_writing.encode_many`."""
        from tagwire.codec import arrow_writing

        return arrow_writing.encode_many(cls, column, version, errors=errors)

    def to_json(self, version: int) -> dict[str, Any]:
        """Kafka's JSON form of the message at `version` (docs/wire-format.md#the-json-form)."""
        return json_form.to_json(self.spec, self, checked_version(type(self), version))

    @classmethod
    def from_json(cls, doc: Mapping[str, Any], version: int) -> Self:
        """The message that `doc` describes. A missing key means the default; an unknown key is a DecodeError."""
        return json_form.from_json(cls.spec, doc, checked_version(cls, version), cls._classes)  # type: ignore[no-any-return]


ResponseMessage = TypeVar("ResponseMessage", covariant=True)

if TYPE_CHECKING:

    class RequestMessage(MessageObject, Generic[ResponseMessage]):
        """A request of the catalog, by the class of its response: to a type checker alone, which then knows what a
        client is given for it."""

        @property
        def _response(self) -> ResponseMessage: ...

    class _AnyStruct(type):
        def __getattr__(cls, name: str) -> Any: ...

    class DynamicMessage(MessageObject, metaclass=_AnyStruct):
        """An object of a class whose spec is known when the program runs: to a type checker its fields are Any."""

        def __init__(self, **fields: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

else:
    DynamicMessage = RequestMessage = MessageObject


def message_class(spec: Message | Path | str) -> type[DynamicMessage]:
    """The class of one message, for all its versions; equal specs share one class.

    Args:
        spec: a model, the path of a spec file, or JSON text.

    Raises:
        SpecError: the spec breaks a rule.
    """
    return cast("type[DynamicMessage]", class_at(spec if isinstance(spec, Message) else load(spec)))


def build_class(message: Message, *, home: Message | str) -> type[MessageObject]:
    """The class of `message`; `home` is what a pickle refers to: the model itself, or the name of a catalog message."""
    classes: dict[str, type] = {}
    owner = _Home(home, classes)
    for struct in (*message.structs, message.root):
        classes[struct.name] = _struct_class(struct, message, owner)
    root: Any = classes[message.root.name]
    for name, kind in classes.items():
        if kind is not root:
            setattr(root, name, kind)
    root.spec = message
    root.api_key = message.api_key
    root.valid_versions = message.valid_versions
    root._classes = classes
    root._programs = {}
    return root  # type: ignore[no-any-return]


def _struct_class(struct: Struct, message: Message, home: _Home) -> type:
    is_root = struct is message.root
    attributes = tuple(field.attribute for field in struct.fields)
    for field in struct.fields if is_root else ():
        if field.attribute in ("spec", "api_key", "valid_versions"):
            raise SpecError(f"{message.name}, {field.name}: its attribute would hide the class's own {field.attribute}")
    name = struct.name if is_root else f"{message.name}.{struct.name}"
    secrets = frozenset(field.attribute for field in struct.fields if (struct.name, field.name) in SECRET_FIELDS)
    namespace: dict[str, Any] = {
        "__slots__": attributes,
        "__module__": "tagwire.messages",
        "__qualname__": name,
        "__doc__": f"{struct.name}, versions {struct.versions}.",
        "__match_args__": attributes,
        "__init__": _initializer(struct, name, home.classes),
        "__init_subclass__": classmethod(_refuse_subclass),
        "_fields": attributes,
        "_secrets": secrets,
        "_setting_values": SETTING_VALUES & set(attributes) if struct.name in SETTINGS else frozenset(),
        "_home": home,
    }
    made = type(struct.name, (MessageObject if is_root else Structure,), namespace)
    adopt(made)
    return made


def _initializer(struct: Struct, name: str, classes: Mapping[str, type]) -> Callable[..., None]:
    """A keyword-only `__init__` with every field's default in its signature."""
    scope: dict[str, Any] = {"_MISSING": _MISSING}
    parameters: list[str] = []
    lines: list[str] = []
    for number, field in enumerate(struct.fields):
        attribute = field.attribute
        scope[f"_default_{number}"] = field.default
        if isinstance(field.default, Absent):
            scope[f"_make_{number}"] = list if field.default is Absent.EMPTY_ARRAY else classes[field.type.element]
            parameters.append(f"{attribute}=_MISSING")
            lines.append(f"    self.{attribute} = _make_{number}() if {attribute} is _MISSING else {attribute}")
        else:
            parameters.append(f"{attribute}=_default_{number}")
            lines.append(f"    self.{attribute} = {attribute}")
    lines.append("    self._unknown_tags = None if unknown_tags is None else dict(unknown_tags)")
    parameters.append("unknown_tags=None")
    source = f"def __init__(self, *, {', '.join(parameters)}):\n" + "\n".join(lines) + "\n"
    exec(compile(source, f"<{name}.__init__>", "exec"), scope)
    initializer: Callable[..., None] = scope["__init__"]
    initializer.__qualname__ = f"{name}.__init__"
    return initializer


def _refuse_subclass(cls: type, **_: object) -> NoReturn:
    raise TypeError(f"{cls.__mro__[1].__qualname__} cannot be subclassed: decode makes objects of the class itself")


class _Missing:
    """Stands in a signature for a default that is made anew for each object."""

    def __repr__(self) -> str:
        return "..."


_MISSING = _Missing()


def _shown(value: object) -> str:
    if isinstance(value, memoryview):
        return f"<{value.nbytes} bytes>"
    return repr(value)


def _owned(value: object) -> object:
    """`value`, or its bytes where it only looks into memory of another."""
    return bytes(value) if isinstance(value, memoryview) else value


def _owned_tags(tags: dict[int, bytes] | None) -> dict[int, bytes] | None:
    return None if tags is None else {tag: bytes(value) for tag, value in tags.items()}


class _Home:
    """What a pickle says instead of a class, once for all the objects in it: where the class is found again."""

    __slots__ = ("classes", "key")

    def __init__(self, key: Message | str, classes: Mapping[str, type]) -> None:
        self.key = key
        self.classes = classes

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _home_of, (self.key,)


def _home_of(key: Message | str) -> _Home:
    return class_at(key)._home


def _restore(home: _Home, struct: str, values: dict[str, Any], unknown_tags: dict[int, bytes] | None) -> Any:
    return home.classes[struct](**values, unknown_tags=unknown_tags)


_built: dict[Message | str, type[MessageObject]] = {}


def class_at(home: Message | str) -> type[MessageObject]:
    """The class of a model, or of the catalog's message of that name: always the same one.

    Raises:
        KeyError: the catalog has no message of that name.
    """
    found = _built.get(home)
    if found is None:
        message = home if isinstance(home, Message) else catalog.message(home)
        # Of two threads that build the same class, both go on with the first one kept.
        found = _built.setdefault(home, build_class(message, home=home))
    return found


def blank_secrets(value: Any) -> None:
    """Empties, at any depth of a message, what its repr hides: for showing the message in another form.

    Args:
        value: a message, a struct or a list of them; changed in place. Text becomes "<secret>", bytes and arrays empty.
    """
    if isinstance(value, list):
        for element in value:
            blank_secrets(element)
    elif isinstance(value, Structure):
        hidden = value._hidden()
        for name in value._fields:
            inner = getattr(value, name)
            if name not in hidden:
                blank_secrets(inner)
            elif inner is not None:
                setattr(value, name, "<secret>" if isinstance(inner, str) else type(inner)())
