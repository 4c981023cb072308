/* What the journal brings back after every kind of end, as a table of lettered cases.
 *
 * A case is a script of words and the replay expected at its last `o`:
 *   eG.I  entry I of group G          EG.I  the same with a payload longer than a file
 *   vG.T  vote of term T              tG.I  entries of G from I on are void
 *   mG.I  mark                        fG    forget                aG.T  forget, and a vote in one
 *   w     the writer works until it is idle, no time passes
 *   s     time passes: the last frame is vouched for
 *   c     close    k  kill            o     open; only the last one's replay counts
 *   !N+B  flip a bit of byte B in frame N (by sequence)
 *   ?N+B  put zeroes over the sector at byte B of frame N: a write that was torn there
 *   -N    lose the file of frame N    <N    cut that file behind the frame
 * The replay shows the same words; D? is damage of unknown groups, DG.I of one entry, DM a missing
 * file.
 */
#include "storage/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "storage/journal_format.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_file.h"
#include "tests/unit/runner.h"

enum { FILE_BYTES = 64 * 1024, BIG_PAYLOAD = 150 * 1024, SMALL_PAYLOAD = 100, EVENTS_MAX = 8192 };

struct script {
    char letter;
    const char *title;
    const char *words;
    const char *replay;
    enum journal_flush flush;
};

static const struct script scripts[] = {
    {'A', "nothing comes of nothing", "o c o", ""},
    {'B', "a clean end keeps everything in order", "o e1.1 e2.1 v1.3 w e1.2 w c o",
        "e1.1 e2.1 v1.3 e1.2"},
    {'C', "a kill keeps what was written", "o e1.1 w e1.2 w k o", "e1.1 e1.2"},
    {'D', "what was not written is not there", "o e1.1 w e1.2 k o", "e1.1"},
    {'E', "a torn header of the last frame is cut", "o e1.1 w e1.2 w k ?2+0 o", "e1.1"},
    {'F', "a torn body of the last frame is cut", "o e1.1 w e1.2 e1.3 e1.4 e1.5 w k ?2+512 o",
        "e1.1"},
    {'G', "behind a cut it goes on, and the cut frame stays away",
        "o e1.1 w e1.2 w k ?2+0 o e2.1 w k o e2.2 w k o", "e1.1 e2.1 e2.2"},
    {'H', "a flipped payload before other frames is one record's damage",
        "o e1.1 w e1.2 w e1.3 w k !2+150 o", "e1.1 D1.2 e1.3"},
    {'I', "a flipped frame header before other frames is everybody's damage",
        "o e1.1 w e1.2 w e1.3 w k !2+9 o", "e1.1 D? e1.3"},
    {'J', "a flipped record header loses that record, not its neighbours",
        "o e1.1 w e1.2 e2.1 w e1.3 w k !2+80 o", "e1.1 D? e2.1 e1.3"},
    {'K', "a flip in the last frame looks torn", "o e1.1 w e1.2 w k !2+150 o", "e1.1"},
    {'L', "a flip in the last frame is damage once it is vouched for",
        "o e1.1 w e1.2 w s k !2+150 o", "e1.1 D1.2"},
    {'M', "a clean end vouches for the last frame", "o e1.1 w e1.2 w c !2+150 o", "e1.1 D1.2"},
    {'N', "damage is told again at every open", "o e1.1 w e1.2 w c !1+150 o c o", "D1.1 e1.2"},
    {'O', "a record longer than a file comes back whole", "o e1.1 E1.2 e1.3 w k o",
        "e1.1 E1.2 e1.3"},
    {'P', "a long record without its end was never there",
        "o e1.1 w E1.2 w k ?6+0 o e2.1 w k o", "e1.1 e2.1"},
    {'Q', "a flip inside a long record is its damage alone", "o e1.1 E1.2 e1.3 w s k !2+5000 o",
        "e1.1 D1.2 e1.3"},
    {'R', "a truncation is told in its place", "o e1.1 e1.2 e1.3 t1.2 e1.2 w k o",
        "e1.1 e1.2 e1.3 t1.2 e1.2"},
    {'S', "marks and forgotten groups are told, who comes back begins behind that",
        "o e1.1 e2.1 w m1.1 e2.2 f2 e2.7 s k o", "e1.1 e2.1 m1.1 e2.2 f2 e2.7"},
    {'T', "a file lost in the middle is damage", "o e1.1 E1.2 E1.3 w k -3 o",
        "e1.1 DM E1.3"},
    {'U', "the newest file lost is damage", "o e1.1 E1.2 w k -4 o", "e1.1 DM"},
    {'V', "the newest file lost before its frames were followed is damage",
        "o e1.1 E1.2 w k -5 o", "DM e1.1"},
    {'W', "a file cut behind everybody's back is damage", "o e1.1 w e1.2 w E1.3 w k <2 o",
        "e1.1 e1.2 D?"},
    {'X', "unsynced frames may be lost with all behind them", "o e1.1 w s e1.2 w e1.3 w k ?3+0 o",
        "e1.1", JOURNAL_FLUSH_INTERVAL},
    {'Y', "synced frames may not", "o e1.1 w e1.2 w s e1.3 w k ?1+0 o", "D? e1.2 e1.3",
        JOURNAL_FLUSH_INTERVAL},
    {'Z', "what lay behind a cut stays away when others take its place",
        "o e1.1 w s e1.2 w e1.3 w k ?3+0 o e2.1 w k o", "e1.1 e2.1", JOURNAL_FLUSH_INTERVAL},
    {'[', "who begins anew has a vote and nothing else",
        "o e1.1 v1.3 w a1.4 e1.2 w k o", "e1.1 v1.3 a1.4 e1.2"},
};

