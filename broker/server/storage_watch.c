/* Failures of the disk come from the journal's or the log writer's thread, once each; they are told
 * to every shard as mail, so that its groups go offline together. */
#include "broker/server/storage_watch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/group/boot.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "storage/log_dir.h"

/* Free space that must be there before a full disk counts as recovered. */
enum { RECOVERED_FREE_BYTES = 64 * 1024 * 1024 };

struct failure_mail {
    struct mail mail;
    enum status status;
};

static void shard_failed(struct shard *shard, struct mail *mail)
{
    struct failure_mail *failure = container_of(mail, struct failure_mail, mail);
    replicas_fail(shard->replicas, failure->status);
    free(failure);
}

static const char *advice(enum status status)
{
    switch (status) {
    case STATUS_NO_SPACE:
        return "Free some space: the broker goes on by itself when there is enough";
    case STATUS_READ_ONLY:
        return "Mount the file system writable: the broker goes on by itself";
    default:
        return "Look at the disk and the kernel's log; the broker tries again by itself, and a "
               "restart is safe";
    }
}

static void tell_all(void *context, enum status status)
{
    struct broker *broker = context;
    assert(status != STATUS_OK);
    int none = STATUS_OK;
    if (!atomic_compare_exchange_strong(&broker->storage_failure, &none, (int)status)) {
        return;
    }
    bool is_unread = atomic_load(&broker->metadata_is_unread);
    log_error("storage", "%s %s cannot be %s: %s. Clients get KAFKA_STORAGE_ERROR; nothing "
              "acknowledged is lost. %s",
              is_unread ? "the metadata in" : "the data directory", log_dir_path(broker->log_dir),
              is_unread ? "read" : "written", status_text(status), advice(status));
    for (int i = 0; i < broker->shard_count; i++) {
        struct failure_mail *failure = memory_new_zero(1, sizeof *failure);
        failure->status = status;
        failure->mail.run = shard_failed;
        shard_post(&broker->shards[i], &failure->mail);
    }
}

struct pressure_mail {
    struct mail mail;
    size_t count;
    uint64_t groups[];
};

static void shard_pressed(struct shard *shard, struct mail *mail)
{
    struct pressure_mail *pressure = container_of(mail, struct pressure_mail, mail);
    replicas_checkpoint(shard->replicas, pressure->groups, pressure->count);
    free(pressure);
}

static void journal_pressed(void *context, const uint64_t *groups, size_t count, bool stalled)
{
    struct broker *broker = context;
    if (stalled) {
        log_warn("journal", "writes wait: the journal is full and %zu groups have not been "
                 "checkpointed yet. If this repeats, raise journal.size.bytes", count);
    }
    for (int i = 0; i < broker->shard_count; i++) {
        struct pressure_mail *pressure =
            memory_new_zero(1, sizeof *pressure + count * sizeof groups[0]);
        pressure->count = count;
        memcpy(pressure->groups, groups, count * sizeof groups[0]);
        pressure->mail.run = shard_pressed;
        shard_post(&broker->shards[i], &pressure->mail);
    }
}

static void replay(void *context, const struct journal_record *record)
{
    struct broker *broker = context;
    boot_replay(&broker->boot, record);
}

static void damaged(void *context, const struct journal_damage *damage)
{
    struct broker *broker = context;
    boot_damage(&broker->boot, damage);
}

struct journal_handler storage_watch_handler(struct broker *broker)
{
    return (struct journal_handler){
        .context = broker,
        .replay = replay,
        .damage = damaged,
        .pressure = journal_pressed,
        .failed = tell_all,
    };
}

struct log_writer_settings storage_watch_writer(struct broker *broker)
{
    return (struct log_writer_settings){
        .threaded = true, .failed = tell_all, .context = broker};
}

bool storage_watch_recovered(struct broker *broker)
{
    if (atomic_load(&broker->storage_failure) == STATUS_OK) {
        return false;
    }
    if (log_dir_probe(broker->log_dir, RECOVERED_FREE_BYTES) != STATUS_OK) {
        return false;
    }
    log_info("storage", "%s; starting again from what is on it",
             atomic_load(&broker->metadata_is_unread) ? "the disk may be read again by now"
                                                      : "the disk takes writes again");
    return true;
}
