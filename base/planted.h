/* Deliberate bugs, to see that the simulator of whole clusters finds them
 * (tests/sim/cluster/planted.py).
 *
 * Only a build with -Dplanted=true has them, and there at most one is in force at a time; in every
 * other build planted() is the constant false and nothing is left of the lines that ask for it.
 * Such a line stands where the code makes the right decision, and makes the wrong one.
 */
#ifndef OTTLA_BASE_PLANTED_H
#define OTTLA_BASE_PLANTED_H

#include <stdbool.h>

/* Every bug: its name, and what goes wrong. */
#define PLANTED_BUGS(BUG) \
    BUG(LEADER_BELIEVED, "who lost its disk believes the first one that says it leads") \
    BUG(COMPLETE_UNSYNCED, "a lost directory counts as whole before what it got is on the disk") \
    BUG(CAUGHT_UP_UNHEARD, "who lost its disk votes though it does not know its leader's term") \
    BUG(LOSS_NOT_KEPT, "who is held back has forgotten it after a restart") \
    BUG(NEWCOMER_BELIEVES, "who was a replica before votes as if it had forgotten nothing") \
    BUG(VOTE_NOT_SAVED, "terms and votes are not written to the journal") \
    BUG(VOTE_BEFORE_SAVED, "a vote is told before it is on the disk") \
    BUG(VOTE_TWICE, "a vote is given although the term's vote is given") \
    BUG(VOTE_FOR_ANY_LOG, "a vote is given to a candidate whose log lacks entries") \
    BUG(VOTE_KEPT, "the vote of an older term counts for the next one") \
    BUG(TERM_NOT_SAVED, "a higher term that is met is not saved") \
    BUG(HALF_IS_ENOUGH, "half of the voters count as a majority") \
    BUG(LEARNER_COUNTS, "a learner's copy counts for the majority") \
    BUG(LEADER_COUNTS_UNSYNCED, "the leader counts what its own disk does not have yet") \
    BUG(FOLLOWER_ACKS_UNSYNCED, "a follower acknowledges what its disk does not have yet") \
    BUG(TRUNCATION_SKIPPED, "entries that contradict the leader's are kept") \
    BUG(PREVIOUS_TERM_IGNORED, "entries are appended behind an entry of another term") \
    BUG(NO_ENTRY_AT_ELECTION, "a new leader adds no entry of its own term") \
    BUG(READ_WITHOUT_MAJORITY, "a leader that was replaced confirms that it leads") \
    BUG(APPLIED_BEFORE_COMMIT, "the leader applies what is only on its own disk") \
    BUG(ACK_BEFORE_COMMIT, "acks=all is answered as acks=1 is") \
    BUG(ACK_BEFORE_SYNC, "entries count as written when they are given to the journal") \
    BUG(LEADS_BEFORE_APPLIED, "a new leader writes before it has applied what it found") \
    BUG(APPLIED_TWICE, "after a start, entries that the log has are appended again") \
    BUG(PRODUCERS_NOT_FOLLOWED, "followers do not learn of producers") \
    BUG(DUPLICATE_ANSWERED_EARLY, "a batch sent again is answered before the first is committed") \
    BUG(DUPLICATES_TAKEN, "a batch that is sent again is appended again") \
    BUG(CHECKPOINT_WITHOUT_FLUSH, "a checkpoint vouches for logs that are not on the disk") \
    BUG(CHECKPOINT_AHEAD, "a checkpoint claims entries that are not applied") \
    BUG(MARK_WITHOUT_CHECKPOINT, "the journal forgets before the checkpoint is written") \
    BUG(INSTALL_OFF_BY_ONE, "an installed replica claims one entry too much") \
    BUG(INSTALL_SHORT, "the last batch of a partition is not installed") \
    BUG(JOURNAL_NOT_SYNCED, "the journal's writes are not synced") \
    BUG(TORN_FRAME_TAKEN, "the journal's replay takes a frame that was not written whole") \
    BUG(REPLAY_LACKS_LAST, "the journal's replay leaves out the last entry") \
    BUG(LOG_SYNC_SKIPPED, "the logs' files are not synced") \
    BUG(GROUP_IDS_REUSED, "a new controller gives out group ids again") \
    BUG(PRODUCER_IDS_REUSED, "a new controller gives out producer ids again") \
    BUG(COMMAND_BEFORE_COMMIT, "a change of the metadata is answered before it is committed") \
    BUG(FENCING_FORGOTTEN, "a broker that is gone is not fenced") \
    BUG(UNFENCING_FORGOTTEN, "a broker that is back stays fenced") \
    BUG(BATCH_HALF_FOLLOWED, "others than the controller take only the first record of a batch") \
    BUG(OFFSET_BEFORE_COMMIT, "a committed offset is acknowledged before it is in the log") \
    BUG(LOAD_LACKS_LAST, "a coordinator is loaded without the last batch") \
    BUG(COORDINATOR_KEPT, "a coordinator is not unloaded when its leadership ends") \
    BUG(ELECTION_NOT_ENDED, "an election that is over keeps its place among those that run") \
    BUG(LAG_KEPT, "a replica that keeps up again is not told as in sync") \
    BUG(EPOCH_IGNORED, "a reader's leader epoch is not looked at") \
    BUG(END_BEYOND_COMMIT, "the high watermark is beyond what is committed") \
    BUG(DELETION_NOT_FOLLOWED, "only the leader deletes records") \
    BUG(NEW_VOTERS_ALONE, "during a change of members the majority of the new ones is enough") \
    BUG(OLD_VOTERS_ALONE, "during a change of members the majority of the old ones is enough") \
    BUG(JOINT_LEFT_OUT, "voters are exchanged in one step") \
    BUG(MEMBERS_NOT_CUT, "members of an entry that was cut away stay in force") \
    BUG(DURABLE_NOT_CUT, "entries in the place of others that were cut away count as written") \
    BUG(TAIL_MATCHED, "a follower acknowledges a tail that its leader may not have") \
    BUG(MATCH_KEPT, "what an earlier leader had too counts as the next one's") \
    BUG(PROPOSED_KEPT, "a former leader remembers producers' batches that were never written") \
    BUG(OFFSETS_KEPT, "a leader goes on behind the offsets that it gave out when it led before") \
    BUG(GENERATION_IGNORED, "a commit of an old generation is taken") \
    BUG(GENERATION_REUSED, "a rebalance does not begin another generation") \
    BUG(GENERATION_NOT_LOADED, "a new coordinator counts generations from the beginning") \
    BUG(ASSIGNED_TWICE, "all members get the part of the first one") \
    BUG(MOVE_ENDED_EARLY, "a move ends before the members are where they shall be") \
    BUG(MOVE_NUMBER_IGNORED, "the end of an earlier move ends the one in its place") \
    BUG(VOTER_HELD_BACK, "a new replica is made a voter before it may vote") \
    BUG(EARLIER_STAY_COUNTS, "who has a group from an earlier stay is made a voter") \
    BUG(STRAYS_FIRST, "a start removes logs that moved away before the journal forgets them") \
    BUG(CHANGES_LISTED, "shards take over each change of a topic for itself") \
    BUG(OLD_TERM_COUNTED, "entries of an older term are committed by counting copies") \
    BUG(JOINT_LEFT_EARLY, "a joint change is left before it is committed") \
    BUG(BEAT_IGNORED, "a heartbeat of an old generation is taken") \
    BUG(MEMBERS_NOT_SAVED, "checkpoints do not keep the members") \
    BUG(VOTER_AT_ONCE, "a new voter on metadata is not waited for until it has caught up") \
    BUG(REMOVED_LEADER_STAYS, "a leader that is removed goes on") \
    BUG(SNAPSHOT_LACKS_VOTERS, "snapshots of the metadata do not say who votes on it") \
    BUG(REFUSED_FORGOTTEN, "what comes behind a producer's refused batch is out of order") \
    BUG(FIRST_VOTERS_AGAIN, "metadata without a checkpoint begin with their first voters") \
    BUG(WRITE_BORROWS, "what waits for the end of a turn to be written does not hold its bytes") \
    BUG(UNREAD_STAYS, "a group that could not be read stays offline when the disk reads again") \
    BUG(REGISTERED_IN_SNAPSHOT, "groups behind the registration in a snapshot count as new")

#define PLANTED_NAME(name, what) PLANT_##name,

enum planted_bug { PLANT_NOTHING, PLANTED_BUGS(PLANTED_NAME) PLANTED_COUNT };

#undef PLANTED_NAME

#ifdef OTTLA_PLANTED

/* The bug in force; set before anything else runs. */
extern enum planted_bug planted_in_force;

/* Whether this bug is in force. */
static inline bool planted(enum planted_bug bug)
{
    return planted_in_force == bug;
}

#else

/* Never, in a build without them. */
static inline bool planted(enum planted_bug bug)
{
    (void)bug;
    return false;
}

#endif

#endif