struct fixture {
    struct journal *journal;
    enum journal_flush flush;
    char events[EVENTS_MAX];
    uint64_t now_ms;
    unsigned unfinished;
};

static void add_event(struct fixture *f, const char *word)
{
    size_t length = strlen(f->events);
    snprintf(f->events + length, sizeof f->events - length, "%s%s", length == 0 ? "" : " ", word);
}

static void replay(void *context, const struct journal_record *record)
{
    char word[64];
    unsigned long long group = record->group;
    unsigned long long index = record->index;
    char letter = record->payload.length >= BIG_PAYLOAD ? 'E' : 'e';
    switch (record->kind) {
    case JOURNAL_ENTRY:
        for (size_t i = 0; i < record->payload.length; i++) {
            ck_assert_uint_eq(record->payload.data[i], (uint8_t)(group * 31 + index * 7 + i));
        }
        snprintf(word, sizeof word, "%c%llu.%llu", letter, group, index);
        break;
    case JOURNAL_VOTE:
    case JOURNAL_ANEW:
        ck_assert_int_eq(record->voted_for, 5);
        ck_assert_uint_eq(record->tag, 6);
        ck_assert_uint_eq(record->index, record->term + 7);
        snprintf(word, sizeof word, "%c%llu.%llu", record->kind == JOURNAL_VOTE ? 'v' : 'a', group,
            (unsigned long long)record->term);
        break;
    case JOURNAL_TRUNCATE:
        snprintf(word, sizeof word, "t%llu.%llu", group, index);
        break;
    case JOURNAL_MARK:
        snprintf(word, sizeof word, "m%llu.%llu", group, index);
        break;
    case JOURNAL_FORGET:
        snprintf(word, sizeof word, "f%llu", group);
        break;
    }
    add_event(context, word);
}

static void damage(void *context, const struct journal_damage *damage)
{
    char word[64] = "D?";
    ck_assert_str_ne(damage->file, "");
    if (damage->missing_file) {
        snprintf(word, sizeof word, "DM");
    } else if (damage->group_known) {
        snprintf(word, sizeof word, "D%llu.%llu", (unsigned long long)damage->group,
            (unsigned long long)damage->index);
    }
    add_event(context, word);
}

static void open_journal(struct fixture *f)
{
    struct journal_settings settings = {.directory = "/journal", .file_bytes = FILE_BYTES,
        .size_bytes = FILE_BYTES * 20, .flush = f->flush, .flush_interval_ms = 500};
    struct journal_handler handler = {.context = f, .replay = replay, .damage = damage};
    f->events[0] = '\0';
    ck_assert_int_eq(journal_open(&settings, &handler, &f->journal), STATUS_OK);
}

struct operation {
    struct journal_op op;
    struct journal_record record;
    struct fixture *fixture;
};

static void done(struct journal_op *op, enum status status)
{
    struct operation *operation = container_of(op, struct operation, op);
    ck_assert(status == STATUS_OK || status == STATUS_CLOSED);
    operation->fixture->unfinished--;
    free(operation);
}

static void submit(struct fixture *f, struct journal_record record, size_t payload_bytes)
{
    struct operation *operation = calloc(1, sizeof *operation);
    struct block *block = NULL;
    if (payload_bytes > 0) {
        block = block_new(payload_bytes);
        for (size_t i = 0; i < payload_bytes; i++) {
            block->bytes[i] = (uint8_t)(record.group * 31 + record.index * 7 + i);
        }
        record.payload = slice_of(block, 0, payload_bytes);
    }
    operation->record = record;
    operation->op.records = &operation->record;
    operation->op.record_count = 1;
    operation->op.done = done;
    operation->fixture = f;
    f->unfinished++;
    journal_submit(f->journal, &operation->op);
    block_unref(block);
}

static void work(struct fixture *f)
{
    while (journal_run_once(f->journal, f->now_ms)) {
    }
    ck_assert_uint_eq(f->unfinished, 0);
}

