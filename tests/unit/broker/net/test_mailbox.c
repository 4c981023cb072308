/* Mail comes out in the order in which each thread put it in, and none is lost. */
#include "broker/net/mailbox.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/list.h"
#include "tests/unit/runner.h"

enum { WRITERS = 4, EACH = 20000 };

struct letter {
    struct mail mail;
    int writer;
    int number;
};

static void ignore(struct shard *shard, struct mail *mail)
{
    (void)shard;
    (void)mail;
}

START_TEST(first_push_of_an_empty_box_wakes)
{
    struct mailbox box = {0};
    struct letter a = {.mail.run = ignore};
    struct letter b = {.mail.run = ignore};
    ck_assert(mailbox_push(&box, &a.mail));
    ck_assert(!mailbox_push(&box, &b.mail));
    struct mail *mail = mailbox_drain(&box);
    ck_assert_ptr_eq(mail, &a.mail);
    ck_assert_ptr_eq(mail->next, &b.mail);
    ck_assert_ptr_null(mail->next->next);
    ck_assert_ptr_null(mailbox_drain(&box));
    ck_assert(mailbox_push(&box, &a.mail));
}
END_TEST

struct writer {
    struct mailbox *box;
    struct letter *letters;
    int number;
};

static void *write_letters(void *argument)
{
    struct writer *writer = argument;
    for (int i = 0; i < EACH; i++) {
        writer->letters[i] = (struct letter){{NULL, ignore}, writer->number, i};
        mailbox_push(writer->box, &writer->letters[i].mail);
    }
    return NULL;
}

START_TEST(order_of_each_writer_is_kept)
{
    struct mailbox box = {0};
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    int next[WRITERS] = {0};
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){&box, calloc(EACH, sizeof(struct letter)), i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_letters, &writers[i]), 0);
    }
    for (int got = 0; got < WRITERS * EACH;) {
        for (struct mail *mail = mailbox_drain(&box); mail != NULL; mail = mail->next, got++) {
            struct letter *letter = container_of(mail, struct letter, mail);
            ck_assert_int_eq(letter->number, next[letter->writer]++);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        free(writers[i].letters);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mailbox");
    TCase *tests = tcase_create("mailbox");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, first_push_of_an_empty_box_wakes);
    tcase_add_test(tests, order_of_each_writer_is_kept);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
