/* The upper 16 bits are the print, the others the places. */
#include "broker/group/lag.h"

#include <assert.h>

#include "broker/controller/topic_image.h"

/* Two lists that follow each other rarely have the same; if they do, a word is believed that the
 * leader replaces a moment later. Odd, so that 0 is nobody's. */
static uint64_t print_of(const struct partition_group *group)
{
    uint32_t mixed = 0;
    for (int32_t i = 0; i < group->replica_count; i++) {
        mixed = (mixed ^ (uint32_t)group->replicas[i]) * 0x9e3779b1u;
        mixed ^= mixed >> 15;
    }
    uint64_t print = (mixed & 0xffff) | 1;
    return print << LAG_REPLICAS;
}

uint64_t lag_untold(const struct partition_group *group)
{
    uint64_t lag = print_of(group);
    bool moves = partition_group_moves(group);
    for (int32_t i = 0; moves && i < group->replica_count; i++) {
        lag = lag_with(lag, i, !partition_group_was_on(group, group->replicas[i]));
    }
    assert(lag != 0);
    return lag;
}

uint64_t lag_of(uint64_t told, const struct partition_group *group)
{
    bool is_meant = told >> LAG_REPLICAS == print_of(group) >> LAG_REPLICAS;
    return is_meant ? told : lag_untold(group);
}

uint64_t lag_with(uint64_t lag, int32_t place, bool lags)
{
    assert(place >= 0);
    if (place >= LAG_REPLICAS) {
        return lag;
    }
    uint64_t bit = (uint64_t)1 << place;
    return lags ? lag | bit : lag & ~bit;
}

bool lag_has(uint64_t lag, int32_t place)
{
    assert(place >= 0);
    return place < LAG_REPLICAS && (lag >> place & 1) != 0;
}
