import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What tests/interop/test_acl_clients.py tells, by Java's clients; what becomes of each is printed. */
public class AclClient {
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final Map<String, Object> login = new HashMap<>();

    private interface Work {
        void run() throws Exception;
    }

    private AclClient(String bootstrap, String user, String password) {
        String module = "org.apache.kafka.common.security.plain.PlainLoginModule";
        login.put("bootstrap.servers", bootstrap);
        login.put("security.protocol", "SASL_PLAINTEXT");
        login.put("sasl.mechanism", "PLAIN");
        login.put("sasl.jaas.config", module + " required username=\"" + user + "\" password=\"" + password + "\";");
    }

    public static void main(String[] arguments) {
        AclClient client = new AclClient(arguments[0], arguments[1], arguments[2]);
        say("allowed-topic", () -> client.send("shop.orders"));
        say("denied-topic", () -> client.send("shop.secret"));
        say("unnamed-topic", () -> client.send("other"));
        say("allowed-group", () -> client.fetch("shop.orders", "shop.readers"));
        say("denied-group", () -> client.fetch("shop.orders", "others"));
        say("denied-read", () -> client.fetch("shop.secret", "shop.readers-2"));
        say("allowed-transaction", () -> client.transact("shop.tx", "shop.orders"));
        say("denied-transaction", () -> client.transact("others", "shop.orders"));
    }

    private static void say(String what, Work work) {
        String told = "NONE";
        try {
            work.run();
        } catch (ExecutionException refused) {
            told = Errors.forException(refused.getCause()).name();
        } catch (Exception refused) {
            told = Errors.forException(refused).name();
        }
        System.out.println(what + " " + told);
    }

    private Map<String, Object> with(String name, String value) {
        Map<String, Object> settings = new HashMap<>(login);
        settings.put(name, value);
        return settings;
    }

    private static KafkaProducer<byte[], byte[]> producer(Map<String, Object> settings) {
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static ProducerRecord<byte[], byte[]> one(String topic) {
        return new ProducerRecord<>(topic, "v".getBytes());
    }

    private void send(String topic) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(login)) {
            producer.send(one(topic)).get();
        }
    }

    private void fetch(String topic, String group) {
        Map<String, Object> settings = with("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            long until = System.nanoTime() + PATIENCE.toNanos();
            while (consumer.poll(Duration.ofSeconds(1)).isEmpty()) {
                if (System.nanoTime() > until) {
                    throw new IllegalStateException(group);
                }
            }
        }
    }

    private void transact(String id, String topic) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(with("transactional.id", id))) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(one(topic)).get();
            producer.commitTransaction();
        }
    }
}
