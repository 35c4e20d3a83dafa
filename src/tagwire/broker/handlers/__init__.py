"""One module per API. Importing this package registers them all in `tagwire.broker.served`."""

from tagwire.broker.handlers import (
    api_versions,
    create_topics,
    delete_topics,
    fetch,
    list_offsets,
    metadata,
    produce,
)

__all__ = ["api_versions", "create_topics", "delete_topics", "fetch", "list_offsets", "metadata", "produce"]
