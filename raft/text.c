/* One line for an event, an action or a state: what traces show and what test scripts expect.
 * Every line fits the caller's buffer or is cut there. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "raft/state.h"

/* Where the next characters go. */
struct line {
    char *text;
    size_t size;
    size_t length;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...)
{
    assert(line->length < line->size);
    size_t room = line->size - line->length;
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    assert(written >= 0);
    line->length += (size_t)written < room ? (size_t)written : room - 1;
}

static struct line line_begin(char *text, size_t size)
{
    assert(size > 0);
    text[0] = '\0';
    return (struct line){.text = text, .size = size};
}

static const char *role_name(enum raft_role role)
{
    switch (role) {
    case RAFT_FOLLOWER:
        return "follower";
    case RAFT_PRE_CANDIDATE:
        return "pre-candidate";
    case RAFT_CANDIDATE:
        return "candidate";
    case RAFT_LEADER:
        return "leader";
    }
    return "?";
}

static void add_entries(struct line *line, const struct raft_message *message)
{
    for (size_t i = 0; i < message->entry_count; i++) {
        const struct raft_entry *entry = &message->entries[i];
        static const char *const kinds[] = {"", "noop", "members"};
        add(line, "%s%s%" PRIu64 "@%" PRIu64, i == 0 ? " [" : " ",
            entry->kind < 3 ? kinds[entry->kind] : "?", entry->index, entry->term);
    }
    add(line, "%s", message->entry_count > 0 ? "]" : "");
}

static void add_message(struct line *line, const struct raft_message *m)
{
    static const char *const names[] = {
        "?",      "pre-vote",     "pre-vote-reply", "vote",           "vote-reply",
        "append", "append-reply", "heartbeat",      "heartbeat-reply", "timeout-now"};
    add(line, "%s %" PRId32 "->%" PRId32 " term=%" PRIu64,
        m->kind <= RAFT_TIMEOUT_NOW ? names[m->kind] : "?", m->from, m->to, m->term);
    switch (m->kind) {
    case RAFT_PRE_VOTE:
    case RAFT_VOTE:
        add(line, " last=%" PRIu64 "@%" PRIu64 "%s", m->index, m->log_term,
            m->transfer ? " by-order" : "");
        break;
    case RAFT_PRE_VOTE_REPLY:
    case RAFT_VOTE_REPLY:
        add(line, " %s", m->accepted ? "yes" : "no");
        break;
    case RAFT_APPEND:
        add(line, " after=%" PRIu64 "@%" PRIu64 " commit=%" PRIu64, m->index, m->log_term,
            m->commit);
        add_entries(line, m);
        break;
    case RAFT_APPEND_REPLY:
        add(line, m->accepted ? " yes match=%" PRIu64 : " no at=%" PRIu64, m->index);
        if (!m->accepted) {
            add(line, " hint=%" PRIu64 "@%" PRIu64, m->hint_index, m->log_term);
        }
        add(line, "%s", m->withdrawn ? " withdrawn" : "");
        break;
    case RAFT_HEARTBEAT:
        add(line, " commit=%" PRIu64 " round=%" PRIu64, m->commit, m->round);
        if (m->sleep) {
            add(line, " sleep last=%" PRIu64 "@%" PRIu64, m->index, m->log_term);
        }
        break;
    case RAFT_HEARTBEAT_REPLY:
        add(line, " equal=%" PRIu64 " durable=%" PRIu64 " round=%" PRIu64 "%s", m->index,
            m->hint_index, m->round, m->sleep ? " asleep" : "");
        add(line, "%s", m->withdrawn ? " withdrawn" : "");
        break;
    default:
        break;
    }
}

