import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Reads and writes record batches with Kafka's own classes, line by line. Bytes are hexadecimal, null stays null.
 *
 * <p>`read HEX` is answered by the batches in JSON, `write JSON` (one batch) and `mark JSON` (the end of a transaction)
 * by the bytes. An answer that begins with `!` is an error.
 */
public final class Records {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.substring(0, line.indexOf(' ')), line.substring(line.indexOf(' ') + 1)));
        }
        out.flush();
    }

    private static String answer(String command, String argument) {
        try {
            return switch (command) {
                case "read" -> read(HEX.parseHex(argument));
                case "mark" -> mark(MAPPER.readTree(argument));
                default -> write(MAPPER.readTree(argument));
            };
        } catch (Exception error) {
            return "!" + error.toString().replaceAll("\\s+", " ");
        }
    }

    private static String read(byte[] bytes) throws IOException {
        ArrayNode batches = MAPPER.createArrayNode();
        for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
            batch.ensureValid();
            ObjectNode node = batches.addObject();
            node.put("base_offset", batch.baseOffset());
            node.put("last_offset", batch.lastOffset());
            node.put("partition_leader_epoch", batch.partitionLeaderEpoch());
            node.put("magic", batch.magic());
            node.put("compression", batch.compressionType().name);
            node.put("timestamp_type", batch.timestampType().name);
            node.put("is_transactional", batch.isTransactional());
            node.put("is_control", batch.isControlBatch());
            node.put("max_timestamp", batch.maxTimestamp());
            node.put("producer_id", batch.producerId());
            node.put("producer_epoch", batch.producerEpoch());
            node.put("base_sequence", batch.baseSequence());
            node.put("count", batch.countOrNull());
            node.put("size_in_bytes", batch.sizeInBytes());
            ArrayNode records = node.putArray("records");
            for (Record record : batch) {
                record.ensureValid();
                ObjectNode described = records.addObject();
                describe(record, described);
                if (batch.isControlBatch()) {
                    describeControl(record, described);
                }
            }
        }
        return MAPPER.writeValueAsString(batches);
    }

    private static void describe(Record record, ObjectNode node) {
        node.put("offset", record.offset());
        node.put("timestamp", record.timestamp());
        node.put("key", hex(record.key()));
        node.put("value", hex(record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            byte[] value = header.value();
            headers.addArray().add(header.key()).add(value == null ? null : HEX.formatHex(value));
        }
    }

    private static void describeControl(Record record, ObjectNode node) {
        ControlRecordType type = ControlRecordType.parse(record.key());
        node.put("control", type.name());
        if (type == ControlRecordType.ABORT || type == ControlRecordType.COMMIT) {
            node.put("coordinator_epoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
        }
    }

    private static String mark(JsonNode marker) {
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(
                marker.get("base_offset").longValue(),
                marker.get("timestamp").longValue(),
                marker.get("partition_leader_epoch").intValue(),
                marker.get("producer_id").longValue(),
                (short) marker.get("producer_epoch").intValue(),
                new EndTransactionMarker(
                        marker.get("commit").booleanValue() ? ControlRecordType.COMMIT : ControlRecordType.ABORT,
                        marker.get("coordinator_epoch").intValue()));
        return hex(records.buffer());
    }

    private static String write(JsonNode batch) {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        CompressionType codec = CompressionType.forName(batch.get("compression").textValue());
        try (MemoryRecordsBuilder builder = MemoryRecords.builder(
                buffer,
                (byte) batch.get("magic").intValue(),
                Compression.of(codec).build(),
                TimestampType.forName(batch.get("timestamp_type").textValue()),
                batch.get("base_offset").longValue(),
                batch.get("append_time").longValue(),
                batch.get("producer_id").longValue(),
                (short) batch.get("producer_epoch").intValue(),
                batch.get("base_sequence").intValue(),
                batch.get("is_transactional").booleanValue(),
                batch.get("partition_leader_epoch").intValue())) {
            for (JsonNode record : batch.get("records")) {
                builder.appendWithOffset(
                        record.get("offset").longValue(),
                        record.get("timestamp").longValue(),
                        bytes(record.get("key")),
                        bytes(record.get("value")),
                        headers(record.get("headers")));
            }
            return hex(builder.build().buffer());
        }
    }

    private static Header[] headers(JsonNode pairs) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode pair : pairs) {
            headers.add(new RecordHeader(pair.get(0).textValue(), bytes(pair.get(1))));
        }
        return headers.toArray(new Header[0]);
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : HEX.parseHex(node.textValue());
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }
}
