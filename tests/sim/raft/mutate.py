#!/usr/bin/env python3
"""Breaks the consensus core in one classic way after the other and sees that the simulation notices.

Each mutation replaces one piece of text in one file of raft/, the core and the simulation are built
in a folder of their own, and seeds run until an invariant or an assertion fails. A mutation that
survives all seeds means that the simulation has a hole. Three mistakes that need several rare faults in
a row are left to unit tests and scripts: a commit beyond what is equal (test_follower.c), a stale
journal tail that is not voided at the start (test_snapshot.c; the simulation did find it, after 2,473
seeds), and a rest without a majority (tests/scripts/raft/gone.txt). Not
part of the quick suites: run by hand
(`tests/sim/raft/mutate.py [NAME...]`) after a change of the core or of the simulation. With --check it
only sees whether the texts are still there: that is a test.
"""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SEEDS = '5000'

# name, file, text, replacement
MUTATIONS = [
    ('vote counted before it is durable', 'election.c',
     '    raft_emit_save(raft);\n    raft_emit_role(raft);\n}',
     '    raft_emit_save(raft);\n    raft_emit_role(raft);\n'
     '    raft_handle_saved(raft, raft->term, raft->id);\n}'),
    ('vote granted before it is durable', 'election.c',
     '    raft->voted_for = candidate;\n    raft_emit_save(raft);',
     '    raft->voted_for = candidate;\n    raft_emit_save(raft);\n    grant(raft, candidate);'),
    ('vote never saved', 'election.c',
     '    raft->voted_for = candidate;\n    raft_emit_save(raft);',
     '    raft->voted_for = candidate;\n    grant(raft, candidate);'),
    ('second vote in one term', 'election.c',
     'bool free_to_vote = raft->voted_for == RAFT_NO_NODE && raft->leader == RAFT_NO_NODE;',
     'bool free_to_vote = raft->leader == RAFT_NO_NODE;'),
    ('log of the candidate not compared', 'election.c',
     'if (request->log_term < last_term ||', 'if (request->log_term + 100000 < last_term ||'),
    ('length of the candidate\'s log not compared', 'election.c',
     'request->index < last)) {', 'request->index + 100000 < last)) {'),
    ('entries of older terms committed by counting', 'replication.c',
     '(term == raft->term || planted(PLANT_OLD_TERM_COUNTED))) {', 'term > 0) {'),
    ('leader counts itself before it is durable', 'quorum.c',
     'return peer == NULL ? raft->durable : peer->match;',
     'return peer == NULL ? raft_window_last(&raft->window) : peer->match;'),
    ('follower acknowledges before it is durable', 'follower.c',
     'return raft->durable < raft->matched ? raft->durable : raft->matched;',
     'return raft->matched;'),
    ('follower acknowledges what may differ', 'follower.c',
     'return raft->durable < raft->matched ? raft->durable : raft->matched;',
     'return raft->durable;'),
    ('predecessor not checked', 'follower.c',
     '(term == message->log_term ||', '(term > 0 ||'),
    ('conflicting entries kept', 'follower.c',
     'if (term != entry->term &&', 'if (term > entry->term + 100000 &&'),
    ('all of the follower\'s log taken for equal', 'follower.c',
     'raft->matched = end > raft->matched ? end : raft->matched;',
     'raft->matched = raft_window_last(&raft->window);'),
    ('notice from before a truncation believed', 'follower.c',
     'if (term < raft->truncated_term) {', 'if (term + 100000 < raft->truncated_term) {'),
    ('term forgotten at restart', 'recovery.c',
     'if (term > raft->term || (term == raft->term && voted_for != RAFT_NO_NODE)) {',
     'if (voted_for == 100000) {'),
    ('vote forgotten at restart', 'recovery.c',
     '        raft->voted_for = voted_for;\n    }\n}', '        raft->voted_for = -1;\n    }\n}'),
    ('higher term not adopted', 'raft.c',
     'if (message->term > raft->term) {\n        bool leads',
     'if (message->term > raft->term + 1) {\n        bool leads'),
    ('majority of half', 'quorum.c', 'agree > voters / 2', 'agree >= voters / 2'),
    ('old majority not asked during a change', 'quorum.c',
     '(set_agrees(raft, RAFT_OLD_VOTER, test, argument) ||', '(true ||'),
    ('change without a joint configuration', 'membership.c', 'if (voters_change &&',
     'if (voters_change && count > 100000 &&'),
    ('joint configuration left before it is committed', 'membership.c',
     'if (raft->active.index > raft->commit) {\n        return;\n    }\n    if (raft_conf',
     'if (raft_conf'),
    ('configuration not taken back by a truncation', 'membership.c',
     'if (raft->active.index < from ||', 'if (raft->active.index < from || raft->out != NULL ||'),
    ('removed leader cannot finish its removal', 'membership.c',
     '(raft->active.index > raft->commit && voted_before(raft));',
     '(raft->active.index > raft->commit + 100000 && voted_before(raft));'),
    ('learner counts in majorities', 'quorum.c',
     'if ((raft->peers[i].flags & flag) != 0) {\n            voters++;',
     'if ((raft->peers[i].flags & (flag | RAFT_LEARNER)) != 0) {\n            voters++;'),
    ('read confirmed without asking', 'read.c',
     '!raft_has_quorum(raft, answered_round, read->round)', 'false'),
    ('new leader reads below what its predecessor committed', 'read.c',
     'raft->commit > raft->floor ? raft->commit : raft->floor', 'raft->commit'),
    ('read confirmed by an older round', 'read.c',
     'peer->round_acked >= round ||', 'peer->round_acked + 3 >= round ||'),
    ('snapshot restored over a newer state', 'snapshot.c',
     'if (index <= raft->commit) {', 'if (index == raft->commit) {'),
    ('window kept although the snapshot is of another term', 'snapshot.c',
     '|| known != term) {', ') {'),
    ('window released beyond what is durable', 'raft.c',
     'uint64_t to = raft->commit < raft->durable ? raft->commit : raft->durable;',
     'uint64_t to = raft->commit;'),
    ('stale journal tail taken after a snapshot', 'recovery.c',
     'if (raft->stale_tail || entry->term < raft->window.start_term) {', 'if (false) {'),
    ('lost append never sent again', 'replication.c',
     'message->index + 1 < peer->next) {', 'message->index + 100000 < peer->next) {'),
    ('probe never repeated', 'replication.c',
     'if (peer->state == RAFT_PEER_PROBE) {\n        uint64_t index',
     'if (false) {\n        uint64_t index'),
    ('hint not used', 'replication.c', 'raft_begin_probe(raft, peer, hint > peer->match ? hint : '
     'peer->match, false);', 'raft_begin_probe(raft, peer, message->index, false);'),
    ('damaged peer not found', 'replication.c',
     'if (message->index == 0 || peer->state == RAFT_PEER_SNAPSHOT ||',
     'if (message->index <= peer->match || peer->state == RAFT_PEER_SNAPSHOT ||'),
    ('answer of an older term taken for a refusal', 'replication.c',
     'if (message->index == 0 || peer->state == RAFT_PEER_SNAPSHOT ||',
     'if (peer->state == RAFT_PEER_SNAPSHOT ||'),
    ('leader without a majority stays', 'raft.c', 'if (!raft_has_quorum(raft, was_active, 0)) {',
     'if (false) {'),
    ('resting group not woken by a lost leader', 'hibernation.c',
     '} else if (raft->leader == node) {', '} else if (raft->leader == node + 100000) {'),
    ('member that is back left alone', 'hibernation.c',
     'peer != NULL && peer->gone) {', 'peer != NULL && false) {'),
    ('withdrawn node votes', 'election.c', 'if (raft->withdrawn) {', 'if (false) {'),
]


