import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.streams.tests.SmokeTestDriver;

/** Drives Kafka Streams' own smoke test: {@code StreamsSmoke BOOTSTRAP}. Makes its topics, sends its records, then
 * judges by the driver's own rules of exactly once what its clients made of them; exits with 0 if those hold. */
public class StreamsSmoke {
    static final int PARTITIONS = 3, KEYS = 10, RECORDS_PER_KEY = 500;
    static final Duration SENDING = Duration.ofSeconds(30);

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(Arrays.stream(SmokeTestDriver.topics())
                    .map(name -> new NewTopic(name, PARTITIONS, (short) 1)).toList()).all().get();
        }
        System.out.println("topics made");
        Map<String, Set<Integer>> sent = SmokeTestDriver.generate(bootstrap, KEYS, RECORDS_PER_KEY, SENDING);
        System.out.println("all sent");
        System.exit(SmokeTestDriver.verify(bootstrap, sent, RECORDS_PER_KEY, true).passed() ? 0 : 1);
    }
}
