/* A second process beside a node of a cluster. While the node is stopped by a signal (SIGSTOP,
 * Ctrl-Z) the kernel goes on taking connections and requests for it that nobody answers: a client
 * notices nothing before its own timeout, by default after half a minute or more, although another
 * node has long led in its place. The guard sees it and ends the node's connections and its
 * listening, so that clients and nodes turn to others at once. A node that goes on listens again
 * (net/acceptor.c).
 *
 * It helps nobody where it is stopped as well (a paused container or machine), and where one
 * process may not take another's sockets (pidfd_getfd(2), which containers may forbid). */
#ifndef OTTLA_BROKER_SERVER_GUARD_H
#define OTTLA_BROKER_SERVER_GUARD_H

#include <stdint.h>
#include <sys/types.h>

/* Starts a guard that ends the connections once this process has been stopped for patience_ms,
 * which is above 0. To be called before there are other threads; the guard ends with the calling
 * one. Returns its process id; 0, with a line in the log, when there can be none. */
pid_t guard_start(uint32_t patience_ms);

/* Ends the guard and waits for it; 0 is allowed. */
void guard_end(pid_t guard);

#endif
