/* The load generator of bench/joyqueue: many connections, each with one Produce request in flight,
 * acks=all, one record a request. No client library: the frames are built once and sent as they
 * are, so that the broker, not this program, sets the pace (the null server shows its ceiling).
 *
 *   sync_load PORT TOPIC CONNECTIONS PARTITIONS VALUE_BYTES WARM_SECONDS SECONDS
 *
 * Happy path: connection c writes to partition c modulo PARTITIONS; when an answer has come, the
 * next request leaves at once. After the warm-up it counts for SECONDS and prints one line of JSON:
 * records, seconds, own CPU seconds, quantiles of the time from send to answer in milliseconds.
 * The lines "begin" and "end" come before it, at both ends of the counted time, so that whoever
 * started it can read the broker's CPU time there.
 *
 * Failure modes: an answer with an error code, a closed connection or ten seconds without any
 * answer ends it with status 1 and a line on stderr. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    PRODUCE_VERSION = 9,    /* the first flexible one; later ones differ little */
    ANSWER_MAX = 512,
    EVENTS = 256,
    STALL_MS = 10000,
    BATCH_HEADER_BYTES = 61,
    BUCKETS = 64 * 64       /* 64 powers of two of nanoseconds, each in 64 steps: 1.6 % wide */
};

struct bytes {
    uint8_t data[70000];
    size_t length;
};

struct connection {
    int fd;
    uint8_t *frame;
    size_t frame_bytes;
    uint64_t sent_ns;
    uint8_t answer[ANSWER_MAX];
    size_t got_bytes;
};

struct generator {
    struct connection *connections;
    int count, epoll;
    size_t error_position;  /* where an answer's partition error code lies */
    uint64_t histogram[BUCKETS];
    uint64_t records;
    int counting;
};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "sync_load: %s: %s\n", what, detail);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static void put_int(struct bytes *b, int64_t value, size_t width)
{
    assert(width <= 8 && b->length + width <= sizeof b->data);
    for (size_t i = 0; i < width; i++)
        b->data[b->length++] = (uint8_t) ((uint64_t) value >> (8 * (width - 1 - i)));
}

static void put_varint(struct bytes *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_int(b, (int64_t) (value & 0x7f) | 0x80, 1);
    put_int(b, (int64_t) value, 1);
}

static void put_zigzag(struct bytes *b, int64_t value)
{
    put_varint(b, (uint64_t) value << 1 ^ (uint64_t) (value >> 63));
}

static void put_raw(struct bytes *b, const void *data, size_t length)
{
    assert(b->length + length <= sizeof b->data);
    memcpy(b->data + b->length, data, length);
    b->length += length;
}

/* CRC-32C, bit by bit: it runs only while the frames are built. */
static uint32_t crc32c(const uint8_t *data, size_t length)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1)));
    }
    return ~crc;
}

static void put_record(struct bytes *b, size_t value_bytes)
{
    struct bytes body = {.length = 0};
    put_int(&body, 0, 1);           /* attributes */
    put_zigzag(&body, 0);           /* timestamp delta */
    put_zigzag(&body, 0);           /* offset delta */
    put_zigzag(&body, -1);          /* no key */
    put_zigzag(&body, (int64_t) value_bytes);
    for (size_t i = 0; i < value_bytes; i++)
        put_int(&body, (int64_t) (i * 2654435761u >> 13 & 0xff), 1);
    put_zigzag(&body, 0);           /* no headers */
    put_zigzag(b, (int64_t) body.length);
    put_raw(b, body.data, body.length);
}

/* A record batch of format 2 with one record and no producer id. */
static void build_batch(struct bytes *batch, size_t value_bytes)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t now_ms = (int64_t) wall.tv_sec * 1000;
    struct bytes tail = {.length = 0}; /* what the CRC covers */
    put_int(&tail, 0, 2);           /* attributes */
    put_int(&tail, 0, 4);           /* last offset delta */
    put_int(&tail, now_ms, 8);
    put_int(&tail, now_ms, 8);
    put_int(&tail, -1, 8);          /* producer id, epoch, sequence: none */
    put_int(&tail, -1, 2);
    put_int(&tail, -1, 4);
    put_int(&tail, 1, 4);
    put_record(&tail, value_bytes);
    put_int(batch, 0, 8);           /* base offset */
    put_int(batch, (int64_t) tail.length + 9, 4);
    put_int(batch, -1, 4);          /* leader epoch */
    put_int(batch, 2, 1);           /* magic */
    put_int(batch, crc32c(tail.data, tail.length), 4);
    put_raw(batch, tail.data, tail.length);
    assert(batch->length > BATCH_HEADER_BYTES);
}

static void build_frame(struct connection *c, const char *topic, int partition,
    const struct bytes *batch)
{
    struct bytes body = {.length = 0}, frame = {.length = 0};
    put_int(&body, 0, 2);           /* Produce */
    put_int(&body, PRODUCE_VERSION, 2);
    put_int(&body, 0, 4);           /* correlation id: one in flight needs no other */
    put_int(&body, 5, 2);
    put_raw(&body, "bench", 5);
    put_int(&body, 0, 1);           /* header tags */
    put_varint(&body, 0);           /* no transactional id */
    put_int(&body, -1, 2);          /* acks=all */
    put_int(&body, 30000, 4);
    put_varint(&body, 2);           /* one topic */
    put_varint(&body, strlen(topic) + 1);
    put_raw(&body, topic, strlen(topic));
    put_varint(&body, 2);           /* one partition */
    put_int(&body, partition, 4);
    put_varint(&body, batch->length + 1);
    put_raw(&body, batch->data, batch->length);
    put_int(&body, 0, 3);           /* the tags of partition, topic and request */
    put_int(&frame, (int64_t) body.length, 4);
    put_raw(&frame, body.data, body.length);
    c->frame = malloc(frame.length);
    assert(c->frame != NULL);
    memcpy(c->frame, frame.data, frame.length);
    c->frame_bytes = frame.length;
}

