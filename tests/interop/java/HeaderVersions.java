import java.io.*;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.message.ApiMessageType;

/** Reads lines of an API key and a version; answers each with its request and response header versions, or with {@code -}. */
public class HeaderVersions {
    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] asked = line.split(" ");
            System.out.println(answer(Short.parseShort(asked[0]), Short.parseShort(asked[1])));
        }
    }

    private static String answer(short api, short version) {
        try {
            ApiMessageType type = ApiMessageType.fromApiKey(api);
            if (version < type.lowestSupportedVersion() || version > type.highestSupportedVersion(true)) return "-";
            return type.requestHeaderVersion(version) + " " + type.responseHeaderVersion(version);
        } catch (RuntimeException error) { // there is no such API
            return "-";
        }
    }
}
