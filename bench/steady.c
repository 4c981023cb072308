/* The client of bench/failover: a librdkafka producer that sends at a steady rate while brokers
 * come and go, and a reader that afterwards looks for what was acknowledged.
 *
 *   steady produce BROKERS TOPIC FILE PARTITIONS RATE [KEY=VALUE..]
 *   steady check BROKERS TOPIC FILE PARTITIONS
 *   steady version
 *
 * Happy path: `produce` sends RATE records a second to each partition, each with its partition's
 * next sequence number in it, until its standard input ends; then it waits for what is under way.
 * FILE gets a struct outcome for each record, with the monotonic clock, which is the same in every
 * process. It says "flows" when the first record's outcome is known. KEY=VALUE are properties of
 * librdkafka; all others are as it ships. `check` reads the whole topic and prints one line of
 * JSON: how many acknowledged records are lost, doubled, or behind a later one.
 *
 * Failure modes: a failed delivery is written down with its error and counted by whoever reads
 * FILE; a wrong property, or nothing to read for a minute, ends it with status 1 and a line on
 * stderr. */
#include <assert.h>
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { VALUE_BYTES = 100, STALL_MS = 60000, FLUSH_MS = 120000, READ_BATCH = 1000 };
enum { READ_MS = 100 };    /* a batch of the reader that does not fill is waited for so long */
enum { OUTCOMES_MAX = 50000000 }; /* address space, no memory until it is used */

struct outcome {
    uint64_t due_ns;        /* when it was to be sent */
    uint64_t ended_ns;      /* when its delivery was reported; 0: never */
    uint32_t partition, sequence;
    int32_t error;          /* librdkafka's; 0: acknowledged */
    uint32_t unused;
};

struct run {
    const char *brokers, *topic_name, *path;
    uint32_t partitions;
    uint64_t rate;
    struct outcome *outcomes;
    volatile int finished;
};

struct value {              /* what a record begins with */
    uint32_t partition, sequence;
};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "steady: %s: %s\n", what, detail);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char error[256];
    if (rd_kafka_conf_set(conf, key, value, error, sizeof error) != RD_KAFKA_CONF_OK)
        die(key, error);
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    struct run *run = opaque;
    struct outcome *outcome = &run->outcomes[(size_t) message->_private];
    (void) client;
    outcome->error = message->err;
    outcome->ended_ns = now_ns();
    if (message->_private == NULL) {
        puts("flows");
        fflush(stdout);
    }
}

/* Says what librdkafka says, with the outcomes' clock: a gap is looked into with this. */
static void on_log(const rd_kafka_t *client, int level, const char *facility, const char *text)
{
    (void) client;
    (void) level;
    fprintf(stderr, "%.3f %s %s\n", (double) now_ns() / 1e9, facility, text);
}

static rd_kafka_t *new_client(struct run *run, rd_kafka_type_t type, char **properties)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char error[256];
    set(conf, "bootstrap.servers", run->brokers);
    rd_kafka_conf_set_opaque(conf, run);
    rd_kafka_conf_set_log_cb(conf, on_log);
    if (type == RD_KAFKA_PRODUCER)
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    else
        set(conf, "enable.partition.eof", "true");
    for (; *properties != NULL; properties++) {
        char *equals = strchr(*properties, '=');
        if (equals == NULL)
            die("not KEY=VALUE", *properties);
        *equals = '\0';
        set(conf, *properties, equals + 1);
        *equals = '=';
    }
    rd_kafka_t *client = rd_kafka_new(type, conf, error, sizeof error);
    if (client == NULL)
        die("client", error);
    return client;
}

/* ---- Producing ---- */

static void *serve_deliveries(void *client)
{
    struct run *run = rd_kafka_opaque(client);
    while (!run->finished)
        rd_kafka_poll(client, 10);
    return NULL;
}

static int input_ended(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

static void send_record(struct run *run, rd_kafka_topic_t *topic, size_t i)
{
    char bytes[VALUE_BYTES] = {0};
    struct outcome *outcome = &run->outcomes[i];
    struct value value = {outcome->partition, outcome->sequence};
    memcpy(bytes, &value, sizeof value);
    while (rd_kafka_produce(topic, (int32_t) outcome->partition, RD_KAFKA_MSG_F_COPY, bytes,
        sizeof bytes, NULL, 0, (void *) i) != 0) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            outcome->error = rd_kafka_last_error();
            outcome->ended_ns = now_ns();
            return;
        }
        struct timespec moment = {0, 1000000};
        nanosleep(&moment, NULL);
    }
}

