/* An intrusive doubly linked list: the link lives inside the element, so that an element leaves
 * its list in constant time and no list allocates. A link is in at most one list; a link that is in
 * none has next == NULL. */
#ifndef OTTLA_BASE_LIST_H
#define OTTLA_BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

struct list_link {
    struct list_link *next;
    struct list_link *previous;
};

/* The head is a link that belongs to no element. */
struct list {
    struct list_link head;
};

/* The element that holds this link. */
#define container_of(pointer, type, member) \
    ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

static inline void list_init(struct list *list)
{
    list->head.next = &list->head;
    list->head.previous = &list->head;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->head.next == &list->head;
}

static inline bool list_contains(const struct list_link *link)
{
    return link->next != NULL;
}

static inline void list_push_back(struct list *list, struct list_link *link)
{
    assert(link->next == NULL);
    link->previous = list->head.previous;
    link->next = &list->head;
    list->head.previous->next = link;
    list->head.previous = link;
}

static inline void list_remove(struct list_link *link)
{
    assert(link->next != NULL);
    link->previous->next = link->next;
    link->next->previous = link->previous;
    link->next = NULL;
    link->previous = NULL;
}

/* The first link, or null when the list is empty. */
static inline struct list_link *list_first(const struct list *list)
{
    return list_is_empty(list) ? NULL : list->head.next;
}

/* The last link; null when the list is empty. */
static inline struct list_link *list_last(const struct list *list)
{
    return list->head.previous == &list->head ? NULL : list->head.previous;
}

/* Takes the first link out, or returns null when the list is empty. */
static inline struct list_link *list_pop_front(struct list *list)
{
    struct list_link *link = list_first(list);
    if (link != NULL) {
        list_remove(link);
    }
    return link;
}

/* The link after this one, or null at the end. */
static inline struct list_link *list_next(const struct list *list, const struct list_link *link)
{
    return link->next == &list->head ? NULL : link->next;
}

#endif
