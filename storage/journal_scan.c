/* Two passes over the ring. The first learns which generation each file holds and finds the last
 * frame of the newest one, which says what is live and what was on the disk. The second goes
 * through the live generations in order and hands out the records. A read that fails ends the open;
 * damage does not. */
#include "storage/journal_scan.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/block.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/planted.h"
#include "storage/journal_format.h"
#include "storage/journal_reader.h"

/* A record whose pieces are being put together. */
struct assembly {
    bool active;
    uint64_t generation; /* where it begins: that file must stay as long as the record */
    struct journal_record record;
    struct buffer payload;
};

struct scan {
    struct journal_ring *ring;
    struct journal_groups *groups;
    const struct journal_handler *handler;
    struct journal_frame_header end; /* the last frame; what it says about the others */
    uint64_t last;           /* sequence of the last good frame */
    bool any;                /* whether there was one */
    uint64_t tail_generation; /* where the next frame goes */
    uint64_t tail_position;
    bool cut;                /* the torn tail was met: nothing behind it counts */
    struct assembly assembly;
};

static enum status open_reader(const struct scan *scan, const struct journal_file *file,
    struct journal_reader *reader)
{
    return journal_reader_open(reader, scan->ring->directory, file->number, file->size_bytes);
}

/* First pass -------------------------------------------------------------------------------- */

/* The generation a file holds: that of its first frame. Where that one is not whole, the highest of
 * any frame in it; 0 when there is none. */
static enum status classify(const struct scan *scan, struct journal_file *file)
{
    struct journal_reader reader;
    enum status status = open_reader(scan, file, &reader);
    if (status != STATUS_OK) {
        journal_reader_close(&reader);
        return status;
    }
    struct journal_found found = {0};
    file->generation = 0;
    uint64_t position = 0;
    while (journal_reader_find(&reader, position, 0, 0, &found)) {
        if (found.header.generation > file->generation) {
            file->generation = found.header.generation;
        }
        if (found.position == 0) {
            break;
        }
        position = found.position + JOURNAL_PAGE;
    }
    status = reader.status;
    journal_reader_close(&reader);
    return status;
}

