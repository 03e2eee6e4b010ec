import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;

/** A share consumer that takes records and acknowledges them as the lines of its input say. */
public class Share {
    private static final Map<Long, ConsumerRecord<byte[], byte[]>> taken = new LinkedHashMap<>();

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.load(new FileInputStream(arguments[0]));
        String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        properties.put("key.deserializer", bytes);
        properties.put("value.deserializer", bytes);
        KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(properties);
        consumer.subscribe(List.of(arguments[1]));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                System.out.println(line + ": " + run(consumer, line.split(" ")));
            } catch (Exception error) {
                System.out.println(line + ": " + error);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static String run(KafkaShareConsumer<byte[], byte[]> consumer, String[] words) {
        switch (words[0]) {
            case "poll" -> {
                taken.clear();
                long deadline = System.currentTimeMillis() + Long.parseLong(words[1]);
                while (taken.isEmpty() && System.currentTimeMillis() < deadline) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                        taken.put(record.offset(), record);
                    }
                }
                StringBuilder found = new StringBuilder();
                taken.keySet().forEach(offset -> found.append(" ").append(offset));
                return found.toString().trim();
            }
            case "accept", "release", "reject" -> {
                AcknowledgeType type = AcknowledgeType.valueOf(words[0].toUpperCase());
                for (int number = 1; number < words.length; number++) {
                    consumer.acknowledge(taken.get(Long.parseLong(words[number])), type);
                }
            }
            case "commit" -> {
                for (var answer : consumer.commitSync().values()) {
                    if (answer.isPresent()) {
                        return answer.get().toString();
                    }
                }
            }
            case "close" -> consumer.close();
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "done";
    }
}
