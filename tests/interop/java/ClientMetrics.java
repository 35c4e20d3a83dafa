import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.*;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;

/** Produces and consumes records, and says what its clients measured: each line is "bootstrap topic group records". */
public class ClientMetrics {
    private static Map<String, Map<String, Object>> plain(Map<MetricName, ? extends Metric> metrics) {
        Map<String, Map<String, Object>> found = new TreeMap<>();
        for (Metric metric : metrics.values()) {
            Map<String, String> tags = new LinkedHashMap<>(metric.metricName().tags());
            tags.remove("client-id");
            String topic = tags.remove("topic"), partition = tags.remove("partition"), node = tags.remove("node-id");
            String tag = topic != null ? topic + (partition == null ? "" : "-" + partition) : node;
            String group = metric.metricName().group() + (tag == null ? "" : "." + tag);
            Object value = metric.metricValue();
            boolean isNumber = value instanceof Double && !((Double) value).isNaN() && !((Double) value).isInfinite();
            found.computeIfAbsent(group, ignored -> new TreeMap<>())
                    .put(metric.metricName().name(), isNumber ? value : null);
        }
        return found;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            String[] words = line.split(" ");
            int records = Integer.parseInt(words[3]);
            Map<String, Object> told = new TreeMap<>();
            Properties own = new Properties();
            own.put("bootstrap.servers", words[0]);
            own.put("group.id", words[2]);
            own.put("auto.offset.reset", "earliest");
            own.put("enable.auto.commit", "false");
            own.put("enable.metrics.push", "false");
            byte[] value = new byte[100];
            try (KafkaProducer<byte[], byte[]> producer =
                    new KafkaProducer<>(own, new ByteArraySerializer(), new ByteArraySerializer())) {
                for (int i = 0; i < records; i++) producer.send(new ProducerRecord<>(words[1], value));
                producer.flush();
                told.put("producer", plain(producer.metrics()));
            }
            try (KafkaConsumer<byte[], byte[]> consumer =
                    new KafkaConsumer<>(own, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(words[1]));
                for (int seen = 0; seen < records; ) seen += consumer.poll(Duration.ofSeconds(1)).count();
                consumer.commitSync();
                told.put("consumer", plain(consumer.metrics()));
            }
            System.out.println(new ObjectMapper().writeValueAsString(told));
        }
    }
}
