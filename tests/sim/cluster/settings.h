/* How the simulated nodes are configured and formatted. */
#ifndef OTTLA_TESTS_SIM_CLUSTER_SETTINGS_H
#define OTTLA_TESTS_SIM_CLUSTER_SETTINGS_H

struct sim_node;

enum { CONTROLLER_PORT = 9093, CONTROLLER_PORTS = 8 };

/* What of a node's settings stays the same for all of its processes. */
void settings_draw(struct sim_node *node);

/* The configuration of its next process. */
void settings_make(struct sim_node *node);

/* Its disk is made the one of the first voter of a cluster that changes them. */
void settings_format_first(struct sim_node *node);

/* Its controller is reached elsewhere from its next process on. */
void settings_move(struct sim_node *node);

#endif
