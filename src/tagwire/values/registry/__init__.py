"""A client of schema registries that speak Confluent's REST API.

Source: Confluent's REST API; docs/values.md.
"""

from __future__ import annotations

from tagwire.values.registry.properties import registry_properties, registry_settings
from tagwire.values.registry.schema_registry import SchemaRegistry, shared_registry
from tagwire.values.registry.settings import RegistrySettings

__all__ = ["RegistrySettings", "SchemaRegistry", "registry_properties", "registry_settings", "shared_registry"]
