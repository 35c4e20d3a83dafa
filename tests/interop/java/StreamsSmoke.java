import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.tests.SmokeTestDriver;

/** Drives Kafka Streams' own smoke test: {@code StreamsSmoke BOOTSTRAP}. Makes its topics, sends its records, then
 * judges by the driver's own rules of exactly once what its clients made of them; exits with 0 if those hold. */
public class StreamsSmoke {
    static final int PARTITIONS = 3, KEYS = 10, RECORDS_PER_KEY = 500;
    static final Duration SENDING = Duration.ofSeconds(30), QUIET = Duration.ofSeconds(3), PATIENCE = Duration.ofSeconds(90);

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(Arrays.stream(SmokeTestDriver.topics())
                    .map(name -> new NewTopic(name, PARTITIONS, (short) 1)).toList()).all().get();
            System.out.println("topics made");
            Map<String, Set<Integer>> sent = SmokeTestDriver.generate(bootstrap, KEYS, RECORDS_PER_KEY, SENDING);
            System.out.println("all sent");
            settle(admin);
            System.out.println("settled");
            System.exit(SmokeTestDriver.verify(bootstrap, sent, RECORDS_PER_KEY, true).passed() ? 0 : 1);
        }
    }

    /** Waits until the clients write no more. The driver holds two ends of each topic against each other that it asks for
     * one after the other, and takes a transaction that is committed in between for a fault. */
    static void settle(Admin admin) throws Exception {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        Map<TopicPartition, Long> before = Map.of();
        while (System.nanoTime() < deadline) {
            Map<TopicPartition, Long> committed = ends(admin, IsolationLevel.READ_COMMITTED);
            if (committed.equals(before) && committed.equals(ends(admin, IsolationLevel.READ_UNCOMMITTED))) return;
            before = committed;
            Thread.sleep(QUIET.toMillis());
        }
        throw new AssertionError("transactions are open, or made, after " + PATIENCE);
    }

    static Map<TopicPartition, Long> ends(Admin admin, IsolationLevel isolation) throws Exception {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        for (String name : SmokeTestDriver.topics())
            for (int i = 0; i < PARTITIONS; i++) asked.put(new TopicPartition(name, i), OffsetSpec.latest());
        return admin.listOffsets(asked, new ListOffsetsOptions(isolation)).all().get().entrySet().stream()
                .collect(Collectors.toMap(Map.Entry::getKey, each -> each.getValue().offset()));
    }
}
