"""Bytes <-> values: programs for the kernel, message classes, Kafka's JSON form."""

from __future__ import annotations

from tagwire.codec.classes import DynamicMessage, MessageObject, RequestMessage, Structure, message_class
from tagwire.codec.schema import Field, Schema

__all__ = ["DynamicMessage", "Field", "MessageObject", "RequestMessage", "Schema", "Structure", "message_class"]