static void open_connection(struct generator *g, struct connection *c, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *) &address, sizeof address) != 0)
        die("connect", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (epoll_ctl(g->epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
        die("epoll", strerror(errno));
}

/* One frame is far smaller than a socket's buffer, and none is sent before the last was answered:
 * so a send never blocks and is never short. */
static void send_next(struct connection *c)
{
    c->got_bytes = 0;
    c->sent_ns = now_ns();
    if (send(c->fd, c->frame, c->frame_bytes, MSG_NOSIGNAL) != (ssize_t) c->frame_bytes)
        die("send", strerror(errno));
}

static size_t bucket_of(uint64_t ns)
{
    if (ns < 64)
        return (size_t) ns;
    unsigned power = 63u - (unsigned) __builtin_clzll(ns);
    return (size_t) (power - 5) * 64 + (size_t) (ns >> (power - 6) & 63);
}

static uint64_t bucket_start_ns(size_t bucket)
{
    return bucket < 64 ? bucket : (64u + bucket % 64) << (bucket / 64 - 1);
}

static void check_answer(const struct generator *g, const struct connection *c)
{
    const uint8_t *e = c->answer + g->error_position;
    char text[16];
    assert(c->got_bytes > g->error_position + 2);
    if (e[0] == 0 && e[1] == 0)
        return;
    snprintf(text, sizeof text, "%d", (int) (int16_t) (e[0] << 8 | e[1]));
    die("the broker answered error", text);
}

static void readable(struct generator *g, struct connection *c)
{
    ssize_t got = recv(c->fd, c->answer + c->got_bytes, ANSWER_MAX - c->got_bytes, MSG_DONTWAIT);
    if (got <= 0)
        die("recv", got == 0 ? "the broker closed a connection" : strerror(errno));
    c->got_bytes += (size_t) got;
    if (c->got_bytes < 4)
        return;
    size_t want = 4 + ((size_t) c->answer[0] << 24 | (size_t) c->answer[1] << 16
        | (size_t) c->answer[2] << 8 | c->answer[3]);
    if (want > ANSWER_MAX)
        die("answer", "too long");
    if (c->got_bytes < want)
        return;
    check_answer(g, c);
    if (g->counting) {
        g->histogram[bucket_of(now_ns() - c->sent_ns)]++;
        g->records++;
    }
    send_next(c);
}

static void run_for(struct generator *g, double seconds)
{
    struct epoll_event events[EVENTS];
    uint64_t end_ns = now_ns() + (uint64_t) (seconds * 1e9);
    while (now_ns() < end_ns) {
        int count = epoll_wait(g->epoll, events, EVENTS, STALL_MS);
        if (count <= 0)
            die("epoll", count == 0 ? "no answer for ten seconds" : strerror(errno));
        for (int i = 0; i < count; i++)
            readable(g, events[i].data.ptr);
    }
}

static double quantile_ms(const struct generator *g, double q)
{
    uint64_t seen = 0, want = (uint64_t) ((double) g->records * q);
    for (size_t i = 0; i < BUCKETS; i++) {
        seen += g->histogram[i];
        if (seen > want)
            return (double) bucket_start_ns(i) / 1e6;
    }
    return 0;
}

static double own_cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        + (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Says on stdout that the counted time begins or ends; the reader samples the broker there. */
static void mark(const char *word)
{
    puts(word);
    fflush(stdout);
}

static void measure(struct generator *g, double warm_seconds, double seconds)
{
    for (int i = 0; i < g->count; i++)
        send_next(&g->connections[i]);
    run_for(g, warm_seconds);
    mark("begin");
    double cpu_before = own_cpu_seconds();
    uint64_t began_ns = now_ns();
    g->counting = 1;
    run_for(g, seconds);
    double took = (double) (now_ns() - began_ns) / 1e9;
    mark("end");
    printf("{\"records\": %" PRIu64 ", \"seconds\": %.6f, \"client_cpu_s\": %.3f, "
        "\"p50_ms\": %.4f, \"p99_ms\": %.4f, \"p99.9_ms\": %.4f}\n", g->records, took,
        own_cpu_seconds() - cpu_before, quantile_ms(g, 0.5), quantile_ms(g, 0.99),
        quantile_ms(g, 0.999));
}

int main(int argc, char **argv)
{
    static struct generator g;
    static struct bytes batch;
    if (argc != 8)
        die("usage", "PORT TOPIC CONNECTIONS PARTITIONS VALUE_BYTES WARM_SECONDS SECONDS");
    const char *topic = argv[2];
    int port = atoi(argv[1]), partitions = atoi(argv[4]);
    g.count = atoi(argv[3]);
    if (g.count < 1 || partitions < 1 || atoi(argv[5]) < 1 || atoi(argv[5]) > 60000
        || strlen(topic) > 100)
        die("usage", "a number out of range");
    g.epoll = epoll_create1(EPOLL_CLOEXEC);
    g.connections = calloc((size_t) g.count, sizeof *g.connections);
    assert(g.epoll >= 0 && g.connections != NULL);
    g.error_position = 4 + 4 + 1 + 1 + 1 + strlen(topic) + 1 + 4;
    build_batch(&batch, (size_t) atoi(argv[5]));
    for (int i = 0; i < g.count; i++) {
        build_frame(&g.connections[i], topic, i % partitions, &batch);
        open_connection(&g, &g.connections[i], port);
    }
    measure(&g, atof(argv[6]), atof(argv[7]));
    return 0;
}
