/* A stock librdkafka program through every client scenario.
 *
 * Happy path: `client BOOTSTRAP SCENARIO TAG [ARGUMENT..]` runs one scenario and ends with status
 * 0. TAG makes the names of topics and groups unique. Failure modes: a check that does not hold
 * prints what it wanted and ends the program with status 1; an unknown scenario is a skip (77). */
#include <librdkafka/rdkafka.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BIG = 10 * 1000 * 1000,
    WAIT_MS = 30000,
    SKIP_STATUS = 77,
    VALUES_MAX = 512,
};
static const int64_t BASE_TIME_MS = 1600000000000;

/* What was read, in order of arrival. */
struct messages {
    rd_kafka_message_t *list[VALUES_MAX];
    int count;
};

__attribute__((format(printf, 2, 3))) static void check(bool ok, const char *format, ...) {
    if (ok)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    (void)printf("\n");
    exit(1);
}

static void must(rd_kafka_resp_err_t error, const char *what) {
    check(error == RD_KAFKA_RESP_ERR_NO_ERROR, "%s: %s", what, rd_kafka_err2str(error));
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
    char error[256];
    rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, key, value, error, sizeof error);
    check(result == RD_KAFKA_CONF_OK, "%s", error);
}

static rd_kafka_t *handle(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *bootstrap) {
    char error[256];
    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "message.max.bytes", "20000000");
    rd_kafka_t *client = rd_kafka_new(type, conf, error, sizeof error);
    check(client != NULL, "%s", error);
    return client;
}

/* The value number `index` of the scenarios' test data for a codec; to be freed. */
static char *matrix_value(const char *codec, int index) {
    char one[64];
    size_t length = (size_t)snprintf(one, sizeof one, "%s-%d-", codec, index);
    char *value = calloc(20, length + 1);
    check(value != NULL, "out of memory");
    for (size_t i = 0; i < 20; i++)
        (void)memcpy(value + i * length, one, length);
    return value;
}

/* Producing -------------------------------------------------------------------------------------*/

static void create(const char *bootstrap, const char *topic, int partitions) {
    char error[256];
    rd_kafka_t *client = handle(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), bootstrap);
    rd_kafka_NewTopic_t *wanted =
        rd_kafka_NewTopic_new(topic, partitions, 1, error, sizeof error);
    check(wanted != NULL, "%s", error);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_CreateTopics(client, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_MS);
    const rd_kafka_CreateTopics_result_t *result = rd_kafka_event_CreateTopics_result(event);
    check(result != NULL, "no answer to CreateTopics");
    size_t count;
    const rd_kafka_topic_result_t **topics = rd_kafka_CreateTopics_result_topics(result, &count);
    check(count == 1, "one topic in the answer");
    must(rd_kafka_topic_result_error(topics[0]), "CreateTopics");
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(wanted);
    rd_kafka_destroy(client);
}

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client;
    must(message->err, "delivery");
    check(message->offset >= 0, "a delivery without offset");
    ++*(int *)opaque;
}

static rd_kafka_t *producer(const char *bootstrap, const char *codec, int *count) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "linger.ms", "20");
    set(conf, "compression.type", codec);
    set(conf, "enable.idempotence", "true");
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_conf_set_opaque(conf, count);
    return handle(RD_KAFKA_PRODUCER, conf, bootstrap);
}

static void put(rd_kafka_t *client, const char *topic, int32_t partition, const char *key,
                const char *value, size_t length, int64_t time_ms) {
    size_t key_length = key == NULL ? 0 : strlen(key);
    must(rd_kafka_producev(client, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                           RD_KAFKA_V_KEY(key, key_length),
                           RD_KAFKA_V_VALUE((void *)(uintptr_t)value, length),
                           RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                           RD_KAFKA_V_TIMESTAMP(time_ms), RD_KAFKA_V_END),
         "produce");
}

