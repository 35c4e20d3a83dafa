"""Negotiation, version by version.

The same client meets an old broker and a new one, leaves versions out, and asks whether a feature can be used. What a
broker is too old for is said before anything is sent.
"""

from tagwire.broker import Broker
from tagwire.client import Client
from tagwire.errors import UnsupportedVersionError
from tagwire.rpc import Features

with Broker(as_release="2.8") as old, Broker() as new:
    for name, broker in (("2.8", old), ("today's", new)):
        with Client(broker.bootstrap) as client:
            client.metadata()
            print(f"{name}: Metadata {client.negotiated()['Metadata']}, offered {client.versions()[3]}")

    with Client(new.bootstrap, exclude={"Metadata": "12-13"}) as careful:
        careful.metadata()
        assert careful.negotiated()["Metadata"] == 11

    features = Features({"topic ids": {3: (10, 12), 1: (13, 17)}})  # Metadata and Fetch, by their keys
    with Client(old.bootstrap) as client:
        answer = client.usable(features, "topic ids")
        print(answer)
        assert not answer

    with Client(new.bootstrap, versions={"Metadata": 12}) as fixed:
        fixed.metadata(["flights"], allow_auto_create=True)
        try:
            fixed.list_offsets({("flights", 0): "latest"})
        except UnsupportedVersionError as error:
            print(error)
        else:
            raise AssertionError("ListOffsets was not among the versions")
