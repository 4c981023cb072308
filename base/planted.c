/* The number of the bug in force; nothing that could fail. */
#include "base/planted.h"

#ifdef OTTLA_PLANTED
enum planted_bug planted_in_force = PLANT_NOTHING;
#endif
