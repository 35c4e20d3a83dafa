import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.concurrent.Callable;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Answers, line by line, what Kafka's own generated classes make of a message. Fields are separated by tabs.
 *
 * <p>`CLASS` is answered by `LOWEST HIGHEST`, the versions that the class knows. `CLASS VERSION HEX JSON` is answered
 * by three fields: the bytes written again after reading HEX, the JSON form of what was read, and the bytes written
 * after reading JSON. A field is `-` where the class has no JSON form, and `!` with the error where there was one.
 */
public final class Messages {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t");
            out.println(fields.length == 1 ? field(() -> versions(fields[0])) : answer(fields));
        }
        out.flush();
    }

    private static String versions(String name) throws Exception {
        Message message = fresh(name);
        return message.lowestSupportedVersion() + "\t" + message.highestSupportedVersion();
    }

    private static String answer(String[] fields) {
        String name = fields[0];
        short version = Short.parseShort(fields[1]);
        String hex = field(() -> hex(read(name, version, fields[2]), version));
        String json = field(() -> json(name, read(name, version, fields[2]), version));
        String back = field(() -> fromJson(name, fields[3], version));
        return hex + "\t" + json + "\t" + back;
    }

    private static Message read(String name, short version, String hex) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        Message message = fresh(name);
        message.read(new ByteBufferAccessor(bytes), version);
        if (bytes.hasRemaining()) {
            throw new IllegalArgumentException(bytes.remaining() + " bytes were left over");
        }
        return message;
    }

    private static String hex(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(bytes), cache, version);
        return HexFormat.of().formatHex(bytes.array(), 0, bytes.position());
    }

    private static String json(String name, Message message, short version) throws Exception {
        Class<?> converter = converter(name);
        if (converter == null) {
            return "-";
        }
        Method write = converter.getMethod("write", message.getClass(), short.class);
        return MAPPER.writeValueAsString(write.invoke(null, message, version));
    }

    private static String fromJson(String name, String json, short version) throws Exception {
        Class<?> converter = converter(name);
        if (converter == null) {
            return "-";
        }
        Method read = converter.getMethod("read", JsonNode.class, short.class);
        return hex((Message) read.invoke(null, MAPPER.readTree(json), version), version);
    }

    private static Class<?> converter(String name) {
        try {
            return Class.forName(name + "JsonConverter");
        } catch (ClassNotFoundException absent) {
            return null;
        }
    }

    private static Message fresh(String name) throws ReflectiveOperationException {
        return (Message) Class.forName(name).getDeclaredConstructor().newInstance();
    }

    private static String field(Callable<String> made) {
        try {
            return made.call();
        } catch (InvocationTargetException error) {
            return "!" + oneLine(error.getCause());
        } catch (Exception error) {
            return "!" + oneLine(error);
        }
    }

    private static String oneLine(Throwable error) {
        return error.toString().replaceAll("\\s+", " ");
    }
}
