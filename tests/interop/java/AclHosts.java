import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.kafka.server.authorizer.internals.CidrUtils;

/** Hosts of ACLs: a line is what an ACL has and an address, with a tab between; "refused", "inside" or "outside". */
public class AclHosts {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] asked = line.split("\t", -1);
            answers.append(answer(asked[0], asked[1])).append('\n');
        }
        System.out.print(answers);
    }

    private static String answer(String host, String address) {
        try {
            CidrUtils.validate(host);
        } catch (IllegalArgumentException refusal) {
            return "refused";
        }
        return CidrUtils.isInRange(address, host) ? "inside" : "outside";
    }
}
