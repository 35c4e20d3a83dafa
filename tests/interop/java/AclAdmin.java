import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/**
 * Java's Admin. A line is where a broker listens and, behind tabs, "describe", or a topic, ALLOW or DENY, and the host
 * of an ACL that nobody, a principal, may describe it. The answers: all ACLs in Java's words, or what became of the one.
 */
public class AclAdmin {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        Map<String, Admin> admins = new HashMap<>();
        List<String> answers = new ArrayList<>();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] asked = line.split("\t", -1);
            Admin admin = admins.computeIfAbsent(asked[0], at -> Admin.create(Map.of("bootstrap.servers", at)));
            answers.add(asked.length == 2 ? described(admin) : created(admin, asked[1], asked[2], asked[3]));
        }
        admins.values().forEach(Admin::close);
        answers.forEach(System.out::println);
    }

    private static String described(Admin admin) throws Exception {
        TreeSet<String> told = new TreeSet<>();
        for (AclBinding each : admin.describeAcls(AclBindingFilter.ANY).values().get()) {
            told.add(each.toString());
        }
        return String.join("; ", told);
    }

    private static String created(Admin admin, String topic, String permission, String host) throws Exception {
        AccessControlEntry entry = new AccessControlEntry(
            "User:nobody", host, AclOperation.DESCRIBE, AclPermissionType.valueOf(permission));
        AclBinding acl = new AclBinding(new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL), entry);
        try {
            admin.createAcls(List.of(acl)).all().get();
            return "created";
        } catch (ExecutionException refused) {
            return refused.getCause().getClass().getSimpleName();
        }
    }
}
