"""The data source `tagwire`: topics as tables, batch and streaming. `topic` is where Spark begins."""
