/* Frames between nodes: a request's size and header, and the Raft messages of one turn as one
 * request that refers to the entries' payloads instead of copying them (peer.schema).
 */
#ifndef OTTLA_BROKER_PEER_FRAMES_H
#define OTTLA_BROKER_PEER_FRAMES_H

#include <event2/buffer.h>
#include <stddef.h>
#include <stdint.h>

#include "base/block.h"
#include "base/buffer.h"
#include "broker/peer/payload_place.h"
#include "messages/peer.h"
#include "protocol/codec.h"
#include "raft/raft.h"

/* Smaller payloads are copied: a piece of its own costs more. */
enum { PEER_COPY_BELOW_BYTES = 1024 };

/* Messages for one node, collected until the frame is made. */
struct raft_outbox {
    struct peer_raft_request_message *messages;
    size_t message_count;
    size_t message_capacity;
    struct peer_raft_request_entry *entries; /* of all messages, in their order */
    struct slice *payloads;      /* of the entries; their blocks are held */
    uint64_t *places;            /* where the payloads will lie */
    size_t entry_count;
    size_t entry_capacity;
    size_t bytes;                /* that the frame will have, about */
    struct buffer frame;         /* memory to encode in */
};

/* Adds a message; its entries' blocks are referenced. Large payloads will lie in the frame as they
 * will on the disk, but for multiples of PAYLOAD_PLACE_UNIT: who reads it into pages can write from
 * there. */
void raft_outbox_add(struct raft_outbox *outbox, uint64_t group,
                     const struct raft_message *message, struct payload_place place);

/* Appends one frame with all messages, none is fine, to `out`; the outbox is empty then. */
void raft_outbox_write(struct raft_outbox *outbox, int32_t correlation_id, struct evbuffer *out);

/* Forgets the messages and gives the memory back. */
void raft_outbox_free(struct raft_outbox *outbox);

/* The message as it came; `entries` has room for wire->entries_count of them. Their payloads are
 * slices of `frame`, without references of their own. */
struct raft_message raft_message_of(const struct peer_raft_request_message *wire,
                                    struct block *frame, struct raft_entry *entries);

/* Gives the message's payloads a block of their own, when they are a small part of a large frame:
 * who keeps them must not keep all the rest. Returns the block, whose reference is the caller's, or
 * null when they stay where they are. `entries` are the message's. */
struct block *raft_message_detach(struct raft_entry *entries, size_t count, size_t frame_length);

/* A frame's start: four bytes for the size and the header of a request. */
void peer_frame_begin(struct buffer *frame, int16_t api_key, int16_t api_version,
                      int32_t correlation_id);

/* Sets the size of a whole frame and appends it to `out`. */
void peer_frame_write(struct buffer *frame, struct evbuffer *out);

#endif
