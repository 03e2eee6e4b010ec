// A Flink job that writes numbers to a topic with KafkaSink; without transactions at least once, else exactly once with a checkpoint each second.
import java.util.Properties;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.producer.ProducerRecord;

public class FlinkJob {
    public static void main(String[] args) {
        String topic = args[0];
        for (int at = 1; at < args.length; at += 3) {
            System.out.println("=== " + args[at]);
            boolean transactional = Boolean.parseBoolean(args[at + 2]);
            Properties properties = new Properties();
            properties.put("client.id", "orders-app");
            properties.put("enable.idempotence", "true");
            properties.put("delivery.timeout.ms", "4000");
            properties.put("request.timeout.ms", "1500");
            properties.put("transaction.timeout.ms", "60000");
            properties.put("batch.size", "0");
            KafkaSink<Long> sink = KafkaSink.<Long>builder()
                .setBootstrapServers("127.0.0.1:" + args[at + 1])
                .setDeliveryGuarantee(transactional ? DeliveryGuarantee.EXACTLY_ONCE : DeliveryGuarantee.AT_LEAST_ONCE)
                .setTransactionalIdPrefix("payments")
                .setKafkaProducerConfig(properties)
                .setRecordSerializer((KafkaRecordSerializationSchema<Long>) (number, context, time) -> {
                    try {
                        Thread.sleep(300);
                    } catch (InterruptedException interrupted) {
                        Thread.currentThread().interrupt();
                    }
                    return new ProducerRecord<>(topic, 0, Long.toString(number).getBytes(), "x".getBytes());
                })
                .build();
            try {
                Configuration configuration = new Configuration();
                configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "none");
                StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
                if (transactional) environment.enableCheckpointing(1000);
                environment.fromSequence(0, transactional ? 12 : 1).sinkTo(sink);
                environment.execute("orders");
            } catch (Exception failed) {
                failed.printStackTrace(System.out);
            }
        }
        System.exit(0);
    }
}
