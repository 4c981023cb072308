import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * kafka-clients through every client scenario.
 *
 * <p>usage: java Client BOOTSTRAP SCENARIO TAG [ARGUMENT..]; exit status 0 is a pass, 77 a skip
 * with its reason as the last line, anything else a failure.
 */
public final class Client {
    private static final int BIG = 10 * 1000 * 1000;
    private static final long BASE_TIME = 1600000000000L;
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static String bootstrap;

    private Client() {}

    private static void check(boolean ok, String what) {
        if (!ok) throw new AssertionError(what);
    }

    private static void same(Object got, Object want, String what) {
        check(want.equals(got), what + ": " + got + ", want " + want);
    }

    private interface State {
        boolean reached() throws Exception;
    }

    private static void until(String what, State state) throws Exception {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (!state.reached()) check(System.nanoTime() < end, "not in time: " + what);
    }

    private static Map<String, Object> config(Object... pairs) {
        Map<String, Object> map = new HashMap<>(Map.of("bootstrap.servers", bootstrap));
        for (int i = 0; i < pairs.length; i += 2) map.put((String) pairs[i], pairs[i + 1]);
        return map;
    }

    private static String create(String topic, int partitions) throws Exception {
        try (Admin admin = Admin.create(config())) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        }
        return topic;
    }

    private static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, Integer partition, String key,
            String value) {
        return new ProducerRecord<>(topic, partition, bytes(key), bytes(value));
    }

    private static void send(String codec, List<ProducerRecord<byte[], byte[]>> records)
            throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(config("compression.type", codec, "linger.ms", 20,
                "max.request.size", 20000000, "buffer.memory", 64000000L),
                new ByteArraySerializer(), new ByteArraySerializer())) {
            for (var record : records) sent.add(producer.send(record));
        }
        for (var future : sent) check(future.get().offset() >= 0, "no offset");
    }

    private static void sendValues(String topic, int partition, String codec, List<String> values)
            throws Exception {
        send(codec, values.stream().map(v -> record(topic, partition, null, v)).toList());
    }

    private static List<String> numbered(String prefix, int from, int to) {
        return IntStream.range(from, to).mapToObj(i -> prefix + i).toList();
    }

    private static List<String> matrixValues(String codec, int count) {
        return IntStream.range(0, count).mapToObj(i -> (codec + "-" + i + "-").repeat(20)).toList();
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String group, Object... more) {
        Map<String, Object> settings = config(more);
        settings.putAll(Map.of("enable.auto.commit", false, "auto.offset.reset", "earliest",
                "session.timeout.ms", 6000, "heartbeat.interval.ms", 300,
                "max.partition.fetch.bytes", 20000000));
        if (group != null) settings.put("group.id", group);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
    }

    private static List<ConsumerRecord<byte[], byte[]>> take(KafkaConsumer<byte[], byte[]> consumer,
            int count) throws Exception {
        List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
        until(count + " records", () -> {
            consumer.poll(Duration.ofMillis(200)).forEach(got::add);
            return got.size() >= count;
        });
        same(got.size(), count, "records");
        return got;
    }

    private static List<ConsumerRecord<byte[], byte[]>> read(String topic, int partition, int count)
            throws Exception {
        try (var consumer = consumer(null)) {
            consumer.assign(List.of(new TopicPartition(topic, partition)));
            var got = take(consumer, count);
            for (int i = 0; i < count; i++) same(got.get(i).offset(), (long) i, "offset");
            return got;
        }
    }

    private static List<String> values(List<ConsumerRecord<byte[], byte[]>> records) {
        return records.stream().map(r -> text(r.value())).collect(Collectors.toList());
    }

    private static void produceConsume(String topic) throws Exception {
        create(topic, 3);
        send("none", IntStream.range(0, 300)
                .mapToObj(i -> record(topic, i % 3, "k" + i % 7, "v" + i)).toList());
        for (int partition = 0; partition < 3; partition++) {
            int p = partition;
            same(values(read(topic, p, 100)),
                    IntStream.range(0, 100).mapToObj(i -> "v" + (3 * i + p)).toList(), "order");
        }
    }

    private static void compression(String topic, String codec) throws Exception {
        create(topic, 1);
        sendValues(topic, 0, codec, matrixValues(codec, 200));
        same(values(read(topic, 0, 200)), matrixValues(codec, 200), codec);
    }

    private static void sizes(String topic) throws Exception {
        create(topic, 1);
        List<String> want = List.of("x", "y".repeat(BIG), "z");
        sendValues(topic, 0, "none", want);
        check(want.equals(values(read(topic, 0, 3))), "sizes");
    }

    private static void headers(String topic) throws Exception {
        create(topic, 1);
        var first = record(topic, 0, null, "v");
        byte[][] values = {bytes("1"), bytes("2"), {}, null, {0, -1}};
        String[] keys = {"a", "a", "empty", "null", "\u00fc"};
        for (int i = 0; i < keys.length; i++) first.headers().add(keys[i], values[i]);
        send("none", List.of(first, record(topic, 0, null, "w")));
        var got = read(topic, 0, 2);
        var list = got.get(0).headers().toArray();
        same(list.length, keys.length, "headers");
        for (int i = 0; i < keys.length; i++) {
            same(list[i].key(), keys[i], "header key");
            check(Arrays.equals(list[i].value(), values[i]), "value of header " + keys[i]);
        }
        same(got.get(1).headers().toArray().length, 0, "headers of the second");
    }

    private static void nulls(String topic) throws Exception {
        create(topic, 1);
        send("none", List.of(record(topic, 0, null, "v"), record(topic, 0, "k", null),
                record(topic, 0, null, null), record(topic, 0, "", "")));
        var got = read(topic, 0, 4).stream().map(r -> text(r.key()) + ":" + text(r.value())).toList();
        same(got, List.of("null:v", "k:null", "null:null", ":"), "nulls");
    }

    private static void offsetsByTime(String topic) throws Exception {
        create(topic, 1);
        send("none", IntStream.range(0, 10).mapToObj(i -> new ProducerRecord<byte[], byte[]>(topic, 0,
                BASE_TIME + 1000 * i, null, bytes("v"))).toList());
        var partition = new TopicPartition(topic, 0);
        try (var consumer = consumer(null)) {
            for (long[] pair : new long[][] {{0, 0}, {1, 1}, {5000, 5}, {8999, 9}}) {
                var found = consumer.offsetsForTimes(Map.of(partition, BASE_TIME + pair[0]))
                        .get(partition);
                same(found.offset(), pair[1], "offset after " + pair[0]);
                same(found.timestamp(), BASE_TIME + 1000 * pair[1], "time of the record");
            }
            var none = consumer.offsetsForTimes(Map.of(partition, BASE_TIME + 9001)).get(partition);
            check(none == null, "after the last: " + none);
            same(consumer.beginningOffsets(List.of(partition)), Map.of(partition, 0L), "start");
            same(consumer.endOffsets(List.of(partition)), Map.of(partition, 10L), "end");
        }
    }

    /** Polls every member, commits what it got, and tells what each owns. */
    private static List<Integer> turn(List<KafkaConsumer<byte[], byte[]>> members,
            List<String> got) {
        for (var member : members) {
            var records = member.poll(Duration.ofMillis(30));
            records.forEach(r -> got.add(text(r.value())));
            if (!records.isEmpty()) member.commitSync();
        }
        return members.stream().map(m -> m.assignment().size()).toList();
    }

    private static void rebalance(String topic, String assignor) throws Exception {
        create(topic, 4);
        Object[] more = {"partition.assignment.strategy",
            "org.apache.kafka.clients.consumer." + assignor};
        List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>();
        List<String> got = new ArrayList<>();
        members.add(consumer(topic, more));
        members.get(0).subscribe(List.of(topic));
        until("the first owns all", () -> turn(members, got).equals(List.of(4)));
        members.add(consumer(topic, more));
        members.get(1).subscribe(List.of(topic));
        until("each owns half", () -> turn(members, got).equals(List.of(2, 2)));
        for (int partition = 0; partition < 4; partition++)
            sendValues(topic, partition, "none", numbered(partition + "-", 0, 10));
        until("40 records", () -> {
            turn(members, got);
            return got.size() >= 40;
        });
        members.remove(1).close();
        until("the first owns all again", () -> turn(members, got).equals(List.of(4)));
        members.remove(0).close();
        Set<String> distinct = new HashSet<>(got);
        check(got.size() == 40 && distinct.size() == 40, got.size() + " records");
    }

    private static void committedWrite(String topic) throws Exception {
        create(topic, 1);
        sendValues(topic, 0, "none", numbered("v", 0, 20));
        try (var consumer = consumer(topic, "max.poll.records", 7)) {
            consumer.subscribe(List.of(topic));
            same(values(take(consumer, 7)), numbered("v", 0, 7), "first");
            consumer.commitSync(Map.of(new TopicPartition(topic, 0),
                    new OffsetAndMetadata(7, "seven")));
        }
    }

    private static void committedRead(String topic) throws Exception {
        var partition = new TopicPartition(topic, 0);
        try (var consumer = consumer(topic)) {
            same(consumer.committed(Set.of(partition)).get(partition),
                    new OffsetAndMetadata(7, "seven"), "committed");
            consumer.subscribe(List.of(topic));
            same(values(take(consumer, 13)), numbered("v", 7, 20), "rest");
        }
    }

    private static void readTopics(String[] topics) throws Exception {
        for (String topic : topics) {
            String codec = topic.substring(topic.lastIndexOf('-') + 1);
            same(values(read(topic, 0, 50)), matrixValues(codec, 50), topic);
        }
    }

    private static boolean run(String scenario, String tag, String[] more) throws Exception {
        switch (scenario) {
            case "produce_consume" -> produceConsume(tag);
            case "compression" -> compression(tag, more[0]);
            case "sizes" -> sizes(tag);
            case "headers" -> headers(tag);
            case "nulls" -> nulls(tag);
            case "offsets_by_time" -> offsetsByTime(tag);
            case "rebalance" -> rebalance(tag, "RangeAssignor");
            case "rebalance_cooperative" -> rebalance(tag, "CooperativeStickyAssignor");
            case "committed_write" -> committedWrite(tag);
            case "committed_read" -> committedRead(tag);
            case "write" -> sendValues(tag, 0, more[0], matrixValues(more[0], 50));
            case "read" -> readTopics(more);
            default -> {
                return false;
            }
        }
        return true;
    }

    public static void main(String[] args) {
        bootstrap = args[0];
        try {
            if (!run(args[1], args[2], Arrays.copyOfRange(args, 3, args.length))) {
                System.out.println("no such scenario for this client: " + args[1]);
                System.exit(77);
            }
        } catch (Throwable error) {
            error.printStackTrace();
            System.err.println(String.valueOf(error).replace('\n', ' '));
            System.exit(1);
        }
        System.out.println("ok");
        System.exit(0);
    }
}
