import java.io.FileInputStream;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;

/** A Streams application: says which inputs it processes, writes each to the topic of outputs, and counts keys in a store. */
public class Stream {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.load(new FileInputStream(arguments[0]));
        properties.put("default.key.serde", Serdes.String().getClass());
        properties.put("default.value.serde", Serdes.String().getClass());
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> inputs = builder.stream(arguments[1]);
        KStream<String, String> named = inputs.process(Named::new);
        named.to(arguments[2]);
        named.groupByKey().count(Materialized.as("counts"));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.start();
    }

    /** Gives each record the name of its place as its value. */
    private static class Named extends ContextualProcessor<String, String, String, String> {
        @Override
        public void process(Record<String, String> record) {
            RecordMetadata place = context().recordMetadata().orElseThrow();
            String name = place.topic() + "-" + place.partition() + "@" + place.offset();
            System.out.println("read " + name);
            context().forward(record.withValue(name));
        }
    }
}
