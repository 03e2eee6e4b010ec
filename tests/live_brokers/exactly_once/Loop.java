import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Reads, processes and writes as the lines of its input say: each step of a read-process-write loop by itself. */
public class Loop {
    private static KafkaConsumer<String, String> consumer;
    private static KafkaProducer<String, String> producer;
    private static List<ConsumerRecord<String, String>> polled = new ArrayList<>();
    private static Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.load(new FileInputStream(arguments[0]));
        String string = "org.apache.kafka.common.serialization.String";
        properties.put("key.serializer", string + "Serializer");
        properties.put("value.serializer", string + "Serializer");
        properties.put("key.deserializer", string + "Deserializer");
        properties.put("value.deserializer", string + "Deserializer");
        consumer = new KafkaConsumer<>(properties);
        producer = new KafkaProducer<>(properties);
        String group = properties.getProperty("group.id");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                System.out.println(line + ": " + run(line.split(" "), group));
            } catch (Exception error) {
                System.out.println(line + ": " + error);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static String run(String[] words, String group) throws Exception {
        switch (words[0]) {
            case "init" -> producer.initTransactions();
            case "subscribe" -> consumer.subscribe(List.of(words[1]));
            case "assign" -> consumer.assign(List.of(new TopicPartition(words[1], Integer.parseInt(words[2]))));
            case "poll" -> {
                return poll(Integer.parseInt(words[1]));
            }
            case "begin" -> producer.beginTransaction();
            case "write" -> {
                for (ConsumerRecord<String, String> record : polled) {
                    String value = record.topic() + "-" + record.partition() + "@" + record.offset();
                    producer.send(new ProducerRecord<>(words[1], record.key(), value));
                }
                producer.flush();
            }
            case "offsets" -> producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
            case "offsets-of-the-group" -> producer.sendOffsetsToTransaction(next, new ConsumerGroupMetadata(group));
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "commit-offsets" -> consumer.commitSync(next);
            case "seek" -> {
                TopicPartition where = new TopicPartition(words[1], Integer.parseInt(words[2]));
                consumer.seek(where, Long.parseLong(words[3]));
            }
            case "rewind" -> consumer.committed(consumer.assignment()).forEach((where, offset) -> {
                if (offset == null) {
                    consumer.seekToBeginning(List.of(where));
                } else {
                    consumer.seek(where, offset);
                }
            });
            case "halt" -> Runtime.getRuntime().halt(1);
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "done";
    }

    /** Polls until there are some records, or 5 s; the ranges read, as `0:3..7 1:0..4`. */
    private static String poll(int most) {
        polled.clear();
        next.clear();
        long deadline = System.currentTimeMillis() + 5000;
        while (polled.isEmpty() && System.currentTimeMillis() < deadline) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                polled.add(record);
            }
        }
        Map<Integer, long[]> ranges = new TreeMap<>();
        for (ConsumerRecord<String, String> record : polled) {
            ranges.computeIfAbsent(record.partition(), key -> new long[] {record.offset(), 0})[1] = record.offset();
            next.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        StringBuilder result = new StringBuilder();
        ranges.forEach((partition, range) -> result.append(" ").append(partition).append(":").append(range[0]).append("..").append(range[1]));
        return result.toString().trim();
    }
}
