import java.io.*;
import java.time.Duration;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.*;

/**
 * A member of a group until it is told to leave; its arguments are told in tests/interop/group_members.py.
 */
public class Member {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", RangeAssignor.class.getName(), "roundrobin", RoundRobinAssignor.class.getName(),
        "sticky", StickyAssignor.class.getName(), "cooperative-sticky", CooperativeStickyAssignor.class.getName());
    private static volatile boolean leaving = false;

    public static void main(String[] given) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", given[0], "group.id", given[2],
            "auto.offset.reset", "earliest", "enable.auto.commit", false, "isolation.level", "read_committed"));
        if (given[3].equals("consumer"))
            settings.put("group.protocol", "consumer");
        else
            settings.putAll(Map.of("partition.assignment.strategy", ASSIGNORS.get(given[3]),
                "session.timeout.ms", 3000, "heartbeat.interval.ms", 300));
        String target = given.length > 5 ? given[5] : null;
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            leaving = true;
            try {
                main.join();
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }));
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (PrintStream out = new PrintStream(new FileOutputStream(given[4], true), true, "UTF-8");
                KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes);
                KafkaProducer<byte[], byte[]> producer = target == null ? null : producer(given[0], given[4])) {
            if (producer != null) producer.initTransactions();
            consumer.subscribe(List.of(given[1]));
            String before = "";
            while (!leaving) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                String assigned = consumer.assignment().stream().map(TopicPartition::partition).sorted()
                    .map(String::valueOf).collect(Collectors.joining(" "));
                if (!assigned.equals(before)) out.println("= " + assigned);
                before = assigned;
                if (records.isEmpty()) continue;
                if (producer != null) {
                    copy(consumer, producer, records, target);
                    continue;
                }
                StringBuilder lines = new StringBuilder();
                for (ConsumerRecord<byte[], byte[]> record : records) lines.append(new String(record.value())).append('\n');
                out.print(lines);
                out.flush();
                try {
                    consumer.commitSync();
                } catch (CommitFailedException | RebalanceInProgressException | TimeoutException ignored) {
                    continue; // who has the partition now reads these again
                }
            }
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String id) {
        ByteArraySerializer bytes = new ByteArraySerializer();
        return new KafkaProducer<>(
            Map.of("bootstrap.servers", bootstrap, "transactional.id", id, "transaction.timeout.ms", 5000), bytes, bytes);
    }

    private static void copy(KafkaConsumer<byte[], byte[]> consumer, KafkaProducer<byte[], byte[]> producer,
            ConsumerRecords<byte[], byte[]> records, String target) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        try {
            producer.beginTransaction();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                producer.send(new ProducerRecord<>(target, record.value()));
                offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.commitTransaction();
        } catch (ProducerFencedException fenced) {
            throw fenced;
        } catch (KafkaException failed) {
            producer.abortTransaction();
            Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
            for (TopicPartition partition : consumer.assignment()) {
                OffsetAndMetadata at = committed.get(partition);
                if (at == null) consumer.seekToBeginning(List.of(partition)); else consumer.seek(partition, at);
            }
        }
    }
}
