/* What goes wrong: kills, power cuts, torn writes, pauses, partitions, slow, stalled, full and
 * failing disks, clock jumps, lost disks. A seed has a mood: some kinds of faults more often than
 * others, or none of them, and all of it sometimes in a hurry.
 */
#ifndef OTTLA_TESTS_SIM_CLUSTER_FAULTS_H
#define OTTLA_TESTS_SIM_CLUSTER_FAULTS_H

/* Faults happen from now on. */
void faults_start(void);

/* No more faults; what is broken is mended: nodes start, the network heals, disks are quick. */
void faults_stop(void);

#endif
