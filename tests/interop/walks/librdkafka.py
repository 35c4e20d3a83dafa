"""A walk of librdkafka by its C interface: `librdkafka.py LIBRARY BOOTSTRAP TOPIC CLIENT_ID`."""

import ctypes
import sys
import time

library, bootstrap, topic, client_id = sys.argv[1:]
c = ctypes.CDLL(library)
VALUES = [b"%d" % number for number in range(20)]
PRODUCER, CONSUMER = 0, 1
COPY = 2
SECONDS = 8


class Message(ctypes.Structure):
    _fields_ = (
        ("err", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_size", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    )


DELIVERED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Message), ctypes.c_void_p)
for name in ("conf_new", "new", "topic_new", "topic_partition_list_new", "topic_partition_list_add"):
    getattr(c, f"rd_kafka_{name}").restype = ctypes.c_void_p
c.rd_kafka_consumer_poll.restype = ctypes.POINTER(Message)
c.rd_kafka_err2str.restype = ctypes.c_char_p


def client(kind, **options):
    error = ctypes.create_string_buffer(512)
    conf = ctypes.c_void_p(c.rd_kafka_conf_new())
    for key, value in {"bootstrap.servers": bootstrap, "client.id": client_id, **options}.items():
        assert c.rd_kafka_conf_set(conf, key.encode(), value.encode(), error, 512) == 0, error.value
    if kind == PRODUCER:
        c.rd_kafka_conf_set_dr_msg_cb(conf, delivered)
    made = ctypes.c_void_p(c.rd_kafka_new(kind, conf, error, ctypes.c_size_t(512)))
    assert made.value, error.value
    return made


def check(code):
    assert code == 0, c.rd_kafka_err2str(code)


reports = []
delivered = DELIVERED(lambda client, message, opaque: reports.append(message.contents.err))

producer = client(PRODUCER, **{"message.timeout.ms": str(SECONDS * 1000), "compression.codec": "gzip"})
target = ctypes.c_void_p(c.rd_kafka_topic_new(producer, topic.encode(), None))
for value in VALUES:
    size = ctypes.c_size_t(len(value))
    assert c.rd_kafka_produce(target, ctypes.c_int32(0), COPY, value, size, None, ctypes.c_size_t(0), None) == 0
until = time.monotonic() + SECONDS + 3
while len(reports) < len(VALUES) and time.monotonic() < until:
    c.rd_kafka_poll(producer, 100)
assert reports == [0] * len(VALUES), {c.rd_kafka_err2str(code) for code in reports}
print("ok produce", flush=True)

options = {"group.id": "g-" + topic, "enable.auto.commit": "false", "auto.offset.reset": "earliest"}
consumer = client(CONSUMER, **options)
c.rd_kafka_poll_set_consumer(consumer)
topics = ctypes.c_void_p(c.rd_kafka_topic_partition_list_new(1))
c.rd_kafka_topic_partition_list_add(topics, topic.encode(), ctypes.c_int32(-1))
check(c.rd_kafka_subscribe(consumer, topics))
found = []
until = time.monotonic() + SECONDS
while len(found) < len(VALUES) and time.monotonic() < until:
    message = c.rd_kafka_consumer_poll(consumer, 200)
    if message:
        if message.contents.err == 0:
            found.append(ctypes.string_at(message.contents.payload, message.contents.size))
        c.rd_kafka_message_destroy(message)
assert found == VALUES, found
check(c.rd_kafka_commit(consumer, None, 0))
check(c.rd_kafka_consumer_close(consumer))
print("ok consume", flush=True)
