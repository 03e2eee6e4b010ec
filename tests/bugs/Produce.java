import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** A producer that does what the lines of its input say, and prints what became of each record. */
public class Produce {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.load(new FileInputStream(arguments[0]));
        String string = "org.apache.kafka.common.serialization.StringSerializer";
        properties.put("key.serializer", string);
        properties.put("value.serializer", string);
        KafkaProducer<String, String> producer = new KafkaProducer<>(properties);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 4);
            try {
                run(producer, words);
                if (!words[0].equals("send")) {
                    print(line, "done");
                }
            } catch (Exception error) {
                print(words[0].equals("send") ? "send " + words[2] : line, error.toString());
            }
        }
        producer.close();
    }

    private static void run(KafkaProducer<String, String> producer, String[] words) {
        switch (words[0]) {
            case "send" -> {
                String name = words[0] + " " + words[2];
                int size = Integer.parseInt(words[3]);
                String value = (words[2] + " ".repeat(size)).substring(0, Math.max(size, words[2].length()));
                producer.send(new ProducerRecord<>(words[1], 0, words[2], value), (metadata, error) ->
                    print(name, error == null ? "offset " + metadata.offset() : error.toString()));
            }
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
