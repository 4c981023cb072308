/* Where a node may be reached: as the metadata or the configuration has it, as the node itself said
 * when it came in, and at the addresses where any controller may be met
 * (controller.quorum.bootstrap.servers). They are tried in turn, so that a node is found as long as
 * one of them is right.
 *
 * Of two voters neither can have its new address recorded without the other one; what a node says
 * of itself needs no majority.
 */
#ifndef OTTLA_BROKER_PEER_PLACES_H
#define OTTLA_BROKER_PEER_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/view.h"
#include "broker/peer/resolver.h"

enum { MEETING_PLACES_MOST = 16 };

struct place {
    char host[PEER_HOST_BYTES];
    uint16_t port;               /* 0: there is no such place */
};

/* Where any controller may be met. */
struct meeting_places {
    struct place list[MEETING_PLACES_MOST];
    int count;
};

/* All zero: none is known. */
struct places {
    struct place recorded;
    struct place told;
    int at;                      /* the one whose turn it is: recorded, told, then the meeting
                                  * places in their order */
};

/* The place, with a copy of the host. One that is too long is none. */
struct place place_of(struct view host, uint16_t port);

/* Whether both name the same host and port; different names of one address do not. */
bool place_equal(const struct place *one, const struct place *other);

/* The node is recorded there from now on, which is tried next. False when nothing is new. */
bool places_record(struct places *places, const struct place *place);

/* The node has said that it is reached there, which is tried next. False when nothing is new; no
 * place at all says nothing. */
bool places_tell(struct places *places, const struct place *place);

/* The one whose turn it is; null when none is known. `meeting` may be null: without them. */
const struct place *places_now(const struct places *places, const struct meeting_places *meeting);

/* It was tried in vain: the next one's turn, from the last one the first again. */
void places_next(struct places *places, const struct meeting_places *meeting);

/* Whether the one whose turn it is is a meeting place. */
bool places_is_meeting(const struct places *places);

#endif
