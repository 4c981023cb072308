/* Blocks of producer ids (KIP-730). Owns nothing: the counter is in the image, the block is taken
 * by one record, so an id that was given out once never is again. */
#include "broker/controller/controller.h"

#include <assert.h>

void controller_allocate_producer_ids(const struct controller *controller, int32_t broker_id,
                                      struct record_list *records, int64_t *first)
{
    assert(controller != NULL && records != NULL && first != NULL);
    *first = image_next_producer_id(controller->image);
    assert(*first >= 0 && *first <= INT64_MAX - PRODUCER_ID_BLOCK);
    struct producer_ids_record record = producer_ids_record_default;
    record.broker_id = broker_id;
    record.next_producer_id = *first + PRODUCER_ID_BLOCK;
    record_list_add(records, &producer_ids_record_type, 0, &record);
}