/* Waits for `count` deliveries and ends the producer. */
static void finish(rd_kafka_t *client, const int *done, int count) {
    must(rd_kafka_flush(client, WAIT_MS), "flush");
    check(*done == count, "%d of %d delivered", *done, count);
    rd_kafka_destroy(client);
}

/* `count` records "PREFIXn" into one partition. */
static void put_numbered(const char *bootstrap, const char *topic, int32_t partition,
                         const char *prefix, int count) {
    int done = 0;
    rd_kafka_t *client = producer(bootstrap, "none", &done);
    for (int i = 0; i < count; i++) {
        char value[32];
        int length = snprintf(value, sizeof value, "%s%d", prefix, i);
        put(client, topic, partition, NULL, value, (size_t)length, 0);
    }
    finish(client, &done, count);
}

/* Consuming -------------------------------------------------------------------------------------*/

static rd_kafka_t *consumer(const char *bootstrap, const char *group) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "group.id", group);
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "session.timeout.ms", "6000");
    set(conf, "heartbeat.interval.ms", "300");
    set(conf, "fetch.message.max.bytes", "20000000");
    rd_kafka_t *client = handle(RD_KAFKA_CONSUMER, conf, bootstrap);
    must(rd_kafka_poll_set_consumer(client), "consumer queue");
    return client;
}

static void subscribe(rd_kafka_t *client, const char *topic) {
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
    must(rd_kafka_subscribe(client, topics), "subscribe");
    rd_kafka_topic_partition_list_destroy(topics);
}

static void take(rd_kafka_t *client, struct messages *got, int count, int wait_ms) {
    check(count <= VALUES_MAX, "too many for the table");
    for (int waited_ms = 0; got->count < count && waited_ms < wait_ms; waited_ms += 100) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(client, 100);
        if (message == NULL)
            continue;
        must(message->err, "consume");
        got->list[got->count++] = message;
        waited_ms = 0;
    }
}

static void release(struct messages *got) {
    for (int i = 0; i < got->count; i++)
        rd_kafka_message_destroy(got->list[i]);
    got->count = 0;
}

static void leave(rd_kafka_t *client) {
    must(rd_kafka_consumer_close(client), "close");
    rd_kafka_destroy(client);
}

/* Reads `count` records of one partition from its start, outside any group. */
static void read_partition(const char *bootstrap, const char *topic, int32_t partition, int count,
                           struct messages *got) {
    rd_kafka_t *client = consumer(bootstrap, "none");
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(parts, topic, partition)->offset = 0;
    must(rd_kafka_assign(client, parts), "assign");
    rd_kafka_topic_partition_list_destroy(parts);
    take(client, got, count, WAIT_MS);
    check(got->count == count, "%d of %d records", got->count, count);
    for (int i = 0; i < count; i++)
        check(got->list[i]->offset == i, "record %d has offset %lld", i,
              (long long)got->list[i]->offset);
    /* The messages outlive the assignment, so the consumer stays until the process ends. */
}

static void expect(const rd_kafka_message_t *message, const char *value, size_t length) {
    check(message->len == length && memcmp(message->payload, value, length) == 0,
          "offset %lld: wrong value, wanted %.40s", (long long)message->offset, value);
}

/* Scenarios -------------------------------------------------------------------------------------*/

static void produce_consume(const char *bootstrap, char **args) {
    int done = 0;
    create(bootstrap, args[0], 3);
    rd_kafka_t *client = producer(bootstrap, "none", &done);
    for (int i = 0; i < 300; i++) {
        char key[16], value[16];
        (void)snprintf(key, sizeof key, "k%d", i % 7);
        int length = snprintf(value, sizeof value, "v%d", i);
        put(client, args[0], i % 3, key, value, (size_t)length, 0);
    }
    finish(client, &done, 300);
    for (int partition = 0; partition < 3; partition++) {
        struct messages got = {.count = 0};
        read_partition(bootstrap, args[0], partition, 100, &got);
        for (int i = 0; i < 100; i++) {
            char value[16];
            int length = snprintf(value, sizeof value, "v%d", 3 * i + partition);
            expect(got.list[i], value, (size_t)length);
        }
        release(&got);
    }
}

