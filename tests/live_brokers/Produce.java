import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** A producer that does what the lines of its input say, and prints what became of each record. */
public class Produce {
    private static KafkaProducer<String, String> producer;

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 4);
            try {
                run(words);
                if (!words[0].equals("send")) {
                    print(line, "done");
                }
            } catch (Exception error) {
                print(words[0].equals("send") ? "send " + words[2] : line, error.toString());
            }
        }
        producer.close();
    }

    /** Opens a producer in place of the one before, which is closed without waiting for anything. */
    private static void open(String path) throws Exception {
        if (producer != null) {
            try {
                KafkaProducer.class.getMethod("close", Duration.class).invoke(producer, Duration.ZERO);
            } catch (NoSuchMethodException before2) {
                KafkaProducer.class.getMethod("close", long.class, TimeUnit.class).invoke(producer, 0L, TimeUnit.SECONDS);
            }
        }
        Properties properties = new Properties();
        properties.load(new FileInputStream(path));
        String string = "org.apache.kafka.common.serialization.StringSerializer";
        properties.put("key.serializer", string);
        properties.put("value.serializer", string);
        producer = new KafkaProducer<>(properties);
    }

    private static void run(String[] words) throws Exception {
        switch (words[0]) {
            case "open" -> open(words[1]);
            case "send" -> {
                String name = words[0] + " " + words[2];
                int size = Integer.parseInt(words[3]);
                String value = (words[2] + " ".repeat(size)).substring(0, Math.max(size, words[2].length()));
                String[] where = words[1].split(":");
                int partition = where.length > 1 ? Integer.parseInt(where[1]) : 0;
                producer.send(new ProducerRecord<>(where[0], partition, words[2], value), (metadata, error) ->
                    print(name, error == null ? "offset " + metadata.offset() : error.toString()));
            }
            case "ready" -> { } // it reads lines, so the producer is there
            case "flush" -> producer.flush();
            case "init" -> producer.initTransactions();
            case "begin" -> producer.beginTransaction();
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static synchronized void print(String what, String result) {
        System.out.println(what + ": " + result);
    }
}
