"""The data source `tagwire-segments`: Kafka's own files as tables. `source` is where Spark begins."""
