/* getaddrinfo on a detached thread; a queue under a lock. The last of thread and owner frees it, as
 * the system's resolver cannot be interrupted and a stop does not wait for it. */
#include "broker/peer/resolver.h"

#include <assert.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct resolver {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct resolve_job *first;
    struct resolve_job *last;
    bool running;
    bool closed;
};

struct resolver *resolver_new(void)
{
    struct resolver *resolver = memory_new_zero(1, sizeof *resolver);
    pthread_mutex_init(&resolver->lock, NULL);
    pthread_cond_init(&resolver->changed, NULL);
    return resolver;
}

static int look_up(const char *host, uint16_t port, int flags, struct peer_addresses *addresses)
{
    char service[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    snprintf(service, sizeof service, "%u", port);
    addresses->count = 0;
    int failed = getaddrinfo(host, service, &hints, &found);
    if (failed != 0) {
        return failed;
    }
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        if (addresses->count < PEER_ADDRESSES_MAX &&
            (at->ai_family == AF_INET || at->ai_family == AF_INET6)) {
            assert(at->ai_addrlen <= sizeof addresses->list[0]);
            memcpy(&addresses->list[addresses->count++], at->ai_addr, at->ai_addrlen);
        }
    }
    freeaddrinfo(found);
    return addresses->count > 0 ? 0 : EAI_NONAME;
}

bool resolver_numeric(const char *host, uint16_t port, struct peer_addresses *addresses)
{
    return look_up(host, port, AI_NUMERICHOST, addresses) == 0;
}

static void destroy(struct resolver *resolver)
{
    assert(resolver->first == NULL);
    pthread_cond_destroy(&resolver->changed);
    pthread_mutex_destroy(&resolver->lock);
    free(resolver);
}

/* Called with the lock held, and gives it back while it waits. Null: closed. */
static struct resolve_job *next_job(struct resolver *resolver)
{
    while (resolver->first == NULL && !resolver->closed) {
        pthread_cond_wait(&resolver->changed, &resolver->lock);
    }
    struct resolve_job *job = resolver->first;
    if (job != NULL) {
        resolver->first = job->next;
    }
    return job;
}

static void *resolve(void *argument)
{
    struct resolver *resolver = argument;
    struct resolve_job *job;
    pthread_setname_np(pthread_self(), "resolver");
    pthread_mutex_lock(&resolver->lock);
    while ((job = next_job(resolver)) != NULL) {
        pthread_mutex_unlock(&resolver->lock);
        int failed = look_up(job->host, job->port, 0, &job->addresses);
        job->error = failed == 0 ? NULL : gai_strerror(failed);
        pthread_mutex_lock(&resolver->lock);
        if (resolver->closed) {
            free(job);
        } else {
            shard_post(job->shard, &job->mail);
        }
    }
    pthread_mutex_unlock(&resolver->lock);
    destroy(resolver);
    return NULL;
}

static bool start_thread(struct resolver *resolver)
{
    pthread_t thread;
    if (!resolver->running && pthread_create(&thread, NULL, resolve, resolver) == 0) {
        pthread_detach(thread);
        resolver->running = true;
    }
    return resolver->running;
}

void resolver_ask(struct resolver *resolver, struct resolve_job *job)
{
    assert(job->mail.run != NULL && job->shard != NULL);
    pthread_mutex_lock(&resolver->lock);
    assert(!resolver->closed);
    job->next = NULL;
    if (!start_thread(resolver)) {
        job->error = "no thread can be started";
        shard_post(job->shard, &job->mail);
    } else {
        if (resolver->first == NULL) {
            resolver->first = job;
        } else {
            resolver->last->next = job;
        }
        resolver->last = job;
        pthread_cond_signal(&resolver->changed);
    }
    pthread_mutex_unlock(&resolver->lock);
}

void resolver_close(struct resolver *resolver)
{
    if (resolver == NULL) {
        return;
    }
    struct resolve_job *job;
    pthread_mutex_lock(&resolver->lock);
    resolver->closed = true;
    while ((job = resolver->first) != NULL) {
        resolver->first = job->next;
        free(job);
    }
    bool running = resolver->running;
    pthread_cond_signal(&resolver->changed);
    pthread_mutex_unlock(&resolver->lock);
    if (!running) {
        destroy(resolver);
    }
}
