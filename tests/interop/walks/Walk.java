import java.time.Duration;
import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

/** A walk of Kafka's own client, by what every release has: {@code Walk BOOTSTRAP TOPIC CLIENT_ID}. */
public class Walk {
    static final int RECORDS = 20;

    static Properties options(String... pairs) {
        Properties options = new Properties();
        for (int at = 0; at < pairs.length; at += 2) options.setProperty(pairs[at], pairs[at + 1]);
        return options;
    }

    /** By reflection: the argument was milliseconds until 2.0, and is a Duration since. */
    @SuppressWarnings("unchecked")
    static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer) throws Exception {
        try {
            return (ConsumerRecords<byte[], byte[]>)
                    KafkaConsumer.class.getMethod("poll", Duration.class).invoke(consumer, Duration.ofMillis(200));
        } catch (NoSuchMethodException old) {
            return (ConsumerRecords<byte[], byte[]>)
                    KafkaConsumer.class.getMethod("poll", long.class).invoke(consumer, 200L);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1], id = arguments[2];
        List<String> values = new ArrayList<>(), found = new ArrayList<>();
        Properties producing = options("bootstrap.servers", bootstrap, "client.id", id, "acks", "all",
                "compression.type", "gzip", "request.timeout.ms", "8000", "max.block.ms", "8000");
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(producing, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < RECORDS; number++) {
                values.add("" + number);
                producer.send(new ProducerRecord<byte[], byte[]>(topic, ("" + number).getBytes())).get(10, TimeUnit.SECONDS);
            }
        }
        System.out.println("ok produce");
        Properties consuming = options("bootstrap.servers", bootstrap, "client.id", id, "group.id", "g-" + topic,
                "auto.offset.reset", "earliest", "enable.auto.commit", "false");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(consuming, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(Collections.singletonList(topic));
            for (int tries = 0; found.size() < RECORDS && tries < 60; tries++)
                for (ConsumerRecord<byte[], byte[]> record : poll(consumer)) found.add(new String(record.value()));
            consumer.commitSync();
        }
        if (!found.equals(values)) throw new AssertionError(found);
        System.out.println("ok consume");
        try {
            Class.forName("MakeTopic").getMethod("make", String.class, String.class, String.class)
                    .invoke(null, bootstrap, topic + "-made", id);
            System.out.println("ok admin");
        } catch (ClassNotFoundException tooOld) {
            // its release has no client for that
        }
    }
}
