// What the Java client asks of a broker: a line for each case.

import static org.apache.kafka.clients.admin.AlterConfigOp.OpType.SET;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ElectionNotNeededException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Client {
    static final String BOOTSTRAP = System.getenv("BOOTSTRAP");
    static final int LIMIT_S = 60;
    static final int FAILED = 3;

    static class NotRun extends Exception {
        NotRun(String reason) { super(reason); }
    }

    static String given(String variable) throws NotRun {
        String value = System.getenv(variable);
        if (value == null) throw new NotRun("the broker was started without " + variable);
        return value;
    }

    static void check(String what, Object found, Object wanted) {
        if (!found.equals(wanted)) throw new AssertionError(what + ": " + found + " is not " + wanted);
    }

    static void until(String what, BooleanSupplier holds) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (!holds.getAsBoolean())
            if (System.nanoTime() > deadline) throw new AssertionError(what + ": not within 30 seconds");
    }

    static String fresh(String prefix) { return prefix + UUID.randomUUID().toString().substring(0, 8); }

    static Map<String, Object> options(Object... pairs) {
        Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", BOOTSTRAP));
        for (int i = 0; i < pairs.length; i += 2) all.put((String) pairs[i], pairs[i + 1]);
        return all;
    }

    static Admin admin(Object... pairs) { return Admin.create(options(pairs)); }

    static KafkaProducer<String, String> producer(Object... pairs) {
        return new KafkaProducer<>(options(pairs), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(Object... pairs) {
        Map<String, Object> all = options("auto.offset.reset", "earliest", "enable.auto.commit", false);
        for (int i = 0; i < pairs.length; i += 2) all.put((String) pairs[i], pairs[i + 1]);
        return new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer());
    }

    static String newTopic(int partitions) throws Exception {
        String name = fresh("t-");
        try (Admin admin = admin()) {
            admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
        }
        return name;
    }

    static List<Long> send(KafkaProducer<String, String> producer, String topic, int partition, int count, String tag)
            throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            ProducerRecord<String, String> record = new ProducerRecord<>(topic, partition, "k" + i, tag + i);
            if (i % 2 == 1) record.headers().add("origin", "EWR".getBytes()).add("origin", null);
            sent.add(producer.send(record));
        }
        producer.flush();
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> future : sent) offsets.add(future.get().offset());
        return offsets;
    }

    static List<ConsumerRecord<String, String>> readAll(String topic, int count, Object... pairs) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(pairs)) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            until(count + " records", () -> {
                consumer.poll(Duration.ofMillis(100)).forEach(found::add);
                return found.size() >= count;
            });
        }
        return found;
    }

    static void topics() throws Exception {
        String name = newTopic(3);
        try (Admin admin = admin()) {
            check("partitions", admin.describeTopics(List.of(name)).allTopicNames().get().get(name).partitions().size(), 3);
            admin.deleteTopics(List.of(name)).all().get();
            check("deleted", admin.listTopics().names().get().contains(name), false);
        }
    }

    static void codec(String name) throws Exception {
        String topic = newTopic(1);
        try (KafkaProducer<String, String> producer = producer("compression.type", name, "linger.ms", 20)) {
            List<Long> offsets = send(producer, topic, 0, 300, name);
            check("last offset", offsets.get(299), 299L);
        }
        List<ConsumerRecord<String, String>> found = readAll(topic, 300, "check.crcs", true);
        for (int i = 0; i < 300; i++) {
            check("value", found.get(i).value(), name + i);
            check("key", found.get(i).key(), "k" + i);
            RecordHeader[] headers = {new RecordHeader("origin", "EWR".getBytes()), new RecordHeader("origin", (byte[]) null)};
            check("headers", Arrays.asList(found.get(i).headers().toArray()), i % 2 == 1 ? Arrays.asList(headers) : List.of());
        }
    }

    static void produceIdempotent() throws Exception {
        String topic = newTopic(1);
        try (KafkaProducer<String, String> producer = producer("enable.idempotence", true, "batch.size", 500)) {
            List<Long> offsets = send(producer, topic, 0, 3000, "v");
            for (int i = 0; i < 3000; i++) check("offset", offsets.get(i), (long) i);
        }
        check("records", readAll(topic, 3000).size(), 3000);
    }

    static void rebalance(Object... pairs) throws Exception {
        String topic = newTopic(4);
        Object[] all = Arrays.copyOf(pairs, pairs.length + 2);
        all[pairs.length] = "group.id";
        all[pairs.length + 1] = fresh("g-");
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<String, String> first = consumer(all)) {
            first.subscribe(List.of(topic));
            until("four partitions", () -> poll(first, found) == 4);
            try (KafkaConsumer<String, String> second = consumer(all); KafkaProducer<String, String> producer = producer()) {
                second.subscribe(List.of(topic));
                until("two partitions each", () -> poll(first, found) == 2 & poll(second, found) == 2);
                for (int partition = 0; partition < 4; partition++) send(producer, topic, partition, 50, partition + "-");
                until("every record", () -> {
                    poll(first, found);
                    poll(second, found);
                    return found.size() >= 200;
                });
                first.commitSync();
                second.commitSync();
            }
            until("the partitions of who left", () -> poll(first, found) == 4);
            check("records", found.size(), 200);
            check("different records", new HashSet<>(found).size(), 200);
            check("committed", first.committed(Set.of(new TopicPartition(topic, 3))).values().iterator().next().offset(), 50L);
        }
    }

    static int poll(KafkaConsumer<String, String> consumer, List<String> found) {
        consumer.poll(Duration.ofMillis(50)).forEach(record -> found.add(record.value()));
        return consumer.assignment().size();
    }

    static void transactions() throws Exception {
        String topic = newTopic(1);
        try (KafkaProducer<String, String> producer = producer("transactional.id", "x-" + topic)) {
            producer.initTransactions();
            for (int number = 0; number < 3; number++) {
                producer.beginTransaction();
                send(producer, topic, 0, 10, number + "-");
                if (number == 1) producer.abortTransaction(); else producer.commitTransaction();
            }
        }
        List<ConsumerRecord<String, String>> committed = readAll(topic, 20, "isolation.level", "read_committed");
        check("first", committed.get(0).value(), "0-0");
        check("after the aborted", committed.get(10).value(), "2-0");
        check("all", readAll(topic, 30).size(), 30);
    }

    static void transactionWithOffsets() throws Exception {
        String source = newTopic(1), target = newTopic(1), group = fresh("g-");
        try (KafkaProducer<String, String> producer = producer("transactional.id", "x-" + target);
                KafkaConsumer<String, String> consumer = consumer("group.id", group)) {
            try (KafkaProducer<String, String> plain = producer()) { send(plain, source, 0, 20, "v"); }
            consumer.subscribe(List.of(source));
            List<String> found = new ArrayList<>();
            until("20 records", () -> { poll(consumer, found); return found.size() == 20; });
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, target, 0, 20, "copy-");
            TopicPartition partition = new TopicPartition(source, 0);
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(20, "a note")), consumer.groupMetadata());
            producer.commitTransaction();
            check("committed", consumer.committed(Set.of(partition)).get(partition), new OffsetAndMetadata(20, "a note"));
        }
        check("copied", readAll(target, 20, "isolation.level", "read_committed").size(), 20);
    }

    static void transactionFenced() throws Exception {
        String topic = newTopic(1);
        try (KafkaProducer<String, String> old = producer("transactional.id", "x-" + topic);
                KafkaProducer<String, String> now = producer("transactional.id", "x-" + topic)) {
            old.initTransactions();
            old.beginTransaction();
            send(old, topic, 0, 1, "old");
            now.initTransactions();
            try {
                old.commitTransaction();
            } catch (ProducerFencedException expected) {
                return;
            }
            throw new AssertionError("the older producer was not fenced");
        }
    }

    static void adminPartitions() throws Exception {
        String topic = newTopic(1);
        try (Admin admin = admin()) {
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get();
            check("partitions", admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size(), 4);
        }
    }

    static void adminDescribeInPieces() throws Exception {
        List<String> names = List.of(newTopic(5), newTopic(1), newTopic(4));
        try (Admin admin = admin()) {
            var few = new DescribeTopicsOptions().partitionSizeLimitPerResponse(2);
            var found = admin.describeTopics(names, few).allTopicNames().get();
            check("partitions", names.stream().map(name -> found.get(name).partitions().size()).toList(), List.of(5, 1, 4));
            check("leader", found.get(names.get(0)).partitions().get(4).leader().id(), 1);
            check("eligible", found.get(names.get(0)).partitions().get(4).elr(), List.of());
            check("gone", refusal(admin.describeTopics(List.of("gone")).allTopicNames()), UnknownTopicOrPartitionException.class);
        }
    }

    static void adminConfigs() throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, newTopic(1));
        try (Admin admin = admin()) {
            AlterConfigOp change = new AlterConfigOp(new ConfigEntry("retention.ms", "123456"), SET);
            admin.incrementalAlterConfigs(Map.of(topic, List.of(change))).all().get();
            ConfigEntry found = admin.describeConfigs(List.of(topic)).all().get().get(topic).get("retention.ms");
            check("retention.ms", found.value(), "123456");
            check("source", found.source(), ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG);
        }
    }

    static void adminDeleteRecords() throws Exception {
        TopicPartition partition = new TopicPartition(newTopic(1), 0);
        try (Admin admin = admin(); KafkaProducer<String, String> producer = producer()) {
            send(producer, partition.topic(), 0, 10, "v");
            admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(4))).all().get();
            check("start", admin.listOffsets(Map.of(partition, OffsetSpec.earliest())).all().get().get(partition).offset(), 4L);
        }
    }

    static void adminOffsets() throws Exception {
        TopicPartition partition = new TopicPartition(newTopic(1), 0);
        try (Admin admin = admin(); KafkaProducer<String, String> producer = producer()) {
            for (int i = 0; i < 10; i++)
                producer.send(new ProducerRecord<>(partition.topic(), 0, 1000L + 10 * (9 - i), "k", "v")).get();
            check("by time", offset(admin, partition, OffsetSpec.forTimestamp(1045)), 0L);
            check("greatest time", offset(admin, partition, OffsetSpec.maxTimestamp()), 0L);
            check("end", offset(admin, partition, OffsetSpec.latest()), 10L);
        }
    }

    static long offset(Admin admin, TopicPartition partition, OffsetSpec which) throws Exception {
        return admin.listOffsets(Map.of(partition, which)).all().get().get(partition).offset();
    }

    static void adminGroups() throws Exception {
        String group = fresh("g-");
        TopicPartition partition = new TopicPartition(newTopic(1), 0);
        try (Admin admin = admin()) {
            admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(5, "a note"))).all().get();
            Map<TopicPartition, OffsetAndMetadata> found =
                    admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
            check("offsets", found, Map.of(partition, new OffsetAndMetadata(5, "a note")));
            check("listed", admin.listConsumerGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group)), true);
            check("members", admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().size(), 0);
            admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get();
            admin.deleteConsumerGroups(List.of(group)).all().get();
        }
    }

    static void adminCluster() throws Exception {
        String topic = newTopic(1);
        try (Admin admin = admin()) {
            var node = admin.describeCluster().nodes().get().iterator().next();
            check("broker", node.host() + ":" + node.port(), BOOTSTRAP);
            check("log directories", admin.describeLogDirs(List.of(node.id())).allDescriptions().get().size(), 1);
        }
    }

    static void adminOneNode() throws Exception {
        TopicPartition partition = new TopicPartition(newTopic(1), 0);
        try (Admin admin = admin()) {
            check("moving", admin.listPartitionReassignments().reassignments().get(), Map.of());
            var stay = Map.of(partition, Optional.of(new NewPartitionReassignment(List.of(1))));
            admin.alterPartitionReassignments(stay).all().get();
            var elected = admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).partitions().get();
            check("elected", elected.get(partition).get().getClass(), ElectionNotNeededException.class);
            check("everywhere", admin.electLeaders(ElectionType.PREFERRED, null).partitions().get(), Map.of());
            check("quotas", admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get(), Map.of());
            boolean told = admin.describeUserScramCredentials().all().get().containsKey(System.getenv("SASL_USER"));
            check("users", told, System.getenv("SASL_USER") != null);
            check("acls", refusal(admin.describeAcls(AclBindingFilter.ANY).values()), SecurityDisabledException.class);
        }
    }

    static Class<?> refusal(Future<?> asked) throws Exception {
        try {
            return asked.get().getClass();
        } catch (ExecutionException error) {
            return error.getCause().getClass();
        }
    }

    static void adminSettingsOfClusters() throws Exception {
        NewTopic topic = new NewTopic(fresh("t-"), 1, (short) 1).configs(Map.of(
                "min.insync.replicas", "2", "unclean.leader.election.enable", "false", "flush.messages", "1"));
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic.name());
        try (Admin admin = admin(); KafkaProducer<String, String> producer = producer("acks", "all")) {
            admin.createTopics(List.of(topic)).all().get();
            var found = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            check("min.insync.replicas", found.get("min.insync.replicas").value(), "2");
            check("type", found.get("preallocate").type(), ConfigEntry.ConfigType.BOOLEAN);
            check("offset", send(producer, topic.name(), 0, 1, "v"), List.of(0L));
        }
    }

    static void closesAtOnce() throws Exception {
        TopicPartition first = new TopicPartition(newTopic(2), 0), second = new TopicPartition(first.topic(), 1);
        KafkaConsumer<String, String> consumer = consumer("fetch.max.wait.ms", 25_000, "request.timeout.ms", 40_000);
        try (KafkaProducer<String, String> producer = producer()) {
            consumer.assign(List.of(first, second));
            for (TopicPartition partition : List.of(first, second, first)) {
                send(producer, partition.topic(), partition.partition(), 1, "v");
                until("a record", () -> consumer.poll(Duration.ofMillis(100)).count() == 1);
            }
            send(producer, first.topic(), 0, 1, "answers the fetch that is on its way");
        }
        long began = System.nanoTime();
        consumer.close(Duration.ofSeconds(20));
        check("closed at once", System.nanoTime() - began < TimeUnit.SECONDS.toNanos(10), true);
    }

    static void adminTransactions() throws Exception {
        String topic = newTopic(1), id = "x-" + topic;
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Admin admin = admin(); KafkaProducer<String, String> producer = producer("transactional.id", id)) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, topic, 0, 1, "open");
            check("listed", admin.listTransactions().all().get().stream().anyMatch(t -> t.transactionalId().equals(id)), true);
            check("partitions", admin.describeTransactions(List.of(id)).all().get().get(id).topicPartitions(), Set.of(partition));
            var state = admin.describeProducers(Set.of(partition)).all().get().get(partition).activeProducers().get(0);
            check("started at", state.currentTransactionStartOffset().getAsLong(), 0L);
            producer.abortTransaction();
        }
    }

    static void roundTrip(Object... security) throws Exception {
        String topic = fresh("s-");
        try (KafkaProducer<String, String> producer = producer(security)) { send(producer, topic, 0, 1, "v"); }
        check("records", readAll(topic, 1, security).size(), 1);
    }

    static void tls() throws Exception {
        roundTrip("bootstrap.servers", given("TLS_BOOTSTRAP"), "security.protocol", "SSL", "ssl.truststore.type", "PEM",
                "ssl.truststore.location", given("CA_FILE"));
    }

    static Object[] login(String where, String protocol, String mechanism, String password) throws NotRun {
        String module = mechanism.equals("PLAIN") ? "plain.Plain" : "scram.Scram";
        String jaas = "org.apache.kafka.common.security." + module + "LoginModule required username=\"" + given("SASL_USER")
                + "\" password=\"" + password + "\";";
        return new Object[] {"bootstrap.servers", given(where), "security.protocol", protocol, "sasl.mechanism", mechanism,
            "sasl.jaas.config", jaas};
    }

    static void sasl(String mechanism) throws Exception {
        roundTrip(login("SASL_BOOTSTRAP", "SASL_PLAINTEXT", mechanism, given("SASL_PASSWORD")));
    }

    static void saslOverTls() throws Exception {
        List<Object> all = new ArrayList<>(
                List.of(login("SASL_TLS_BOOTSTRAP", "SASL_SSL", "SCRAM-SHA-512", given("SASL_PASSWORD"))));
        all.addAll(List.of("ssl.truststore.type", "PEM", "ssl.truststore.location", given("CA_FILE")));
        roundTrip(all.toArray());
    }

    static void saslWrongPassword() throws Exception {
        try (Admin admin = admin(login("SASL_BOOTSTRAP", "SASL_PLAINTEXT", "PLAIN", "not it"))) {
            admin.listTopics().names().get();
        } catch (ExecutionException refused) {
            check("refusal", refused.getCause().getClass(), SaslAuthenticationException.class);
            return;
        }
        throw new AssertionError("a wrong password was taken");
    }

    interface Case {
        void run() throws Exception;
    }

    public static void main(String[] chosen) throws Exception {
        Map<String, Case> cases = new LinkedHashMap<>();
        cases.put("topics", Client::topics);
        for (String name : List.of("none", "gzip", "snappy", "lz4", "zstd")) cases.put("codec-" + name, () -> codec(name));
        cases.put("produce-idempotent", Client::produceIdempotent);
        for (Class<?> assignor : List.of(RangeAssignor.class, CooperativeStickyAssignor.class))
            cases.put("group-rebalances-" + assignor.getSimpleName(),
                    () -> rebalance("partition.assignment.strategy", assignor.getName(), "heartbeat.interval.ms", 200));
        cases.put("transaction-committed-and-aborted", Client::transactions);
        cases.put("transaction-with-offsets", Client::transactionWithOffsets);
        cases.put("transaction-fenced", Client::transactionFenced);
        cases.put("admin-partitions", Client::adminPartitions);
        cases.put("admin-describe-in-pieces", Client::adminDescribeInPieces);
        cases.put("admin-configs", Client::adminConfigs);
        cases.put("admin-delete-records", Client::adminDeleteRecords);
        cases.put("admin-offsets", Client::adminOffsets);
        cases.put("admin-groups", Client::adminGroups);
        cases.put("admin-cluster", Client::adminCluster);
        cases.put("admin-one-node", Client::adminOneNode);
        cases.put("admin-settings-of-clusters", Client::adminSettingsOfClusters);
        cases.put("admin-transactions", Client::adminTransactions);
        cases.put("closes-at-once", Client::closesAtOnce);
        cases.put("tls", Client::tls);
        for (String name : List.of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")) cases.put("sasl-" + name, () -> sasl(name));
        cases.put("sasl-over-tls", Client::saslOverTls);
        cases.put("sasl-wrong-password", Client::saslWrongPassword);
        cases.put("group-848", () -> rebalance("group.protocol", "consumer"));
        System.exit(run(cases, Set.of(chosen)));
    }

    static int run(Map<String, Case> cases, Set<String> chosen) {
        ExecutorService thread = Executors.newCachedThreadPool();
        int code = 0;
        for (Map.Entry<String, Case> each : cases.entrySet()) {
            if (!chosen.isEmpty() && !chosen.contains(each.getKey())) continue;
            String name = System.getProperty("release") + "-" + each.getKey();
            Callable<Void> work = () -> { each.getValue().run(); return null; };
            try {
                thread.submit(work).get(LIMIT_S, TimeUnit.SECONDS);
                System.out.println("ok " + name);
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                boolean notRun = cause instanceof NotRun;
                if (!notRun) code = FAILED;
                String why = (cause instanceof NotRun ? cause.getMessage() : cause.toString()).replaceAll("\\s+", " ");
                System.out.println((notRun ? "NOT RUN " : "FAIL ") + name + ": " + why);
                if (!notRun) cause.printStackTrace();
            }
        }
        return code;
    }
}