size_t raft_action_text(const struct raft_action *action, char *text, size_t size)
{
    struct line line = line_begin(text, size);
    switch ((enum raft_action_kind)action->kind) {
    case RAFT_ACTION_SEND:
        add(&line, "send ");
        add_message(&line, &action->message);
        break;
    case RAFT_ACTION_SAVE:
        add(&line, "save term=%" PRIu64 " vote=%" PRId32, action->save.term,
            action->save.voted_for);
        break;
    case RAFT_ACTION_TRUNCATE:
        add(&line, "truncate from=%" PRIu64, action->index);
        break;
    case RAFT_ACTION_APPEND:
        add(&line, "append %" PRIu64 "..%" PRIu64 " term=%" PRIu64, action->append.first,
            action->append.last, action->append.term);
        break;
    case RAFT_ACTION_COMMIT:
        add(&line, "commit %" PRIu64 "..%" PRIu64, action->commit.first, action->commit.last);
        break;
    case RAFT_ACTION_ROLE:
        add(&line, "role %s term=%" PRIu64 " leader=%" PRId32, role_name(action->role.role),
            action->role.term, action->role.leader);
        break;
    case RAFT_ACTION_MEMBERS:
        add(&line, "members of=%" PRIu64, action->index);
        break;
    case RAFT_ACTION_SNAPSHOT_NEEDED:
        add(&line, "snapshot-needed node=%" PRId32 " has=%" PRIu64, action->snapshot.node,
            action->snapshot.index);
        break;
    case RAFT_ACTION_READ_READY:
        add(&line, "read-ready %" PRIu64 " index=%" PRIu64, action->read.context,
            action->read.index);
        break;
    case RAFT_ACTION_READ_FAILED:
        add(&line, "read-failed %" PRIu64, action->read.context);
        break;
    case RAFT_ACTION_TRANSFER_FAILED:
        add(&line, "transfer-failed node=%" PRId32, action->node);
        break;
    case RAFT_ACTION_SLEEP:
        add(&line, "sleep");
        break;
    case RAFT_ACTION_WAKE:
        add(&line, "wake");
        break;
    }
    return line.length;
}

static void add_members(struct line *line, const struct raft_member *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t flags = members[i].flags;
        add(line, " %" PRId32 "%s%s%s", members[i].id, flags & RAFT_VOTER ? "v" : "",
            flags & RAFT_OLD_VOTER ? "o" : "", flags & RAFT_LEARNER ? "l" : "");
    }
}

size_t raft_event_text(const struct raft_event *event, char *text, size_t size)
{
    static const char *const names[] = {
        "?",        "start", "tick",     "message",       "propose",  "persisted",
        "saved",    "change", "transfer", "read",         "campaign", "snapshot-done",
        "restored", "peer-lost", "withdraw", "rejoin"};
    struct line line = line_begin(text, size);
    add(&line, "%s", event->kind <= RAFT_EVENT_REJOIN ? names[event->kind] : "?");
    switch ((enum raft_event_kind)event->kind) {
    case RAFT_EVENT_MESSAGE:
        add(&line, " ");
        add_message(&line, event->message);
        break;
    case RAFT_EVENT_PROPOSE:
        add(&line, " %zu", event->propose.count);
        break;
    case RAFT_EVENT_PERSISTED:
        add(&line, " %" PRIu64 " term=%" PRIu64, event->persisted.index, event->persisted.term);
        break;
    case RAFT_EVENT_SAVED:
        add(&line, " term=%" PRIu64 " vote=%" PRId32, event->saved.term, event->saved.voted_for);
        break;
    case RAFT_EVENT_CHANGE_MEMBERS:
        add_members(&line, event->change.members, event->change.count);
        break;
    case RAFT_EVENT_READ:
        add(&line, " %" PRIu64, event->read.context);
        break;
    case RAFT_EVENT_SNAPSHOT_DONE:
    case RAFT_EVENT_RESTORED:
        add(&line, " node=%" PRId32 " %" PRIu64 "@%" PRIu64, event->snapshot.node,
            event->snapshot.index, event->snapshot.term);
        break;
    case RAFT_EVENT_TRANSFER:
    case RAFT_EVENT_PEER_LOST:
        add(&line, " node=%" PRId32, event->node);
        break;
    default:
        break;
    }
    return line.length;
}

size_t raft_state_text(const struct raft *raft, char *text, size_t size)
{
    struct line line = line_begin(text, size);
    add(&line, "%s term=%" PRIu64 " vote=%" PRId32 " leader=%" PRId32 " log=(%" PRIu64 "@%" PRIu64
        "..%" PRIu64 "@%" PRIu64 "] commit=%" PRIu64 " durable=%" PRIu64 " members",
        role_name((enum raft_role)raft->role), raft->term, raft->voted_for, raft->leader,
        raft->window.start_index, raft->window.start_term, raft_window_last(&raft->window),
        raft_window_last_term(&raft->window), raft->commit, raft->durable);
    add_members(&line, raft->active.members, raft->active.count);
    add(&line, "%s%s", raft->asleep ? " asleep" : "", raft->withdrawn ? " withdrawn" : "");
    return line.length;
}
