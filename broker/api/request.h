/* One request on its way through the broker, and its answer on the way back.
 *
 * It owns its frame and an arena; the decoded message's strings are views into the frame. One part
 * holds it at a time: the connection's shard, or, sent as mail, the shard of a partition group.
 * Whoever holds it encodes the answer; then it goes home to its connection. A request that the
 * broker makes itself, or gets from another node for a client of that one, has no connection; it
 * goes home to whoever had it made.
 */
#ifndef OTTLA_BROKER_API_REQUEST_H
#define OTTLA_BROKER_API_REQUEST_H

#include <event2/buffer.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/block.h"
#include "base/buffer.h"
#include "base/list.h"
#include "broker/net/connection.h"
#include "broker/net/mailbox.h"
#include "broker/net/shard.h"
#include "protocol/codec.h"

struct api;

struct request {
    struct mail mail;             /* while it travels between shards */
    struct list_link link;        /* in the connection's requests */
    struct list_link parked;      /* broker/api/parking.h */
    struct connection *connection; /* null: inside */
    struct shard *home;
    const struct api *api;
    struct block *frame;
    size_t frame_length;
    struct arena arena;
    int16_t api_key;
    int16_t api_version;
    int32_t correlation_id;
    struct view client_id;
    struct view body;             /* the encoded message, part of the frame */
    void *message;                /* the decoded request, of the api's request type */
    void *state;                  /* a handler's own, in the arena */
    void (*release)(struct request *request); /* lets go of what `state` holds; may be null */
    void (*cancel)(struct request *request);  /* the client is gone: stop waiting; may be null */
    bool answered;
    bool silent;                  /* no answer is written (Produce with acks 0) */
    bool close_after;             /* the connection ends after this answer */
    bool not_controller;          /* inside: no answer, as this node does not lead the metadata */
    /* Inside: gets the request when it comes home, and releases it. */
    void (*came_home)(struct request *request);
    void *asker;                  /* came_home's */
    uint64_t started_ns;
    struct buffer answer;         /* size, header and body */
    size_t answer_body;           /* where the body begins in it */
    struct message_gap *gaps;     /* where file ranges and slices go into the answer */
    size_t gap_count;
    /* Adds the bytes of gap number `gap` to `out`; set by the handler that leaves gaps. */
    void (*fill_gap)(struct request *request, size_t gap, struct evbuffer *out);
};

/* A request that owns the frame's reference. */
struct request *request_new(struct connection *connection, struct block *frame, size_t length);

/* Decodes and dispatches it on the connection's shard; closes the connection when it cannot. */
void request_start(struct request *request);

/* What a request inside is made from; the views are copied. */
struct inside_request {
    int16_t api_key;
    int16_t api_version;
    struct view client_id;
    struct view body;            /* the encoded message */
    void (*came_home)(struct request *request);
    void *asker;
};

/* Decodes and dispatches a request without a connection, on this shard. False when its key is not
 * served inside, or the body cannot be read; then came_home does not run. */
MUST_USE bool request_run_inside(struct shard *shard, const struct inside_request *inside);

/* What is encoded of the answer, without its header; alive as long as the request. */
struct view request_answer_body(const struct request *request);

/* Gives the answer whose body another node has encoded. On the request's home. */
void request_answer_as_is(struct request *request, struct view body);

/* Encodes the answer, a message of the api's response type, and brings the request home. `here` is
 * the shard that holds it now. After this the caller no longer has the request. */
void request_answer(struct request *request, struct shard *here, const void *response);

/* The two halves of request_answer, for an answer that is made at one time and given at another.
 * Encoding again replaces what was encoded before. */
void request_encode(struct request *request, const void *response);
void request_go_home(struct request *request, struct shard *here);

/* Brings it home without an answer: acks 0, or when the connection has to close. */
void request_finish_silently(struct request *request, struct shard *here, bool close_connection);

/* Sends the request to another shard, which runs `run` with it. */
void request_send(struct request *request, struct shard *to,
                  void (*run)(struct shard *shard, struct mail *mail));

/* Zeroed memory that lives as long as the request. Never null: what a client can ask for is bounded
 * while decoding. */
void *request_take(struct request *request, size_t count, size_t size);

/* `count` copies of `defaults` (a generated `<struct>_default`, `size` bytes), likewise. */
void *request_elements(struct request *request, size_t count, const void *defaults, size_t size);

/* The request whose mail this is. */
static inline struct request *request_of_mail(struct mail *mail)
{
    return container_of(mail, struct request, mail);
}

/* For the connection only: appends the answer's bytes; releases the request. */
void request_write_answer(struct request *request, struct evbuffer *out);
void request_free(struct request *request);

#endif