static enum status classify_all(const struct scan *scan)
{
    for (uint32_t i = 0; i < scan->ring->file_count; i++) {
        struct journal_file *file = &scan->ring->files[i];
        enum status status = file->file == NULL ? STATUS_OK : classify(scan, file);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* The last frame of the newest generation. */
static enum status find_end(struct scan *scan)
{
    struct journal_file *newest = NULL;
    for (uint32_t i = 0; i < scan->ring->file_count; i++) {
        struct journal_file *file = &scan->ring->files[i];
        if (file->generation > 0 && (newest == NULL || file->generation > newest->generation)) {
            newest = file;
        }
    }
    if (newest == NULL) {
        return STATUS_OK;
    }
    struct journal_reader reader;
    enum status status = open_reader(scan, newest, &reader);
    if (status == STATUS_OK) {
        struct journal_found found = {0};
        uint64_t position = 0;
        uint64_t after = 0;
        while (journal_reader_find(&reader, position, newest->generation, after, &found)) {
            scan->end = found.header;
            after = found.header.sequence;
            position = journal_found_end(&found);
        }
        assert(reader.status != STATUS_OK || scan->end.sequence > 0);
        status = reader.status;
    }
    journal_reader_close(&reader);
    return status;
}

/* Damage ------------------------------------------------------------------------------------ */

static void report(const struct scan *scan, struct journal_damage *damage, const char *what)
{
    log_error("journal", "%s at position %" PRIu64 " of %s (%" PRIu64 " bytes): %s", what,
        damage->position, damage->file, damage->length_bytes,
        damage->group_known ? "one group lost a record" : "any group may have lost records");
    scan->handler->damage(scan->handler->context, damage);
}

static void report_hole(const struct scan *scan, const struct journal_file *file,
    uint64_t position, uint64_t end)
{
    struct journal_damage damage = {.position = position, .length_bytes = end - position};
    assert(end >= position);
    journal_ring_name(file->number, damage.file);
    report(scan, &damage, "frames are missing although later ones vouch for them");
}

static void report_missing_file(const struct scan *scan, uint64_t generation)
{
    struct journal_damage damage = {.missing_file = true};
    for (uint32_t i = 0; i < scan->end.file_count; i++) {
        if (i >= scan->ring->file_count || scan->ring->files[i].file == NULL) {
            journal_ring_name(i, damage.file);
            break;
        }
    }
    log_error("journal", "the file of generation %" PRIu64 " is missing", generation);
    report(scan, &damage, "a file is missing");
}

static void report_record(const struct scan *scan, const struct journal_file *file,
    uint64_t position, uint64_t length, const struct journal_record *record)
{
    struct journal_damage damage = {.position = position, .length_bytes = length};
    journal_ring_name(file->number, damage.file);
    if (record != NULL) {
        damage.group_known = true;
        damage.group = record->group;
        damage.term = record->term;
        damage.index = record->index;
        damage.kind = record->kind;
    }
    report(scan, &damage, "a record fails its check");
}

/* Records ----------------------------------------------------------------------------------- */

static void deliver(struct scan *scan, const struct journal_record *record, uint64_t generation)
{
    journal_groups_note(scan->groups, record, generation);
    scan->handler->replay(scan->handler->context, record);
}

static struct journal_record record_of(const struct journal_piece_header *piece)
{
    return (struct journal_record){.kind = (enum journal_kind)piece->kind,
        .entry_kind = piece->entry_kind, .voted_for = piece->voted_for, .tag = piece->tag,
        .group = piece->group, .term = piece->term, .index = piece->index};
}

static void drop_assembly(struct scan *scan)
{
    scan->assembly.active = false;
    scan->assembly.payload.length = 0;
}

/* A piece of a record that has several. */
static void assemble(struct scan *scan, const struct journal_piece_header *piece,
    struct view payload)
{
    struct assembly *assembly = &scan->assembly;
    if ((piece->flags & JOURNAL_PIECE_REST) == 0) {
        drop_assembly(scan);
        assembly->active = true;
        assembly->generation = scan->tail_generation;
        assembly->record = record_of(piece);
    }
    bool fits = assembly->active && assembly->record.group == piece->group
        && assembly->record.index == piece->index
        && assembly->payload.length + payload.length <= JOURNAL_PAYLOAD_MAX;
    if (!fits) {
        drop_assembly(scan); /* its start was lost and reported, or cut */
        return;
    }
    buffer_append(&assembly->payload, payload.data, payload.length);
    if ((piece->flags & JOURNAL_PIECE_MORE) == 0) {
        struct block *block = block_copy(buffer_view(&assembly->payload));
        assembly->record.payload = slice_of(block, 0, assembly->payload.length);
        deliver(scan, &assembly->record, assembly->generation);
        block_unref(block);
        buffer_free(&assembly->payload);
        drop_assembly(scan);
    }
}

/* One whole piece; `block` holds the frame. */
static void take_piece(struct scan *scan, struct block *block,
    const struct journal_piece_header *piece, struct view payload)
{
    if ((piece->flags & (JOURNAL_PIECE_MORE | JOURNAL_PIECE_REST)) != 0) {
        assemble(scan, piece, payload);
        return;
    }
    /* The journal's own marks and votes come first in a frame: they may lie between two pieces of
     * a record, which goes on behind them. */
    struct journal_record record = record_of(piece);
    if (payload.length > 0) {
        record.payload = (struct slice){block, payload.data, payload.length};
    }
    deliver(scan, &record, scan->tail_generation);
}

/* Whether every piece of the frame is whole. */
static bool frame_is_whole(struct view frame, const struct journal_frame_header *header)
{
    size_t at = sizeof *header;
    uint32_t pieces = 0;
    while (at < frame.length) {
        struct journal_piece_header piece;
        struct view payload;
        size_t used;
        if (journal_piece_load(view_slice(frame, at, frame.length - at), header->sequence, &piece,
                &payload, &used) != JOURNAL_PIECE_WHOLE) {
            return false;
        }
        at += used;
        pieces++;
    }
    return pieces == header->piece_count && frame.length == header->length;
}

/* The next place in a damaged frame where a piece header is whole; its end when there is none. */
static size_t find_piece(struct view frame, size_t at, uint64_t sequence)
{
    for (; at < frame.length; at += JOURNAL_PIECE_ALIGNMENT) {
        struct journal_piece_header piece;
        struct view payload;
        size_t used;
        if (journal_piece_load(view_slice(frame, at, frame.length - at), sequence, &piece, &payload,
                &used) != JOURNAL_PIECE_BAD_HEADER) {
            return at;
        }
    }
    return frame.length;
}

/* Hands out the pieces of a frame; bad ones are reported. */
static void take_frame(struct scan *scan, const struct journal_file *file, struct block *block,
    const struct journal_found *found)
{
    struct view frame = {block->bytes, found->header.length};
    size_t at = sizeof found->header;
    while (at < frame.length) {
        struct journal_piece_header piece;
        struct view payload;
        size_t used;
        enum journal_piece_state state = journal_piece_load(
            view_slice(frame, at, frame.length - at), found->header.sequence, &piece, &payload,
            &used);
        if (state == JOURNAL_PIECE_WHOLE) {
            take_piece(scan, block, &piece, payload);
        } else if (state == JOURNAL_PIECE_BAD_PAYLOAD) {
            struct journal_record record = record_of(&piece);
            report_record(scan, file, found->position + at, used, &record);
            drop_assembly(scan);
        } else {
            used = find_piece(frame, at + JOURNAL_PIECE_ALIGNMENT, found->header.sequence) - at;
            report_record(scan, file, found->position + at, used, NULL);
            drop_assembly(scan);
        }
        at += used;
    }
}

/* Second pass ------------------------------------------------------------------------------- */

/* Whether what is missing before or in a frame may be missing: nothing durable vouches for it. */
static bool is_torn(const struct scan *scan, uint64_t first_missing)
{
    return first_missing > scan->end.synced;
}

/* Looks at what lies between the last good frame and the one found. False: the tail is cut here. */
static bool bridge(struct scan *scan, const struct journal_file *file,
    const struct journal_found *found, uint64_t position)
{
    uint64_t expected = scan->any ? scan->last + 1 : 0;
    bool gap = scan->any ? found->header.sequence != expected : found->position != position;
    if (!gap) {
        return true;
    }
    if (scan->any && is_torn(scan, expected)) {
        scan->cut = true;
        return false;
    }
    struct journal_file *before = scan->any ? journal_ring_find(scan->ring, scan->tail_generation)
                                            : NULL;
    if (found->position > position || before == NULL) {
        report_hole(scan, file, position, found->position);
    } else if (before != NULL && scan->tail_generation + 1 == file->generation) {
        report_hole(scan, before, scan->tail_position, before->size_bytes);
    }
    drop_assembly(scan);
    return true;
}

/* One found frame: false when the tail is cut at it. */
static bool scan_frame(struct scan *scan, struct journal_reader *reader,
    const struct journal_file *file, const struct journal_found *found)
{
    struct view bytes = journal_reader_view(reader, found->position, found->header.length);
    struct block *block = block_copy(bytes);
    bool take = bytes.length == found->header.length
        && (!is_torn(scan, found->header.sequence) || planted(PLANT_TORN_FRAME_TAKEN)
            || frame_is_whole((struct view){block->bytes, bytes.length}, &found->header));
    if (take) {
        if ((found->header.flags & JOURNAL_FRAME_OPENED) != 0) {
            drop_assembly(scan);
        }
        scan->any = true;
        scan->last = found->header.sequence;
        scan->tail_generation = file->generation;
        scan->tail_position = journal_found_end(found);
        take_frame(scan, file, block, found);
    } else {
        scan->cut = true;
    }
    block_unref(block);
    return take;
}

static enum status scan_file(struct scan *scan, const struct journal_file *file)
{
    struct journal_reader reader;
    enum status status = open_reader(scan, file, &reader);
    uint64_t position = 0;
    struct journal_found found = {0};
    while (status == STATUS_OK && !scan->cut
        && journal_reader_find(&reader, position, file->generation, scan->last, &found)) {
        if (!bridge(scan, file, &found, position) || !scan_frame(scan, &reader, file, &found)) {
            break;
        }
        position = journal_found_end(&found);
    }
    if (status == STATUS_OK) {
        status = reader.status;
    }
    journal_reader_close(&reader);
    return status;
}

static enum status scan_live(struct scan *scan)
{
    scan->tail_generation = scan->end.oldest;
    for (uint64_t generation = scan->end.oldest; generation <= scan->end.generation; generation++) {
        struct journal_file *file = journal_ring_find(scan->ring, generation);
        if (file == NULL) {
            report_missing_file(scan, generation);
            drop_assembly(scan);
            continue;
        }
        enum status status = scan_file(scan, file);
        if (status != STATUS_OK || scan->cut) {
            return status;
        }
    }
    return STATUS_OK;
}

/* What is left of frames behind the tail must not come to life again: their headers go. */
static enum status erase_behind(struct scan *scan, struct journal_file *file, uint64_t position)
{
    struct journal_reader reader;
    struct journal_found found = {0};
    enum status status = open_reader(scan, file, &reader);
    while (status == STATUS_OK
        && journal_reader_find(&reader, position, file->generation, 0, &found)) {
        log_warn("journal", "cut a frame that was not written whole: file %u, position %" PRIu64,
            (unsigned)file->number, found.position);
        status = journal_ring_erase(scan->ring, file, found.position);
        position = found.position + JOURNAL_PAGE;
    }
    if (status == STATUS_OK) {
        status = reader.status;
    }
    journal_reader_close(&reader);
    return status;
}

/* Points the ring behind the last good frame and cleans what lies behind. */
static enum status settle(struct scan *scan)
{
    struct journal_ring *ring = scan->ring;
    struct journal_file *tail = journal_ring_find(ring, scan->tail_generation);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < ring->file_count && status == STATUS_OK; i++) {
        struct journal_file *file = &ring->files[i];
        if (file->file != NULL && file->generation > scan->tail_generation) {
            status = erase_behind(scan, file, 0);
            file->generation = 0;
        }
    }
    if (status == STATUS_OK && tail != NULL) {
        status = erase_behind(scan, tail, scan->tail_position);
    }
    ring->generation = scan->tail_generation;
    ring->oldest = scan->end.oldest < ring->generation ? scan->end.oldest : ring->generation;
    ring->durable_oldest = ring->oldest;
    if (tail != NULL) {
        ring->current = tail->number;
        ring->position = scan->tail_position;
        tail->filled_bytes = tail->filled_bytes < ring->position ? ring->position
                                                                 : tail->filled_bytes;
    }
    return status;
}

/* Files that the last frame knew of and that are not there, though no live generation lacks one:
 * what they held came last, or was not needed. */
static void look_for_lost_files(const struct scan *scan)
{
    struct journal_ring *ring = scan->ring;
    bool gap = false;
    for (uint64_t g = scan->end.oldest; g <= scan->end.generation; g++) {
        gap = gap || journal_ring_find(ring, g) == NULL;
    }
    for (uint32_t i = 0; i < scan->end.file_count && !gap; i++) {
        if (i >= ring->file_count || ring->files[i].file == NULL) {
            report_missing_file(scan, scan->end.generation + 1);
            return;
        }
    }
}

/* Nothing is live: the first generation begins in the first file. */
static void start_new(struct journal_ring *ring)
{
    ring->current = 0;
    while (ring->files[ring->current].file == NULL) {
        ring->current++;
        assert(ring->current < ring->file_count);
    }
    ring->generation = 1;
    ring->oldest = 1;
    ring->durable_oldest = 1;
    ring->position = 0;
    journal_ring_current(ring)->generation = 1;
}

enum status journal_scan(struct journal_ring *ring, struct journal_groups *groups,
    const struct journal_handler *handler, uint64_t *sequence)
{
    struct scan scan = {.ring = ring, .groups = groups, .handler = handler};
    *sequence = 0;
    enum status status = ring->is_new ? STATUS_OK : classify_all(&scan);
    if (status == STATUS_OK && !ring->is_new) {
        status = find_end(&scan);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (scan.end.sequence == 0) {
        start_new(ring);
        return STATUS_OK;
    }
    look_for_lost_files(&scan);
    status = scan_live(&scan);
    if (status == STATUS_OK) {
        status = settle(&scan);
    }
    *sequence = scan.last > scan.end.synced ? scan.last : scan.end.synced;
    buffer_free(&scan.assembly.payload);
    return status;
}