static size_t send_all(struct run *run, rd_kafka_topic_t *topic)
{
    uint64_t start_ns = now_ns();
    size_t count = 0;
    for (uint32_t n = 0; !input_ended() && count + run->partitions < OUTCOMES_MAX; n++) {
        uint64_t due_ns = start_ns + (uint64_t) n * 1000000000u / run->rate;
        struct timespec due = {(time_t) (due_ns / 1000000000u), (long) (due_ns % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        for (uint32_t p = 0; p < run->partitions; p++) {
            run->outcomes[count] = (struct outcome) {.due_ns = due_ns, .partition = p,
                .sequence = n};
            send_record(run, topic, count);
            count++;
        }
    }
    return count;
}

static void produce(struct run *run, char **properties)
{
    pthread_t server;
    run->outcomes = mmap(NULL, OUTCOMES_MAX * sizeof *run->outcomes, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (run->outcomes == MAP_FAILED)
        die("mmap", "no address space");
    rd_kafka_t *client = new_client(run, RD_KAFKA_PRODUCER, properties);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, run->topic_name, NULL);
    assert(topic != NULL);
    pthread_create(&server, NULL, serve_deliveries, client);
    size_t count = send_all(run, topic);
    rd_kafka_flush(client, FLUSH_MS);
    run->finished = 1;
    pthread_join(server, NULL);
    FILE *file = fopen(run->path, "wb");
    if (file == NULL || fwrite(run->outcomes, sizeof *run->outcomes, count, file) != count
        || fclose(file) != 0)
        die(run->path, "cannot be written");
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
}

/* ---- Checking ---- */

struct seen {
    uint8_t *times;         /* [sequence * partitions + partition] */
    uint8_t *acknowledged;
    uint32_t *next;         /* [partition]: above every sequence number read so far */
    size_t count;
    uint64_t behind;        /* first copies that come after a later record */
};

static void load_outcomes(struct run *run, struct seen *seen)
{
    struct outcome outcome;
    FILE *file = fopen(run->path, "rb");
    if (file == NULL)
        die(run->path, "cannot be read");
    fseek(file, 0, SEEK_END);
    seen->count = (size_t) ftell(file) / sizeof outcome;
    rewind(file);
    seen->times = calloc(seen->count + 1, 1);
    seen->acknowledged = calloc(seen->count + 1, 1);
    seen->next = calloc(run->partitions, sizeof *seen->next);
    assert(seen->times != NULL && seen->acknowledged != NULL && seen->next != NULL);
    while (fread(&outcome, sizeof outcome, 1, file) == 1) {
        size_t i = (size_t) outcome.sequence * run->partitions + outcome.partition;
        assert(i < seen->count);
        seen->acknowledged[i] = outcome.ended_ns != 0 && outcome.error == 0;
    }
    fclose(file);
}

static void take(struct run *run, struct seen *seen, const rd_kafka_message_t *message)
{
    struct value value;
    assert(message->len == VALUE_BYTES);
    memcpy(&value, message->payload, sizeof value);
    size_t i = (size_t) value.sequence * run->partitions + value.partition;
    if (i >= seen->count || (int32_t) value.partition != message->partition)
        die("read", "a record that nobody sent");
    if (seen->times[i] == 0 && value.sequence < seen->next[value.partition])
        seen->behind++;
    if (value.sequence >= seen->next[value.partition])
        seen->next[value.partition] = value.sequence + 1;
    if (seen->times[i] < UINT8_MAX)
        seen->times[i]++;
}

static void read_all(struct run *run, struct seen *seen, char **properties)
{
    rd_kafka_message_t *messages[READ_BATCH];
    rd_kafka_t *client = new_client(run, RD_KAFKA_CONSUMER, properties);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, run->topic_name, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    for (uint32_t p = 0; p < run->partitions; p++)
        rd_kafka_consume_start_queue(topic, (int32_t) p, RD_KAFKA_OFFSET_BEGINNING, queue);
    uint64_t heard_ns = now_ns();
    for (uint32_t ends = 0; ends < run->partitions;) {
        ssize_t count = rd_kafka_consume_batch_queue(queue, READ_MS, messages, READ_BATCH);
        if (count < 0 || now_ns() - heard_ns > STALL_MS * UINT64_C(1000000))
            die("read", "nothing for a minute");
        if (count > 0)
            heard_ns = now_ns();
        for (ssize_t i = 0; i < count; i++) {
            if (messages[i]->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
                ends++;
            else if (messages[i]->err != RD_KAFKA_RESP_ERR_NO_ERROR)
                die("read", rd_kafka_message_errstr(messages[i]));
            else
                take(run, seen, messages[i]);
            rd_kafka_message_destroy(messages[i]);
        }
    }
    for (uint32_t p = 0; p < run->partitions; p++)
        rd_kafka_consume_stop(topic, (int32_t) p);
    rd_kafka_queue_destroy(queue);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
}

static void check(struct run *run, char **properties)
{
    struct seen seen = {0};
    uint64_t acknowledged = 0, lost = 0, doubled = 0;
    load_outcomes(run, &seen);
    read_all(run, &seen, properties);
    for (size_t i = 0; i < seen.count; i++) {
        acknowledged += seen.acknowledged[i];
        lost += seen.acknowledged[i] && seen.times[i] == 0;
        doubled += seen.times[i] > 1;
    }
    printf("{\"sent\": %zu, \"acknowledged\": %" PRIu64 ", \"lost\": %" PRIu64
        ", \"doubled\": %" PRIu64 ", \"behind\": %" PRIu64 "}\n", seen.count, acknowledged, lost,
        doubled, seen.behind);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "version") == 0) {
        puts(rd_kafka_version_str());
        return 0;
    }
    if (argc < 6)
        die("usage", "steady produce|check BROKERS TOPIC FILE PARTITIONS [RATE] [KEY=VALUE..]");
    struct run run = {.brokers = argv[2], .topic_name = argv[3], .path = argv[4],
        .partitions = (uint32_t) strtoul(argv[5], NULL, 10)};
    if (strcmp(argv[1], "produce") == 0 && argc > 6) {
        run.rate = strtoull(argv[6], NULL, 10);
        produce(&run, argv + 7);
    } else if (strcmp(argv[1], "check") == 0) {
        check(&run, argv + 6);
    } else {
        die("unknown command", argv[1]);
    }
    return 0;
}
