/* A two-level array of atomics. A page, once published, stays until the end. */
#include "broker/group/directory.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

static struct directory_page *page_of(const struct directory *directory, uint64_t group_id)
{
    uint64_t page = group_id / DIRECTORY_PAGE_GROUPS;
    if (page >= DIRECTORY_PAGES) {
        return NULL;
    }
    return atomic_load_explicit(&directory->pages[page], memory_order_acquire);
}

void directory_add(struct directory *directory, uint64_t group_id)
{
    assert(group_id / DIRECTORY_PAGE_GROUPS < DIRECTORY_PAGES);
    if (page_of(directory, group_id) != NULL) {
        return;
    }
    struct directory_page *page = memory_new_zero(1, sizeof *page);
    for (int i = 0; i < DIRECTORY_PAGE_GROUPS; i++) {
        atomic_init(&page->entries[i].leader, -1);
        atomic_init(&page->entries[i].epoch, -1);
        atomic_init(&page->entries[i].lag, 0);
    }
    struct directory_page *expected = NULL;
    if (!atomic_compare_exchange_strong(&directory->pages[group_id / DIRECTORY_PAGE_GROUPS],
                                        &expected, page)) {
        free(page); /* another thread was first */
    }
}

void directory_set(struct directory *directory, uint64_t group_id, int32_t leader, int32_t epoch)
{
    struct directory_page *page = page_of(directory, group_id);
    assert(page != NULL);
    struct directory_entry *entry = &page->entries[group_id % DIRECTORY_PAGE_GROUPS];
    atomic_store_explicit(&entry->epoch, epoch, memory_order_relaxed);
    atomic_store_explicit(&entry->leader, leader, memory_order_release);
}

void directory_set_lag(struct directory *directory, uint64_t group_id, uint64_t lag)
{
    struct directory_page *page = page_of(directory, group_id);
    assert(page != NULL);
    struct directory_entry *entry = &page->entries[group_id % DIRECTORY_PAGE_GROUPS];
    atomic_store_explicit(&entry->lag, lag, memory_order_relaxed);
}

void directory_set_told(struct directory *directory, uint64_t group_id, int32_t leader,
                        int32_t epoch, uint64_t lag)
{
    assert(leader >= 0 && epoch >= 0);
    directory_add(directory, group_id);
    if (epoch >= directory_get(directory, group_id).epoch) {
        directory_set_lag(directory, group_id, lag);
        directory_set(directory, group_id, leader, epoch);
    }
}

void directory_set_ended(struct directory *directory, uint64_t group_id, int32_t leader,
                         int32_t epoch)
{
    struct group_leader known = directory_get(directory, group_id);
    assert(leader >= 0);
    if (known.leader == leader && known.epoch == epoch) {
        directory_set(directory, group_id, -1, epoch);
    }
}

struct group_leader directory_get(const struct directory *directory, uint64_t group_id)
{
    struct directory_page *page = page_of(directory, group_id);
    if (page == NULL) {
        return (struct group_leader){-1, -1};
    }
    struct directory_entry *entry = &page->entries[group_id % DIRECTORY_PAGE_GROUPS];
    int32_t leader = atomic_load_explicit(&entry->leader, memory_order_acquire);
    return (struct group_leader){leader,
                                 atomic_load_explicit(&entry->epoch, memory_order_relaxed)};
}

uint64_t directory_lag(const struct directory *directory, uint64_t group_id)
{
    struct directory_page *page = page_of(directory, group_id);
    return page == NULL ? 0
                        : atomic_load_explicit(
                              &page->entries[group_id % DIRECTORY_PAGE_GROUPS].lag,
                              memory_order_relaxed);
}

void directory_free(struct directory *directory)
{
    for (int i = 0; i < DIRECTORY_PAGES; i++) {
        free(atomic_load(&directory->pages[i]));
    }
}
