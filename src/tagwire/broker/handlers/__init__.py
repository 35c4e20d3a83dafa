"""One module per API, named as its `ApiKey`. The first request for an API loads it: see `tagwire.broker.registry`."""
