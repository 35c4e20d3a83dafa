"""Random programs of requests, said to Kafka's broker and to ours in lock step, and their answers compared."""
