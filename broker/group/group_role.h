/* Beginning and ending to lead: what changes in a group, and who is told. */
#ifndef OTTLA_BROKER_GROUP_GROUP_ROLE_H
#define OTTLA_BROKER_GROUP_GROUP_ROLE_H

#include "broker/group/group.h"
#include "raft/raft.h"

/* Raft said that its role, term or leader changed. */
void group_role_changed(struct group *group, enum raft_role role);

/* After each step: leads from now on, if it was elected and has applied all that came before. */
void group_lead_when_ready(struct group *group);

/* Ends leading, if it led; who waits for a proposal is told. */
void group_stop_leading(struct group *group);

/* Writes into the directory who leads. */
void group_tell_role(struct group *group);

/* The group is counted as starting no more: it leads, follows somebody, failed or waited enough. */
void group_started(struct group *group);

#endif