static void write_matrix(const char *bootstrap, const char *topic, const char *codec, int count) {
    int done = 0;
    rd_kafka_t *client = producer(bootstrap, codec, &done);
    for (int i = 0; i < count; i++) {
        char *value = matrix_value(codec, i);
        put(client, topic, 0, NULL, value, strlen(value), 0);
        free(value);
    }
    finish(client, &done, count);
}

static void read_matrix(const char *bootstrap, const char *topic, const char *codec, int count) {
    struct messages got = {.count = 0};
    read_partition(bootstrap, topic, 0, count, &got);
    for (int i = 0; i < count; i++) {
        char *value = matrix_value(codec, i);
        expect(got.list[i], value, strlen(value));
        free(value);
    }
    release(&got);
}

static void compression(const char *bootstrap, char **args) {
    create(bootstrap, args[0], 1);
    write_matrix(bootstrap, args[0], args[1], 200);
    read_matrix(bootstrap, args[0], args[1], 200);
}

static void sizes(const char *bootstrap, char **args) {
    int done = 0;
    struct messages got = {.count = 0};
    char *big = malloc(BIG);
    check(big != NULL, "out of memory");
    (void)memset(big, 'y', BIG);
    create(bootstrap, args[0], 1);
    rd_kafka_t *client = producer(bootstrap, "none", &done);
    put(client, args[0], 0, NULL, "x", 1, 0);
    put(client, args[0], 0, NULL, big, BIG, 0);
    put(client, args[0], 0, NULL, "z", 1, 0);
    finish(client, &done, 3);
    read_partition(bootstrap, args[0], 0, 3, &got);
    expect(got.list[0], "x", 1);
    expect(got.list[1], big, BIG);
    expect(got.list[2], "z", 1);
    release(&got);
    free(big);
}

static void header(rd_kafka_headers_t *list, size_t index, const char *name, const char *value,
                   size_t length) {
    const char *found;
    const void *bytes;
    size_t size;
    must(rd_kafka_header_get_all(list, index, &found, &bytes, &size), "header");
    check(strcmp(found, name) == 0 && size == length, "header %zu is %s", index, found);
    check((bytes == NULL) == (value == NULL), "header %zu null or not", index);
    check(length == 0 || memcmp(bytes, value, length) == 0, "value of header %zu", index);
}

static void headers(const char *bootstrap, char **args) {
    int done = 0;
    struct messages got = {.count = 0};
    rd_kafka_headers_t *list = NULL;
    create(bootstrap, args[0], 1);
    rd_kafka_t *client = producer(bootstrap, "none", &done);
    must(rd_kafka_producev(client, RD_KAFKA_V_TOPIC(args[0]), RD_KAFKA_V_VALUE("v", 1),
                           RD_KAFKA_V_HEADER("a", "1", 1), RD_KAFKA_V_HEADER("a", "2", 1),
                           RD_KAFKA_V_HEADER("empty", "", 0), RD_KAFKA_V_HEADER("null", NULL, 0),
                           RD_KAFKA_V_HEADER("\xc3\xbc", "\0\xff", 2), RD_KAFKA_V_END),
         "produce");
    put(client, args[0], 0, NULL, "w", 1, 0);
    finish(client, &done, 2);
    read_partition(bootstrap, args[0], 0, 2, &got);
    must(rd_kafka_message_headers(got.list[0], &list), "headers");
    check(rd_kafka_header_cnt(list) == 5, "%zu headers", rd_kafka_header_cnt(list));
    header(list, 0, "a", "1", 1);
    header(list, 1, "a", "2", 1);
    header(list, 2, "empty", "", 0);
    header(list, 3, "null", NULL, 0);
    header(list, 4, "\xc3\xbc", "\0\xff", 2);
    check(rd_kafka_message_headers(got.list[1], &list) == RD_KAFKA_RESP_ERR__NOENT, "no headers");
    release(&got);
}

