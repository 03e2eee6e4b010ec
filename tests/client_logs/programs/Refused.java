import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The Java producer with whatever logger the class path has; arguments: topic, then NAME PORT TRANSACTIONAL of each case. */
public class Refused {
    private static final Logger LOG = LoggerFactory.getLogger("com.example.orders.OrderService");

    public static void main(String[] given) throws Exception {
        for (int at = 1; at < given.length; at += 3) {
            System.out.println("=== " + given[at]);
            play(given[0], given[at + 1], Boolean.parseBoolean(given[at + 2]));
        }
        System.exit(0);
    }

    private static void play(String topic, String port, boolean transactional) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", "127.0.0.1:" + port);
        config.put("client.id", "orders-app");
        config.put("acks", "all");
        config.put("enable.idempotence", "true");
        config.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.put("request.timeout.ms", "1500");
        config.put("delivery.timeout.ms", "3000");
        config.put("retry.backoff.ms", "50");
        config.put("linger.ms", "0");
        config.put("max.block.ms", "4000");
        if (transactional) {
            config.put("transactional.id", "payments");
            config.put("transaction.timeout.ms", "3000");
        }
        KafkaProducer<String, String> producer = new KafkaProducer<>(config);
        try {
            if (transactional) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            for (int key = 0; key < 2; key++) {
                ProducerRecord<String, String> record = new ProducerRecord<>(topic, 0, Integer.toString(key), "x");
                try {
                    producer.send(record, (metadata, error) -> listen(record, metadata, error)).get(5, TimeUnit.SECONDS);
                } catch (ExecutionException error) {
                    LOG.error("Send failed", error);
                }
            }
            if (transactional) {
                producer.commitTransaction();
            }
        } catch (Exception error) {
            LOG.error("Producer failed", error);
        } finally {
            close(producer);
        }
    }

    /** Closes it in half a second; releases name a limit in different ways. */
    private static void close(KafkaProducer<String, String> producer) {
        Thread closing = new Thread(producer::close);
        closing.start();
        try {
            closing.join(500);
        } catch (InterruptedException interrupted) {
            LOG.warn("Interrupted");
        }
    }

    /** What Spring's KafkaTemplate does with an error, if spring-kafka is there. */
    private static void listen(ProducerRecord<String, String> record, RecordMetadata metadata, Exception error) {
        if (error == null) {
            return;
        }
        try {
            Class<?> known = Class.forName("org.springframework.kafka.support.LoggingProducerListener");
            Object listener = known.getDeclaredConstructor().newInstance();
            Method method = known.getMethod("onError", ProducerRecord.class, RecordMetadata.class, Exception.class);
            method.invoke(listener, record, metadata, error);
        } catch (ReflectiveOperationException absent) {
            LOG.debug("no listener");
        }
    }
}
