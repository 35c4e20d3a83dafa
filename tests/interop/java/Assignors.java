import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.*;

/**
 * Reads lines of JSON, each about a classic group; answers each with what Kafka's assignor assigns, or with the bytes that
 * a member sends.
 */
public class Assignors {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = MAPPER.readTree(line);
            JsonNode answer;
            try {
                switch (asked.get("asked").asText()) {
                    case "assign": answer = assign(asked); break;
                    case "user data": answer = userData(asked); break;
                    case "subscription": answer = subscription(asked); break;
                    default: answer = assignment(asked);
                }
            } catch (RuntimeException error) {
                answer = MAPPER.createObjectNode().put("error", error.toString());
            }
            System.out.println(MAPPER.writeValueAsString(answer));
        }
    }

    private static ConsumerPartitionAssignor assignor(JsonNode asked) {
        switch (asked.get("assignor").asText()) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            default: return new CooperativeStickyAssignor();
        }
    }

    private static JsonNode assign(JsonNode asked) {
        Map<String, Node> nodes = new HashMap<>();
        nodes.put("", new Node(0, "nowhere", 9092));
        List<PartitionInfo> partitions = new ArrayList<>();
        asked.get("topics").fields().forEachRemaining(topic -> {
            for (int partition = 0; partition < topic.getValue().size(); partition++) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : topic.getValue().get(partition))
                    replicas.add(nodes.computeIfAbsent(rack.asText(), name -> new Node(nodes.size(), "there", 9092, name)));
                if (replicas.isEmpty()) replicas.add(nodes.get(""));
                Node[] all = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.getKey(), partition, all[0], all, all));
            }
        });
        Cluster cluster = new Cluster("c", nodes.values(), partitions, Set.of(), Set.of());
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : asked.get("members")) {
            Subscription told = ConsumerProtocol.deserializeSubscription(bytes(member.get("subscription")));
            if (!member.get("instance").isNull()) told.setGroupInstanceId(Optional.of(member.get("instance").asText()));
            subscriptions.put(member.get("id").asText(), told);
        }
        ObjectNode answer = MAPPER.createObjectNode();
        assignor(asked).assign(cluster, new GroupSubscription(subscriptions)).groupAssignment().forEach((member, given) ->
            answer.put(member, hexadecimal(ConsumerProtocol.serializeAssignment(given))));
        return answer;
    }

    private static JsonNode userData(JsonNode asked) {
        ConsumerPartitionAssignor assignor = assignor(asked);
        if (asked.has("generation"))
            assignor.onAssignment(
                new Assignment(partitions(asked)),
                new ConsumerGroupMetadata("g", asked.get("generation").asInt(), "m", Optional.empty()));
        ByteBuffer data = assignor.subscriptionUserData(Set.of());
        return data == null ? NullNode.instance : new TextNode(hexadecimal(data));
    }

    private static JsonNode subscription(JsonNode asked) {
        List<String> topics = new ArrayList<>();
        asked.get("topics").forEach(topic -> topics.add(topic.asText()));
        ByteBuffer data = asked.get("user_data").isNull() ? null : bytes(asked.get("user_data"));
        Optional<String> rack = Optional.ofNullable(asked.get("rack").textValue());
        Subscription told = new Subscription(topics, data, partitions(asked), asked.get("generation").asInt(), rack);
        return new TextNode(hexadecimal(ConsumerProtocol.serializeSubscription(told, (short) asked.get("version").asInt())));
    }

    private static JsonNode assignment(JsonNode asked) {
        ByteBuffer data = asked.get("user_data").isNull() ? null : bytes(asked.get("user_data"));
        Assignment given = new Assignment(partitions(asked), data);
        return new TextNode(hexadecimal(ConsumerProtocol.serializeAssignment(given, (short) asked.get("version").asInt())));
    }

    private static List<TopicPartition> partitions(JsonNode asked) {
        List<TopicPartition> partitions = new ArrayList<>();
        for (JsonNode pair : asked.get("partitions"))
            partitions.add(new TopicPartition(pair.get(0).asText(), pair.get(1).asInt()));
        return partitions;
    }

    private static ByteBuffer bytes(JsonNode hexadecimal) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(hexadecimal.asText()));
    }

    private static String hexadecimal(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
