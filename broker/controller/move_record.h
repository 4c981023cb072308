/* The record that says where a group lives or moves to, out of its picture. For the controller's
 * own files alone. */
#ifndef OTTLA_BROKER_CONTROLLER_MOVE_RECORD_H
#define OTTLA_BROKER_CONTROLLER_MOVE_RECORD_H

#include "base/uuid.h"
#include "broker/controller/metadata_record.h"
#include "broker/controller/topic_image.h"

/* Appends the record that makes the topic's group this one. */
void move_record_add(struct record_list *records, struct uuid topic_id,
                     const struct partition_group *group);

#endif
