"""The Kafka wire protocol for Python, and a Spark data pipeline on top.

The rooms: `spec` (what a message is), `codec` and `messages` (bytes <-> values), `records` (batches, headers), `rpc`
(frames, negotiation), `client`, `broker`, `spark`, `cli`. Nothing heavy is imported until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tagwire.codec import Field as Field
    from tagwire.codec import Schema as Schema
    from tagwire.codec import message_class as message_class

__all__ = ["Field", "Schema", "__version__", "message_class"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from tagwire import codec

        return getattr(codec, name)
    raise AttributeError(f"module 'tagwire' has no attribute {name!r}")
