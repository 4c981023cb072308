/* Where the payloads of a message are expected to lie on the disk of who gets it. A guess, made
 * from the log of who sends: where it is wrong, the receiver copies. */
#ifndef OTTLA_BROKER_PEER_PAYLOAD_PLACE_H
#define OTTLA_BROKER_PEER_PAYLOAD_PLACE_H

#include <stddef.h>
#include <stdint.h>

/* Places count but for multiples of this: memory is as good for a direct write when it differs from
 * the file's position by some of them. */
enum { PAYLOAD_PLACE_UNIT = 512 };

struct payload_place {
    uint64_t position; /* of the first payload's first byte; it may be before the file's start */
    size_t overlap;    /* so many bytes of each lie in the end of the one before: they stay out */
};

#endif
