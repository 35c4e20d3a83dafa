"""A walk of kafka-python: `kafka_python.py BOOTSTRAP TOPIC CLIENT_ID`."""

import sys

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

bootstrap, topic, client_id = sys.argv[1:]
common = {"bootstrap_servers": bootstrap, "client_id": client_id}
VALUES = [b"%d" % number for number in range(20)]

producer = KafkaProducer(acks="all", compression_type="gzip", **common)
for sent in [producer.send(topic, value) for value in VALUES]:
    sent.get(10)
producer.close(5)
print("ok produce", flush=True)

reading = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "consumer_timeout_ms": 10000}
consumer = KafkaConsumer(topic, group_id="g-" + topic, **reading, **common)
found = [next(consumer).value for _ in VALUES]
assert found == VALUES, found
consumer.commit()
consumer.close()
print("ok consume", flush=True)

admin = KafkaAdminClient(**common)
admin.create_topics([NewTopic(topic + "-made", 1, 1)])
admin.close()
print("ok admin", flush=True)
