import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import java.io.*;
import java.lang.reflect.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;

/**
 * Reads lines of JSON, each about a group of KIP-848; answers each with the target of Kafka's assignor, and with the order
 * in which it took the topics.
 */
public class ServerAssignors {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = MAPPER.readTree(line);
            JsonNode answer;
            try {
                answer = assign(asked);
            } catch (RuntimeException error) {
                answer = MAPPER.createObjectNode().put("error", error.toString());
            }
            System.out.println(MAPPER.writeValueAsString(answer));
        }
    }

    private static JsonNode assign(JsonNode asked) {
        Map<Uuid, Integer> topics = new HashMap<>();
        asked.get("topics").fields().forEachRemaining(topic -> topics.put(Uuid.fromString(topic.getKey()), topic.getValue().asInt()));
        Map<String, Object> subscriptions = new LinkedHashMap<>();
        Map<String, Object> targets = new LinkedHashMap<>();
        Set<Set<Uuid>> wishes = new HashSet<>();
        Set<List<Object>> assigned = new HashSet<>();
        for (JsonNode member : asked.get("members")) {
            Set<Uuid> wanted = new HashSet<>();
            member.get("topics").forEach(topic -> wanted.add(Uuid.fromString(topic.asText())));
            wishes.add(wanted);
            Map<Uuid, Set<Integer>> target = new LinkedHashMap<>();
            member.get("target").fields().forEachRemaining(topic -> {
                Uuid id = Uuid.fromString(topic.getKey());
                topic.getValue().forEach(one -> {
                    target.computeIfAbsent(id, __ -> new TreeSet<>()).add(one.asInt());
                    assigned.add(List.of(id, one.asInt()));
                });
            });
            String id = member.get("id").asText();
            Optional<String> instance = Optional.ofNullable(member.get("instance").textValue());
            subscriptions.put(id, proxy(MemberSubscription.class, Map.of(
                "subscribedTopicIds", wanted, "instanceId", instance, "rackId", Optional.empty())));
            targets.put(id, proxy(MemberAssignment.class, Map.of("partitions", Collections.unmodifiableMap(target))));
        }
        GroupSpec group = (GroupSpec) Proxy.newProxyInstance(GroupSpec.class.getClassLoader(), new Class<?>[] {GroupSpec.class},
            (self, method, given) -> {
                switch (method.getName()) {
                    case "memberIds": return subscriptions.keySet();
                    case "subscriptionType": return wishes.size() > 1 ? SubscriptionType.HETEROGENEOUS : SubscriptionType.HOMOGENEOUS;
                    case "isPartitionAssigned": return assigned.contains(List.of(given[0], given[1]));
                    case "isPartitionAssignable": return true;
                    case "memberSubscription": return subscriptions.get(given[0]);
                    default: return targets.get(given[0]);
                }
            });
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) { return topics.getOrDefault(topic, -1); }
            public Set<String> racksForPartition(Uuid topic, int partition) { return Set.of(); }
        };
        ConsumerGroupPartitionAssignor assignor =
            asked.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        ObjectNode target = MAPPER.createObjectNode();
        assignor.assign(group, describer).members().forEach((member, given) -> {
            ObjectNode of = target.putObject(member);
            given.partitions().forEach((topic, partitions) -> {
                ArrayNode numbers = of.putArray(topic.toString());
                new TreeSet<>(partitions).forEach(numbers::add);
            });
        });
        ObjectNode answer = MAPPER.createObjectNode();
        answer.set("target", target);
        ArrayNode order = answer.putArray("order");
        if (wishes.size() == 1) new HashSet<>(wishes.iterator().next()).forEach(topic -> order.add(topic.toString()));
        return answer;
    }

    private static Object proxy(Class<?> type, Map<String, Object> answers) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, given) -> answers.get(method.getName()));
    }
}
