"""A protocol proposal on real connections.

Two specs, in Kafka's language, are all that a new API needs: the broker serves it, a client asks, and version 1 adds a
tagged field that version 0 has no place for. `tagwire spec check` and `tagwire spec diff` look at the same files.
"""

import json

from tagwire.broker import Broker
from tagwire.client import Client
from tagwire.rpc import api_of

REQUEST = {
    "apiKey": 9000,
    "type": "request",
    "name": "GreetRequest",
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [
        {"name": "Name", "type": "string", "versions": "0+", "about": "Who is greeted."},
        {
            "name": "Greeting",
            "type": "string",
            "versions": "1+",
            "taggedVersions": "1+",
            "tag": 0,
            "default": "hello",
            "ignorable": True,
            "about": "How; costs nothing where it is the default.",
        },
    ],
}
RESPONSE = {
    "apiKey": 9000,
    "type": "response",
    "name": "GreetResponse",
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [{"name": "Text", "type": "string", "versions": "0+", "about": "The greeting."}],
}
greet = api_of(json.dumps(REQUEST), json.dumps(RESPONSE))

with Broker() as broker:
    broker.register(greet, lambda call: greet.response(text=f"{call.request.greeting}, {call.request.name}"))
    with Client(broker.bootstrap, apis=[greet]) as client:
        said = client.request(greet.request(name="Ada", greeting="good day")).text
        plain = client.request(greet.request(name="Ada")).text
        print(client.versions()[9000], said, plain, sep="; ")
    # An older client, which knows version 0 alone, is served, too.
    older = api_of(json.dumps(REQUEST | {"validVersions": "0"}), json.dumps(RESPONSE | {"validVersions": "0"}))
    with Client(broker.bootstrap, apis=[older]) as client:
        old = client.request(older.request(name="Ada")).text

assert (said, plain, old) == ("good day, Ada", "hello, Ada", "hello, Ada")
