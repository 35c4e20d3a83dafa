"""Transactions: all or nothing.

What a producer sends in a transaction counts together with the offsets that belong to it. An aborted one counts for
nobody who reads committed records, and who takes over an id fences whoever had it.
"""

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer, Reader
from tagwire.errors import ProducerFencedError

with Broker() as broker:
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("orders", num_partitions=1), NewTopic("invoices", num_partitions=1)])

    def values(isolation: str) -> list[bytes | None]:
        with Reader(broker.bootstrap, "invoices", stop_at_end=True, isolation=isolation) as reader:
            return [record.value for record in reader.records()]

    with Producer(broker.bootstrap, transactional_id="billing") as producer:
        producer.init_transactions()
        with producer.transaction():  # an invoice, and that its order is done
            producer.send("invoices", b"invoice 1")
            producer.send_offsets({("orders", 0): 1}, "billing")
        producer.begin_transaction()
        producer.send("invoices", b"invoice 2")
        producer.flush()
        producer.abort_transaction()
        print(values("read_committed"), values("read_uncommitted"))
        assert values("read_committed") == [b"invoice 1"]
        assert values("read_uncommitted") == [b"invoice 1", b"invoice 2"]

        with Producer(broker.bootstrap, transactional_id="billing") as successor:
            successor.init_transactions()
            try:
                with producer.transaction():
                    producer.send("invoices", b"invoice 3")
            except ProducerFencedError as error:
                print(error)
            else:
                raise AssertionError("the first producer should have been fenced")

    with Admin(broker.bootstrap) as admin:
        assert next(iter(admin.group_offsets("billing").values())).offset == 1
