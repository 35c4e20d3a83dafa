import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;

/** The part of {@link Walk} for releases that have a client for administration, which is 0.11 and on. */
public class MakeTopic {
    public static void make(String bootstrap, String topic, String id) throws Exception {
        try (AdminClient admin = AdminClient.create(Walk.options("bootstrap.servers", bootstrap, "client.id", id))) {
            admin.createTopics(Collections.singleton(new NewTopic(topic, 1, (short) 1))).all().get(10, TimeUnit.SECONDS);
        }
    }
}
