/* Legs travel as mail; each counts its parts down and comes home with the last one. */
#include "broker/api/fan_out.h"

#include <assert.h>

#include "broker/controller/topic_image.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "messages/errors.h"

struct fan_leg {
    struct mail mail;
    struct fan_out *fan;
    struct part *first;
    struct part **end;
    unsigned parts_open;
};

struct fan_out *fan_out_begin(struct request *request,
                              void (*run)(struct shard *shard, struct part *part),
                              void (*done)(struct request *request))
{
    assert(run != NULL && done != NULL);
    int shard_count = request->home->broker->shard_count;
    struct fan_out *fan = request_take(request, 1, sizeof *fan);
    fan->request = request;
    fan->shard_count = shard_count;
    fan->legs = request_take(request, (size_t)shard_count, sizeof *fan->legs);
    fan_out_reset(fan, run, done);
    return fan;
}

void fan_out_reset(struct fan_out *fan, void (*run)(struct shard *shard, struct part *part),
                   void (*done)(struct request *request))
{
    assert(fan->legs_away == 0);
    fan->run = run;
    fan->done = done;
    for (int i = 0; i < fan->shard_count; i++) {
        struct fan_leg *leg = &fan->legs[i];
        assert(leg->parts_open == 0);
        leg->fan = fan;
        leg->first = NULL;
        leg->end = &leg->first;
    }
}

void fan_out_add(struct fan_out *fan, struct part *part, const struct topic_image *topic,
                 int32_t partition)
{
    part->topic_id = topic->id;
    part->partition = partition;
    fan_out_add_group(fan, part, topic_image_group(topic, partition)->id);
}

void fan_out_add_group(struct fan_out *fan, struct part *part, uint64_t group_id)
{
    assert(fan->legs_away == 0);
    struct fan_leg *leg = &fan->legs[group_id % (unsigned)fan->shard_count];
    part->leg = leg;
    part->next = NULL;
    part->group_id = group_id;
    *leg->end = part;
    leg->end = &part->next;
    leg->parts_open++;
}

struct shard *part_shard(const struct part *part)
{
    const struct fan_out *fan = part->leg->fan;
    return &fan->request->home->broker->shards[part->leg - fan->legs];
}

static void leg_home(struct shard *shard, struct mail *mail)
{
    struct fan_leg *leg = container_of(mail, struct fan_leg, mail);
    struct fan_out *fan = leg->fan;
    assert(shard == fan->request->home);
    assert(fan->legs_away > 0);
    if (--fan->legs_away == 0) {
        fan->done(fan->request);
    }
}

static void leg_arrived(struct shard *shard, struct mail *mail)
{
    struct fan_leg *leg = container_of(mail, struct fan_leg, mail);
    /* A part may be ended, and with the last one the leg be gone home, before `run` returns: the
     * next part is read first, and only while there is one. */
    struct part *part = leg->first;
    assert(part != NULL);
    assert(part->group_id % (unsigned)leg->fan->shard_count == (unsigned)shard->number);
    while (part != NULL) {
        struct part *next = part->next;
        leg->fan->run(shard, part);
        part = next;
    }
}

void fan_out_go(struct fan_out *fan)
{
    struct shard *shards = fan->request->home->broker->shards;
    int home = fan->request->home->number;
    fan->legs_away = 1; /* held until all have left, so that `done` cannot run in between */
    for (int i = 0; i < fan->shard_count; i++) {
        struct fan_leg *leg = &fan->legs[i];
        if (leg->first == NULL) {
            continue;
        }
        fan->legs_away++;
        if (i != home) {
            leg->mail.run = leg_arrived;
            shard_post(&shards[i], &leg->mail);
        }
    }
    if (fan->legs[home].first != NULL) {
        leg_arrived(fan->request->home, &fan->legs[home].mail);
    }
    if (--fan->legs_away == 0) {
        fan->done(fan->request);
    }
}

void part_done(struct shard *shard, struct part *part)
{
    struct fan_leg *leg = part->leg;
    assert(leg->parts_open > 0);
    if (--leg->parts_open > 0) {
        return;
    }
    struct request *request = leg->fan->request;
    if (shard == request->home) {
        leg_home(shard, &leg->mail);
    } else {
        leg->mail.run = leg_home;
        shard_post(request->home, &leg->mail);
    }
}

struct partition *part_partition(const struct shard *shard, struct part *part)
{
    const struct replicas *replicas = shard->replicas;
    assert(part->leg != NULL);
    struct partition *partition = replicas_partition(replicas, part->group_id, part->partition);
    if (partition == NULL) {
        const struct topic_image *topic = replicas_topic_by_id(replicas, part->topic_id);
        bool is_there = topic != NULL && topic_image_has(topic, part->partition);
        part->error = is_there ? KAFKA_NOT_LEADER_OR_FOLLOWER : KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    }
    return partition;
}

struct request *part_request(const struct part *part)
{
    return part->leg->fan->request;
}
