/* The load of bench/compare: one librdkafka client that produces, consumes, or sends at a fixed
 * rate, the same for whichever broker it is pointed at.
 *
 *   load produce|consume|latency BROKER TOPIC [KEY=VALUE..]
 *
 * Happy path: it does the work it was told and prints one line of JSON with what it saw: records,
 * bytes of values, seconds from the first send to the last acknowledgement (or the last record
 * read), its own CPU seconds, and for `latency` quantiles in milliseconds. A latency is counted
 * from the moment at which the record was due, so a stalled broker cannot hide behind a sender that
 * waited for it.
 *
 * Failure modes: any failed delivery, a wrong option, or no progress for a minute ends it with
 * status 1 and a line on stderr. */
#include <assert.h>
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { POOL_BYTES = 8 << 20, READ_BATCH = 1000, STALL_MS = 60000, SETTLE_MS = 1000 };

struct options {
    int64_t records;        /* to send, or to read in each pass */
    int64_t size_bytes;     /* of one value */
    int64_t batch_bytes;    /* batch.size */
    int64_t batch_records;  /* batch.num.messages */
    int64_t linger_ms;
    int64_t in_flight;      /* requests on the connection */
    int64_t partitions;
    int64_t passes;         /* how often `consume` reads everything, each with a new client */
    int64_t rate;           /* records a second of `latency` */
    int64_t read;           /* `latency`: 1 also reads the records back, for end to end times */
};

struct run {
    struct options options;
    const char *broker, *topic_name;
    char *pool;             /* random bytes; values are cut from it, so they do not compress */
    int64_t delivered;
    uint64_t *due_ns;       /* `latency`: when each record was to be sent */
    double *acked_ms, *read_ms;
    volatile int finished;
    pthread_barrier_t reading;
};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "load: %s: %s\n", what, detail);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static double own_cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        + (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void parse_options(struct options *o, char **words)
{
    const struct { const char *name; int64_t *value; } table[] = {
        {"records", &o->records}, {"size", &o->size_bytes}, {"batch", &o->batch_bytes},
        {"batch_records", &o->batch_records}, {"linger_ms", &o->linger_ms},
        {"in_flight", &o->in_flight}, {"partitions", &o->partitions}, {"passes", &o->passes},
        {"rate", &o->rate}, {"read", &o->read},
    };
    for (; *words != NULL; words++) {
        const char *equals = strchr(*words, '=');
        size_t i = 0, count = sizeof table / sizeof *table;
        while (equals != NULL && i < count
            && (strlen(table[i].name) != (size_t) (equals - *words)
                || strncmp(table[i].name, *words, strlen(table[i].name)) != 0))
            i++;
        if (equals == NULL || i == count)
            die("unknown option", *words);
        *table[i].value = strtoll(equals + 1, NULL, 10);
    }
}

static char *random_pool(void)
{
    char *pool = malloc(POOL_BYTES);
    uint64_t x = 88172645463325252u; /* xorshift64: cheap, and the same for both brokers */
    assert(pool != NULL);
    for (size_t i = 0; i < POOL_BYTES; i += sizeof x) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        memcpy(pool + i, &x, sizeof x);
    }
    return pool;
}

static const char *value_of(const struct run *run, int64_t i)
{
    int64_t room = POOL_BYTES / run->options.size_bytes;
    assert(room > 0);
    return run->pool + i % room * run->options.size_bytes;
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char error[256];
    if (rd_kafka_conf_set(conf, key, value, error, sizeof error) != RD_KAFKA_CONF_OK)
        die(key, error);
}

static void set_number(rd_kafka_conf_t *conf, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    set(conf, key, text);
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    struct run *run = opaque;
    (void) client;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("delivery", rd_kafka_err2str(message->err));
    if (run->acked_ms != NULL) {
        size_t i = (size_t) message->_private;
        run->acked_ms[i] = (double) (now_ns() - run->due_ns[i]) / 1e6;
    }
    run->delivered++;
}

static rd_kafka_t *new_client(struct run *run, rd_kafka_type_t type)
{
    const struct options *o = &run->options;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char error[256];
    set(conf, "bootstrap.servers", run->broker);
    set(conf, "socket.nagle.disable", "true");
    if (type == RD_KAFKA_PRODUCER) {
        set_number(conf, "batch.size", o->batch_bytes);
        set_number(conf, "batch.num.messages", o->batch_records);
        set_number(conf, "linger.ms", o->linger_ms);
        set_number(conf, "max.in.flight.requests.per.connection", o->in_flight);
        set(conf, "queue.buffering.max.messages", "200000");
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rd_kafka_conf_set_opaque(conf, run);
    } else {
        set(conf, "queued.min.messages", "10000000"); /* never wait for the application */
        set(conf, "queued.max.messages.kbytes", "2097151");
    }
    rd_kafka_t *client = rd_kafka_new(type, conf, error, sizeof error);
    if (client == NULL)
        die("client", error);
    return client;
}