static void nulls(const char *bootstrap, char **args) {
    int done = 0;
    struct messages got = {.count = 0};
    create(bootstrap, args[0], 1);
    rd_kafka_t *client = producer(bootstrap, "none", &done);
    put(client, args[0], 0, NULL, "v", 1, 0);
    put(client, args[0], 0, "k", NULL, 0, 0);
    put(client, args[0], 0, NULL, NULL, 0, 0);
    put(client, args[0], 0, "", "", 0, 0);
    finish(client, &done, 4);
    read_partition(bootstrap, args[0], 0, 4, &got);
    for (int i = 0; i < 4; i++) {
        check((got.list[i]->key != NULL) == (i == 1 || i == 3), "key of record %d", i);
        check((got.list[i]->payload != NULL) == (i == 0 || i == 3), "value of record %d", i);
    }
    release(&got);
}

static int64_t offset_at(rd_kafka_t *client, const char *topic, int64_t time_ms) {
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(parts, topic, 0)->offset = time_ms;
    must(rd_kafka_offsets_for_times(client, parts, WAIT_MS), "offsets_for_times");
    must(parts->elems[0].err, "offset of the partition");
    int64_t offset = parts->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(parts);
    return offset;
}

static void offsets_by_time(const char *bootstrap, char **args) {
    static const int64_t cases[][2] = {{0, 0}, {1, 1}, {5000, 5}, {8999, 9}};
    int done = 0;
    create(bootstrap, args[0], 1);
    rd_kafka_t *client = producer(bootstrap, "none", &done);
    for (int i = 0; i < 10; i++)
        put(client, args[0], 0, NULL, "v", 1, BASE_TIME_MS + 1000 * (int64_t)i);
    finish(client, &done, 10);
    client = consumer(bootstrap, "none");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(offset_at(client, args[0], BASE_TIME_MS + cases[i][0]) == cases[i][1],
              "offset after %lld ms", (long long)cases[i][0]);
    check(offset_at(client, args[0], BASE_TIME_MS + 9001) == RD_KAFKA_OFFSET_END, "after the last");
    int64_t low, high;
    must(rd_kafka_query_watermark_offsets(client, args[0], 0, &low, &high, WAIT_MS), "watermarks");
    check(low == 0 && high == 10, "watermarks %lld %lld", (long long)low, (long long)high);
    rd_kafka_destroy(client);
}

static int owned(rd_kafka_t *client) {
    rd_kafka_topic_partition_list_t *parts;
    must(rd_kafka_assignment(client, &parts), "assignment");
    int count = parts->cnt;
    rd_kafka_topic_partition_list_destroy(parts);
    return count;
}

/* Polls both members until they own so many partitions and so many records have come in all. */
static void until(rd_kafka_t *first, int first_owns, rd_kafka_t *second, int second_owns,
                  struct messages *got, int count) {
    for (int turn = 0; turn < WAIT_MS / 20; turn++) {
        take(first, got, got->count + 1, 100);
        if (second != NULL)
            take(second, got, got->count + 1, 100);
        if (owned(first) == first_owns && (second == NULL || owned(second) == second_owns) &&
            got->count >= count)
            return;
    }
    check(false, "wanted %d and %d partitions, %d records; got %d records", first_owns,
          second_owns, count, got->count);
}

