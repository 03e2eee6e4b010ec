import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Topics, transactions and consumers in groups: ClockLoad PORT TOPIC REPLICAS ROUNDS SECONDS PROTOCOL SEGMENT_BYTES. */
public class ClockLoad {
    private static final String STRING = "org.apache.kafka.common.serialization.String";

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        short replicas = Short.parseShort(arguments[2]);
        Properties common = new Properties();
        common.put("bootstrap.servers", "127.0.0.1:" + arguments[0]);
        try (Admin admin = Admin.create(common)) {
            List<NewTopic> topics = new ArrayList<>();
            topics.add(new NewTopic(topic, 2, replicas));
            topics.add(new NewTopic(topic + "-appended", 1, replicas).configs(
                java.util.Map.of("message.timestamp.type", "LogAppendTime", "segment.bytes", arguments[6])));
            admin.createTopics(topics).all().get();
        }
        for (int round = 0; round < Integer.parseInt(arguments[3]); round++) {
            produce(common, topic, round);
            consume(common, topic, "group-" + round % 2, arguments[5]);
            Thread.sleep(1000L * Integer.parseInt(arguments[4]));
        }
    }

    private static void produce(Properties common, String topic, int round) throws Exception {
        Properties own = new Properties();
        own.putAll(common);
        own.put("key.serializer", STRING + "Serializer");
        own.put("value.serializer", STRING + "Serializer");
        own.put("transactional.id", "app-" + round % 3);
        own.put("linger.ms", "300");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(own)) {
            producer.initTransactions();
            for (int transaction = 0; transaction < 2; transaction++) {
                producer.beginTransaction();
                for (int record = 0; record < 20; record++) {
                    String value = "round " + round + " record " + record;
                    producer.send(new ProducerRecord<>(topic, record % 2, "key", value));
                    producer.send(new ProducerRecord<>(topic + "-appended", 0, "key", value + " ".repeat(400)));
                }
                if (transaction == 0) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
    }

    private static void consume(Properties common, String topic, String group, String protocol) {
        Properties own = new Properties();
        own.putAll(common);
        own.put("key.deserializer", STRING + "Deserializer");
        own.put("value.deserializer", STRING + "Deserializer");
        own.put("group.id", group);
        own.put("auto.offset.reset", "earliest");
        if (!protocol.equals("classic")) {
            own.put("group.protocol", protocol);
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(own)) {
            consumer.subscribe(Collections.singletonList(topic));
            long end = System.nanoTime() + 20_000_000_000L;
            while (System.nanoTime() < end && consumer.poll(java.time.Duration.ofMillis(500)).isEmpty()) { }
            consumer.commitSync();
        }
    }
}