def build(folder):
    sources = sorted(folder.glob('raft/*.c')) + sorted(ROOT.glob('base/*.c'))
    sources += sorted(p for p in ROOT.glob('tests/sim/raft/*.c'))
    subprocess.run(['cc', '-std=gnu17', '-D_GNU_SOURCE', '-O1', '-w', f'-I{folder}', f'-I{ROOT}',
                    '-o', str(folder / 'sim'), *map(str, sources), '-lpthread'], check=True)


def run(name, file, text, replacement):
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = pathlib.Path(name_of_folder)
        (folder / 'raft').mkdir()
        for source in (ROOT / 'raft').glob('*.[ch]'):
            content = source.read_text()
            if source.name == file:
                assert content.count(text) == 1, f'{name}: found {content.count(text)} times'
                content = content.replace(text, replacement)
            (folder / 'raft' / source.name).write_text(content)
        build(folder)
        try:
            done = subprocess.run([str(folder / 'sim'), '1', SEEDS], capture_output=True,
                                  text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return 'caught: never ends'
        if done.returncode == 0:
            return None
        lines = done.stdout.splitlines()
        seeds = sum(1 for line in lines if line.startswith('seed'))
        why = [line for line in lines if 'FAILED' in line] + done.stderr.splitlines()
        return f'caught after {seeds} seeds: {why[0] if why else "?"}'


def check():
    """TAP: whether each mutation still finds its text, once; the core is not built."""
    print(f'1..{len(MUTATIONS)}')
    missing = 0
    for number, (name, file, text, _) in enumerate(MUTATIONS, 1):
        count = (ROOT / 'raft' / file).read_text().count(text)
        missing += count != 1
        print(f'{"ok" if count == 1 else "not ok"} {number} - {name}: its text is there {count} times')
    return 1 if missing else 0


def main():
    if sys.argv[1:] == ['--check']:
        return check()
    survived = 0
    for mutation in MUTATIONS:
        if len(sys.argv) > 1 and mutation[0] not in sys.argv[1:]:
            continue
        outcome = run(*mutation)
        survived += outcome is None
        print(f'{mutation[0]}: {outcome or "SURVIVED"}', flush=True)
    return 1 if survived else 0


if __name__ == '__main__':
    sys.exit(main())
