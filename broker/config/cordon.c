/* Whether a node is cordoned. Owns nothing. Directories are compared as they are written, as Kafka
 * does for the values of log.dirs themselves. */
#include "broker/config/cordon.h"

#include <assert.h>

#include "broker/config/value.h"

static bool is_everything(struct view item)
{
    return view_is(item, "*");
}

static bool is_named(const struct view *list, uint32_t count, struct view item)
{
    for (uint32_t i = 0; i < count; i++) {
        if (view_equal(list[i], item)) {
            return true;
        }
    }
    return false;
}

bool cordon_is_configured(const struct config *config)
{
    return cordon_is_set(config_text(config, CONFIG_CORDONED_LOG_DIRS));
}

/* What is wrong with one directory of the list; the null view when nothing is. */
static struct view fault_of(const struct config *config, struct view item, struct arena *arena)
{
    uint32_t count = 0;
    const struct view *own = config_data_directories(config, &count);
    assert(count > 0);
    if (view_equal(item, own[0])) {
        return VIEW_NULL;
    }
    if (is_named(own, count, item)) {
        return arena_format(arena, "cordoned.log.dirs: of log.dirs the first one, %.*s, is used; "
                                   "%.*s cannot be cordoned", VIEW_PRINT(own[0]),
                            VIEW_PRINT(item));
    }
    return arena_format(arena, "All entries in cordoned.log.dirs must be present in log.dirs or "
                               "log.dir. Missing entries : %.*s", VIEW_PRINT(item));
}

enum status cordon_check(const struct config *config, struct view text, struct arena *arena,
                         struct view *why)
{
    struct view *items = NULL;
    uint32_t count = 0;
    assert(why != NULL);
    enum status status = config_list_split(text, arena, &items, &count);
    if (status != STATUS_OK) {
        return status;
    }
    *why = VIEW_NULL;
    for (uint32_t i = 0; i < count && why->data == NULL; i++) {
        if (is_everything(items[i]) && count > 1) {
            *why = VIEW_LITERAL("When cordoned.log.dirs is set to *, it must not contain other "
                                "values");
        } else if (!is_everything(items[i])) {
            *why = fault_of(config, items[i], arena);
        }
    }
    return why->data == NULL ? STATUS_OK : STATUS_INVALID;
}

bool cordon_is_set(struct view text)
{
    return config_trim(text).length > 0;
}
