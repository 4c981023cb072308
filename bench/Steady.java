/* The producer of bench/failover as Kafka's own client: what steady.c's `produce` does, with the
 * same file at its end.
 *
 *   java -cp KAFKA/libs/* Steady.java BROKERS TOPIC FILE PARTITIONS RATE [KEY=VALUE..]
 *
 * Happy path: RATE records a second to each partition until standard input ends, then what is
 * under way is waited for; "flows" is said when the first record's outcome is known. KEY=VALUE are properties of the producer; all others are as it ships.
 * The clock of the outcomes is System.nanoTime(), which on Linux is the monotonic one.
 *
 * Failure modes: a failed delivery is written down with error 1, and its reason goes to stderr; a
 * wrong property ends it with the client's exception and status 1. */
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class Steady {
    private static final int VALUE_BYTES = 100;
    private static final int OUTCOME_BYTES = 32;

    /** One record: struct outcome of steady.c. */
    private static final class Outcome {
        final long dueNs;
        final int partition;
        final int sequence;
        volatile long endedNs; // 0: its delivery was never reported
        volatile int error;

        Outcome(long dueNs, int partition, int sequence) {
            this.dueNs = dueNs;
            this.partition = partition;
            this.sequence = sequence;
        }

        void ended(Exception failure) {
            if (sequence == 0 && partition == 0) {
                System.out.println("flows");
            }
            if (failure != null) {
                error = 1;
                System.err.printf("%.3f partition %d, record %d: %s%n", System.nanoTime() / 1e9,
                    partition, sequence, failure);
            }
            endedNs = System.nanoTime();
        }

        byte[] value() {
            return ByteBuffer.allocate(VALUE_BYTES).order(ByteOrder.nativeOrder())
                .putInt(partition).putInt(sequence).array();
        }

        void put(ByteBuffer bytes) {
            bytes.putLong(dueNs).putLong(endedNs).putInt(partition).putInt(sequence).putInt(error)
                .putInt(0);
        }
    }

    private static void waitUntil(long dueNs) {
        for (long now = System.nanoTime(); now < dueNs; now = System.nanoTime()) {
            LockSupport.parkNanos(dueNs - now);
        }
    }

    /** The next read of standard input ends with it; nothing is ever written there. */
    private static Thread watchInput() {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (IOException gone) {
                return; // ends the run as well
            }
        });
        watch.setDaemon(true);
        watch.start();
        return watch;
    }

    private static List<Outcome> sendAll(KafkaProducer<byte[], byte[]> producer, String topic,
        int partitions, long rate) {
        List<Outcome> outcomes = new ArrayList<>();
        Thread input = watchInput();
        long startNs = System.nanoTime();
        for (int n = 0; input.isAlive(); n++) {
            long dueNs = startNs + n * 1_000_000_000L / rate;
            waitUntil(dueNs);
            for (int partition = 0; partition < partitions; partition++) {
                Outcome outcome = new Outcome(dueNs, partition, n);
                outcomes.add(outcome);
                producer.send(new ProducerRecord<>(topic, partition, null, outcome.value()),
                    (metadata, failure) -> outcome.ended(failure));
            }
        }
        return outcomes;
    }

    private static void write(List<Outcome> outcomes, String path) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(outcomes.size() * OUTCOME_BYTES)
            .order(ByteOrder.nativeOrder());
        outcomes.forEach(outcome -> outcome.put(bytes));
        bytes.flip();
        try (FileChannel file = FileChannel.open(Path.of(path), StandardOpenOption.CREATE,
            StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING)) {
            while (bytes.hasRemaining()) {
                file.write(bytes);
            }
        }
    }

    public static void main(String[] words) throws IOException {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", words[0]);
        properties.put("key.serializer", ByteArraySerializer.class.getName());
        properties.put("value.serializer", ByteArraySerializer.class.getName());
        for (int i = 5; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        List<Outcome> outcomes;
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties)) {
            outcomes = sendAll(producer, words[1], Integer.parseInt(words[3]),
                Long.parseLong(words[4]));
        }
        write(outcomes, words[2]);
    }
}
