"""Record headers with a register.

A topic of the int-headers dialect keeps int header keys, as their first proposal has them. A register names the keys;
clients that know only strings see names, and one that speaks the dialect sees ints.
"""

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer, Reader
from tagwire.errors import TagwireError
from tagwire.records import HeaderEntry, HeaderRegister

APP_NAME = 0x00110001  # local key space, client
register = HeaderRegister([HeaderEntry(APP_NAME, "app.name", description="who sent it")], name="headers.toml")

with Broker(register=register) as broker:
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("events", configs={"tagwire.record.dialect": "int-headers"})])
    with Producer(broker.bootstrap, idempotence=False) as producer:  # knows nothing of the dialect
        producer.send("events", b"started", headers=[("app.name", b"billing")])
    with Reader(broker.bootstrap, {("events", 0): 0}, dialect="int-headers", stop_at_end=True) as reader:
        ints = [record.headers for record in reader.records()]
    with Reader(broker.bootstrap, {("events", 0): 0}, stop_at_end=True) as reader:
        names = [record.headers for record in reader.records()]
    try:
        with Producer(broker.bootstrap, idempotence=False) as producer:
            producer.send("events", b"started", headers=[("app.nmae", b"billing")])
    except TagwireError as error:
        print(error)

print(ints, names)
assert ints == [((APP_NAME, b"billing"),)]
assert names == [(("app.name", b"billing"),)]