static rd_kafka_topic_t *open_topic(rd_kafka_t *client, const struct run *run)
{
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, run->topic_name, NULL);
    const struct rd_kafka_metadata *metadata;
    if (topic == NULL)
        die("topic", rd_kafka_err2str(rd_kafka_last_error()));
    rd_kafka_resp_err_t error = rd_kafka_metadata(client, 0, topic, &metadata, STALL_MS);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("metadata", rd_kafka_err2str(error));
    rd_kafka_metadata_destroy(metadata);
    return topic;
}

/* Sends record i; waits for room where the client's queue is full. */
static void send_record(struct run *run, rd_kafka_t *client, rd_kafka_topic_t *topic, int64_t i)
{
    int32_t partition = (int32_t) (i % run->options.partitions);
    while (rd_kafka_produce(topic, partition, 0, (void *) (uintptr_t) value_of(run, i),
        (size_t) run->options.size_bytes, NULL, 0, (void *) (uintptr_t) i) != 0) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            die("produce", rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(client, 10);
    }
}

static void wait_delivered(struct run *run, rd_kafka_t *client)
{
    if (rd_kafka_flush(client, STALL_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("flush", "no acknowledgement for a minute");
    assert(run->delivered == run->options.records);
}

static void print_throughput(const struct run *run, uint64_t began_ns, double cpu_before)
{
    int64_t records = run->options.records * run->options.passes;
    printf("{\"records\": %" PRId64 ", \"bytes\": %" PRId64 ", \"seconds\": %.6f, "
        "\"client_cpu_s\": %.3f}\n", records, records * run->options.size_bytes,
        (double) (now_ns() - began_ns) / 1e9, own_cpu_seconds() - cpu_before);
}

static void produce(struct run *run)
{
    rd_kafka_t *client = new_client(run, RD_KAFKA_PRODUCER);
    rd_kafka_topic_t *topic = open_topic(client, run);
    double cpu_before = own_cpu_seconds();
    uint64_t began_ns = now_ns();
    for (int64_t i = 0; i < run->options.records; i++) {
        send_record(run, client, topic, i);
        if (i % 64 == 0)
            rd_kafka_poll(client, 0);
    }
    wait_delivered(run, client);
    print_throughput(run, began_ns, cpu_before);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
}

static int64_t read_some(rd_kafka_queue_t *queue, rd_kafka_message_t **messages)
{
    int64_t good = 0;
    ssize_t count = rd_kafka_consume_batch_queue(queue, STALL_MS, messages, READ_BATCH);
    if (count <= 0)
        die("consume", "no record for a minute");
    for (ssize_t i = 0; i < count; i++) {
        if (messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR)
            good++;
        else if (messages[i]->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
            die("consume", rd_kafka_message_errstr(messages[i]));
        rd_kafka_message_destroy(messages[i]);
    }
    return good;
}

static void consume_pass(struct run *run)
{
    rd_kafka_message_t *messages[READ_BATCH];
    rd_kafka_t *client = new_client(run, RD_KAFKA_CONSUMER);
    rd_kafka_topic_t *topic = open_topic(client, run);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    for (int32_t p = 0; p < run->options.partitions; p++)
        if (rd_kafka_consume_start_queue(topic, p, RD_KAFKA_OFFSET_BEGINNING, queue) != 0)
            die("consume", rd_kafka_err2str(rd_kafka_last_error()));
    for (int64_t got = 0; got < run->options.records;)
        got += read_some(queue, messages);
    for (int32_t p = 0; p < run->options.partitions; p++)
        rd_kafka_consume_stop(topic, p);
    rd_kafka_queue_destroy(queue);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
}

static void consume(struct run *run)
{
    double cpu_before = own_cpu_seconds();
    uint64_t began_ns = now_ns();
    for (int64_t pass = 0; pass < run->options.passes; pass++)
        consume_pass(run);
    print_throughput(run, began_ns, cpu_before);
}

static void *serve_deliveries(void *client)
{
    struct run *run = rd_kafka_opaque(client);
    while (!run->finished)
        rd_kafka_poll(client, 10);
    return NULL;
}

/* Reads what `latency` sends to partition 0: the n-th record read is the n-th sent. */
static void *read_back(void *context)
{
    struct run *run = context;
    rd_kafka_t *client = new_client(run, RD_KAFKA_CONSUMER);
    rd_kafka_topic_t *topic = open_topic(client, run);
    if (rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_BEGINNING) != 0)
        die("consume", rd_kafka_err2str(rd_kafka_last_error()));
    rd_kafka_message_t *none = rd_kafka_consume(topic, 0, SETTLE_MS); /* its fetch now waits */
    assert(none == NULL);
    pthread_barrier_wait(&run->reading);
    for (int64_t i = 0; i < run->options.records;) {
        rd_kafka_message_t *message = rd_kafka_consume(topic, 0, STALL_MS);
        if (message == NULL || message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
            die("consume", message == NULL ? "no record for a minute"
                : rd_kafka_message_errstr(message));
        run->read_ms[i++] = (double) (now_ns() - run->due_ns[message->offset]) / 1e6;
        rd_kafka_message_destroy(message);
    }
    rd_kafka_consume_stop(topic, 0);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    return NULL;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static void print_quantiles(const char *name, double *values, int64_t count)
{
    assert(count > 0);
    qsort(values, (size_t) count, sizeof *values, compare_doubles);
    printf("\"%s_p50_ms\": %.4f, \"%s_p99_ms\": %.4f, \"%s_p99.9_ms\": %.4f, ",
        name, values[count / 2], name, values[count * 99 / 100], name, values[count * 999 / 1000]);
}

static void send_at_rate(struct run *run, rd_kafka_t *client, rd_kafka_topic_t *topic)
{
    uint64_t start_ns = now_ns();
    for (int64_t i = 0; i < run->options.records; i++) {
        uint64_t due_ns = start_ns
            + (uint64_t) i * 1000000000u / (uint64_t) run->options.rate;
        struct timespec due = {(time_t) (due_ns / 1000000000u), (long) (due_ns % 1000000000u)};
        run->due_ns[i] = due_ns;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        send_record(run, client, topic, i);
    }
}

static void latency(struct run *run)
{
    pthread_t server, reader;
    size_t count = (size_t) run->options.records;
    run->due_ns = calloc(count, sizeof *run->due_ns);
    run->acked_ms = calloc(count, sizeof *run->acked_ms);
    run->read_ms = calloc(count, sizeof *run->read_ms);
    assert(run->due_ns != NULL && run->acked_ms != NULL && run->read_ms != NULL);
    assert(run->options.partitions == 1);
    rd_kafka_t *client = new_client(run, RD_KAFKA_PRODUCER);
    rd_kafka_topic_t *topic = open_topic(client, run);
    pthread_barrier_init(&run->reading, NULL, 2);
    if (run->options.read) {
        pthread_create(&reader, NULL, read_back, run);
        pthread_barrier_wait(&run->reading);
    }
    pthread_create(&server, NULL, serve_deliveries, client);
    double cpu_before = own_cpu_seconds();
    uint64_t began_ns = now_ns();
    send_at_rate(run, client, topic);
    wait_delivered(run, client);
    run->finished = 1;
    pthread_join(server, NULL);
    if (run->options.read)
        pthread_join(reader, NULL);
    printf("{");
    print_quantiles("ack", run->acked_ms, run->options.records);
    if (run->options.read)
        print_quantiles("end_to_end", run->read_ms, run->options.records);
    printf("\"records\": %" PRId64 ", \"seconds\": %.6f, \"client_cpu_s\": %.3f}\n",
        run->options.records, (double) (now_ns() - began_ns) / 1e9,
        own_cpu_seconds() - cpu_before);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
}

int main(int argc, char **argv)
{
    struct run run = {.options = {.records = 100000, .size_bytes = 1000, .batch_bytes = 262144,
        .batch_records = 10000, .linger_ms = 5, .in_flight = 5, .partitions = 1, .passes = 1,
        .rate = 1000}};
    if (argc < 4)
        die("usage", "load produce|consume|latency BROKER TOPIC [KEY=VALUE..]");
    run.broker = argv[2];
    run.topic_name = argv[3];
    parse_options(&run.options, argv + 4);
    run.pool = random_pool();
    if (strcmp(argv[1], "produce") == 0)
        produce(&run);
    else if (strcmp(argv[1], "consume") == 0)
        consume(&run);
    else if (strcmp(argv[1], "latency") == 0)
        latency(&run);
    else
        die("unknown command", argv[1]);
    return 0;
}
