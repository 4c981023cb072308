/* A turn is a number: 0 is the recorded place, 1 the told one. Places that are not there, or that
 * were tried under another name already, are passed over. */
#include "broker/peer/places.h"

#include <assert.h>
#include <string.h>

enum { RECORDED, TOLD, FIRST_MEETING };

struct place place_of(struct view host, uint16_t port)
{
    struct place place = {0};
    if (host.length > 0 && host.length < sizeof place.host) {
        memcpy(place.host, host.data, host.length);
        place.port = port;
    }
    return place;
}

bool place_equal(const struct place *one, const struct place *other)
{
    return one->port == other->port && strcmp(one->host, other->host) == 0;
}

bool places_record(struct places *places, const struct place *place)
{
    if (place_equal(&places->recorded, place)) {
        return false;
    }
    places->recorded = *place;
    places->at = RECORDED;
    return true;
}

bool places_tell(struct places *places, const struct place *place)
{
    if (place->port == 0 || place_equal(&places->told, place)) {
        return false;
    }
    places->told = *place;
    bool is_new = !place_equal(&places->recorded, place);
    places->at = is_new ? TOLD : RECORDED;
    return is_new;
}

/* Null: there is nothing at this turn. */
static const struct place *place_at(const struct places *places, int at,
                                    const struct meeting_places *meeting)
{
    if (at == RECORDED) {
        return places->recorded.port > 0 ? &places->recorded : NULL;
    }
    const struct place *place = at == TOLD ? &places->told : &meeting->list[at - FIRST_MEETING];
    bool is_again = place_equal(place, &places->recorded) ||
                    (at != TOLD && place_equal(place, &places->told));
    return place->port > 0 && !is_again ? place : NULL;
}

static int turns(const struct meeting_places *meeting)
{
    assert(meeting == NULL || meeting->count <= MEETING_PLACES_MOST);
    return FIRST_MEETING + (meeting == NULL ? 0 : meeting->count);
}

void places_next(struct places *places, const struct meeting_places *meeting)
{
    int count = turns(meeting);
    for (int i = 0; i < count; i++) {
        places->at = (places->at + 1) % count;
        if (place_at(places, places->at, meeting) != NULL) {
            return;
        }
    }
    places->at = RECORDED;
}

const struct place *places_now(const struct places *places, const struct meeting_places *meeting)
{
    assert(places->at < turns(meeting));
    return place_at(places, places->at, meeting);
}

bool places_is_meeting(const struct places *places)
{
    return places->at >= FIRST_MEETING;
}
