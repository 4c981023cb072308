/* A many-writers, one-reader stack that is turned round when it is drained. */
#include "broker/net/mailbox.h"

#include <assert.h>
#include <stddef.h>

bool mailbox_push(struct mailbox *box, struct mail *mail)
{
    assert(mail->run != NULL);
    struct mail *head = atomic_load_explicit(&box->newest, memory_order_relaxed);
    do {
        mail->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&box->newest, &head, mail,
                                                    memory_order_seq_cst, memory_order_relaxed));
    return head == NULL;
}

struct mail *mailbox_drain(struct mailbox *box)
{
    struct mail *newest = atomic_exchange_explicit(&box->newest, NULL, memory_order_acquire);
    struct mail *oldest = NULL;
    while (newest != NULL) {
        struct mail *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}
