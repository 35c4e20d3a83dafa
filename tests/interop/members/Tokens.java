import java.util.Map;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A producer that comes in by an unsecured bearer token; what it does is told in tests/interop/test_tokens_and_quotas.py.
 */
public class Tokens {
    public static void main(String[] given) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", given[0], "client.id", "java",
            "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "OAUTHBEARER",
            "sasl.jaas.config", "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                + "unsecuredLoginStringClaim_sub=\"alice\";");
        ByteArraySerializer bytes = new ByteArraySerializer();
        int sent = 0;
        double throttled = 0;
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
            long until = Long.MAX_VALUE; // from the first record on: it may take long to come in
            while (System.currentTimeMillis() < until) {
                int size = sent < 3 ? 50_000 : 10;
                producer.send(new ProducerRecord<>(given[1], new byte[size])).get();
                if (sent++ == 0)
                    until = System.currentTimeMillis() + Long.parseLong(given[2]);
                Thread.sleep(100);
            }
            for (var metric : producer.metrics().values())
                if (metric.metricName().name().equals("produce-throttle-time-max"))
                    throttled = Math.max(throttled, (double) metric.metricValue());
        }
        System.out.println(Math.round(throttled) + " " + sent);
    }
}