static void rebalance(const char *bootstrap, char **args) {
    struct messages got = {.count = 0};
    create(bootstrap, args[0], 4);
    rd_kafka_t *first = consumer(bootstrap, args[0]);
    rd_kafka_t *second = consumer(bootstrap, args[0]);
    subscribe(first, args[0]);
    until(first, 4, NULL, 0, &got, 0);
    subscribe(second, args[0]);
    until(first, 2, second, 2, &got, 0);
    for (int32_t partition = 0; partition < 4; partition++) {
        char prefix[16];
        (void)snprintf(prefix, sizeof prefix, "%d-", partition);
        put_numbered(bootstrap, args[0], partition, prefix, 10);
    }
    until(first, 2, second, 2, &got, 40);
    int seen[4][10] = {{0}};
    for (int i = 0; i < got.count; i++)
        seen[got.list[i]->partition][got.list[i]->offset]++;
    for (int i = 0; i < 40; i++)
        check(seen[i / 10][i % 10] == 1, "partition %d offset %d: %d times", i / 10, i % 10,
              seen[i / 10][i % 10]);
    release(&got);
    must(rd_kafka_commit(first, NULL, 0), "commit of the first");
    must(rd_kafka_commit(second, NULL, 0), "commit of the second");
    leave(second);
    until(first, 4, NULL, 0, &got, 0);
    check(got.count == 0, "%d records came again", got.count);
    leave(first);
}

static void committed_write(const char *bootstrap, char **args) {
    struct messages got = {.count = 0};
    create(bootstrap, args[0], 1);
    put_numbered(bootstrap, args[0], 0, "v", 20);
    rd_kafka_t *client = consumer(bootstrap, args[0]);
    subscribe(client, args[0]);
    take(client, &got, 7, WAIT_MS);
    check(got.count == 7, "%d records", got.count);
    must(rd_kafka_commit_message(client, got.list[6], 0), "commit");
    release(&got);
    leave(client);
}

/* Asks again while the coordinator is still loading after a start. */
static rd_kafka_resp_err_t committed(rd_kafka_t *client, rd_kafka_topic_partition_list_t *parts) {
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__TIMED_OUT;
    for (int waited_ms = 0; waited_ms < WAIT_MS; waited_ms += 100) {
        error = rd_kafka_committed(client, parts, WAIT_MS);
        if (error != RD_KAFKA_RESP_ERR_NOT_COORDINATOR &&
            error != RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS)
            break;
        (void)rd_kafka_consumer_poll(client, 100);
    }
    return error;
}

static void committed_read(const char *bootstrap, char **args) {
    struct messages got = {.count = 0};
    rd_kafka_t *client = consumer(bootstrap, args[0]);
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(parts, args[0], 0);
    must(committed(client, parts), "committed");
    check(parts->elems[0].offset == 7, "committed %lld", (long long)parts->elems[0].offset);
    rd_kafka_topic_partition_list_destroy(parts);
    subscribe(client, args[0]);
    take(client, &got, 13, WAIT_MS);
    check(got.count == 13 && got.list[0]->offset == 7, "%d records", got.count);
    release(&got);
    leave(client);
}

static void write_topic(const char *bootstrap, char **args) {
    write_matrix(bootstrap, args[0], args[1], 50);
}

static void read_topics(const char *bootstrap, char **args) {
    for (char **topic = args + 1; *topic != NULL; topic++)
        read_matrix(bootstrap, *topic, strrchr(*topic, '-') + 1, 50);
}

static const struct scenario {
    const char *name;
    void (*run)(const char *bootstrap, char **args);
} SCENARIOS[] = {
    {"produce_consume", produce_consume},
    {"compression", compression},
    {"sizes", sizes},
    {"headers", headers},
    {"nulls", nulls},
    {"offsets_by_time", offsets_by_time},
    {"rebalance", rebalance},
    {"committed_write", committed_write},
    {"committed_read", committed_read},
    {"write", write_topic},
    {"read", read_topics},
};

int main(int argc, char **argv) {
    check(argc > 3, "usage: client BOOTSTRAP SCENARIO TAG [ARGUMENT..]");
    for (size_t i = 0; i < sizeof SCENARIOS / sizeof *SCENARIOS; i++) {
        if (strcmp(SCENARIOS[i].name, argv[2]) != 0)
            continue;
        SCENARIOS[i].run(argv[1], argv + 3);
        (void)printf("ok\n");
        return 0;
    }
    (void)printf("no such scenario for this client: %s\n", argv[2]);
    return SKIP_STATUS;
}