/* Where the frame with this sequence lies: the newest one. */
static const char *find_frame(uint64_t sequence, uint64_t *position)
{
    const char *name;
    const char *found = NULL;
    uint64_t generation = 0;
    for (size_t i = 0; (name = sim_disk_file_name(i)) != NULL; i++) {
        struct file *file;
        ck_assert_int_eq(file_open(name, FILE_READ, &file), STATUS_OK);
        for (uint64_t at = 0; at < sim_disk_file_size(name); at += JOURNAL_PAGE) {
            uint8_t bytes[sizeof(struct journal_frame_header)];
            struct journal_frame_header header;
            size_t got;
            ck_assert_int_eq(file_read(file, at, bytes, sizeof bytes, &got), STATUS_OK);
            if (got == sizeof bytes && journal_frame_load(bytes, &header)
                && header.sequence == sequence && header.generation > generation) {
                generation = header.generation;
                found = name;
                *position = at;
            }
        }
        file_unref(file);
    }
    ck_assert_msg(found != NULL, "no frame %llu", (unsigned long long)sequence);
    return found;
}

static void zero_sector(const char *name, uint64_t position)
{
    for (uint64_t i = 0; i < 512; i++) {
        uint8_t byte;
        size_t got;
        struct file *file;
        ck_assert_int_eq(file_open(name, FILE_READ, &file), STATUS_OK);
        ck_assert_int_eq(file_read(file, position + i, &byte, 1, &got), STATUS_OK);
        file_unref(file);
        for (unsigned bit = 0; bit < 8; bit++) {
            if ((byte >> bit & 1) != 0) {
                sim_disk_flip(name, position + i, bit);
            }
        }
    }
}

/* Words that do something to the files. */
static void tamper(const char *word)
{
    unsigned long long frame = 0;
    unsigned long long byte = 0;
    uint64_t position = 0;
    sscanf(word + 1, "%llu+%llu", &frame, &byte);
    const char *name = find_frame(frame, &position);
    switch (word[0]) {
    case '!':
        ck_assert(sim_disk_flip(name, position + byte, 3));
        break;
    case '?':
        zero_sector(name, position + byte);
        break;
    case '-':
        ck_assert(sim_disk_lose_file(name));
        break;
    default:
        ck_assert(sim_disk_cut_file(name, position + 2 * JOURNAL_PAGE - position % JOURNAL_PAGE));
        break;
    }
}

static void do_word(struct fixture *f, const char *word)
{
    unsigned long long group = 0;
    unsigned long long number = 0;
    sscanf(word + 1, "%llu.%llu", &group, &number);
    struct journal_record record = {.kind = JOURNAL_ENTRY, .group = group, .index = number,
        .term = 1};
    switch (word[0]) {
    case 'e':
        submit(f, record, SMALL_PAYLOAD);
        break;
    case 'E':
        submit(f, record, BIG_PAYLOAD);
        break;
    case 'v':
    case 'a':
        submit(f, (struct journal_record){.kind = word[0] == 'v' ? JOURNAL_VOTE : JOURNAL_ANEW,
            .group = group, .term = number, .voted_for = 5, .tag = 6, .index = number + 7}, 0);
        break;
    case 't':
        record.kind = JOURNAL_TRUNCATE;
        submit(f, record, 0);
        break;
    case 'm':
        journal_mark(f->journal, group, number);
        break;
    case 'f':
        journal_forget(f->journal, group);
        break;
    case 'w':
        work(f);
        break;
    case 's':
        f->now_ms += 1000;
        sim_clock_pass(1000);
        work(f);
        break;
    case 'c':
        journal_close(f->journal);
        f->journal = NULL;
        break;
    case 'k':
        journal_abandon(f->journal);
        f->journal = NULL;
        break;
    case 'o':
        open_journal(f);
        break;
    default:
        tamper(word);
        break;
    }
}

START_TEST(journal_brings_back_what_it_must)
{
    const struct script *script = &scripts[_i];
    struct fixture f = {.flush = script->flush, .now_ms = 1000};
    char words[1024];
    sim_disk_reset(1);
    sim_clock_reset(1);
    snprintf(words, sizeof words, "%s", script->words);
    for (char *word = strtok_r(words, " ", &(char *){NULL}); word != NULL;) {
        do_word(&f, word);
        word += strlen(word) + 1;
        word = word < words + strlen(script->words) ? word : NULL;
        if (word != NULL) {
            word[strcspn(word, " ")] = '\0';
        }
    }
    ck_assert_msg(strcmp(f.events, script->replay) == 0, "case %c, %s: expected '%s', got '%s'",
        script->letter, script->title, script->replay, f.events);
    journal_abandon(f.journal);
    sim_disk_reset(0);
}
END_TEST

START_TEST(every_letter_is_one_case)
{
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        ck_assert_int_eq(scripts[i].letter, 'A' + (int)i);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("journal_scripts");
    TCase *tests = tcase_create("journal_scripts");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, journal_brings_back_what_it_must, 0,
        (int)(sizeof scripts / sizeof scripts[0]));
    tcase_add_test(tests, every_letter_is_one_case);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
