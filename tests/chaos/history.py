"""The account of a chaos run, and what may not be in it.

A History is filled from the workers' files (worker.py), from readers of this process and from the
logs on the disks; `check` gives back every contradiction as a line of text, none when all is well:

  - an acknowledged value is in the log, where it was said to be;
  - a producer's values are in the log once, in their order, and none is missing (it is idempotent
    and tries until it succeeds);
  - what anybody read at an offset is what the final log has there: nothing uncommitted was read;
  - the offsets of a group are never found behind what was acknowledged before;
  - all replicas have the same bytes.
"""
from collections import defaultdict

SHOWN = 20  # contradictions of a kind


class History:
    """Parts are (topic, partition)."""

    def __init__(self):
        self.sent = {}                    # (producer, part) -> how many values
        self.acks = defaultdict(list)     # (producer, part) -> [(number, offset)]
        self.failed = []                  # (producer, part, number, why)
        self.left = {}                    # producer -> how many were never answered
        self.reads = []                   # (who, part, offset, value)
        self.commits = defaultdict(list)  # (group, part) -> [(time, offset)]
        self.found = defaultdict(list)    # the same, of what was asked for
        self.logs = {}                    # part -> [value by offset]
        self.batches = {}                 # part -> {offset: what its batch says of itself}
        self.replicas = defaultdict(dict)  # part -> {node: what it has, as bytes}

    def take_worker(self, path, name, topic, group=None):
        """Reads a worker's file; returns how many lines it has."""
        count = 0
        with open(path) as lines:
            for line in lines:
                count += 1
                self.take_line(line.split(), name, topic, group)
        return count

    def take_line(self, words, name, topic, group):
        kind, rest = words[0], words[1:]
        if kind == "ack":
            self.acks[name, (topic, int(rest[0]))].append((int(rest[1]), int(rest[2])))
        elif kind == "read":
            self.reads.append((name, (topic, int(rest[0])), int(rest[1]), rest[2]))
        elif kind in ("committed", "found"):
            kept = self.commits if kind == "committed" else self.found
            kept[group, (topic, int(rest[1]))].append((int(rest[0]), int(rest[2])))
        elif kind == "sent":
            self.sent[name, (topic, int(rest[0]))] = int(rest[1])
        elif kind == "failed":
            self.failed.append((name, (topic, int(rest[0])), int(rest[1]), rest[2]))
        elif kind == "left":
            self.left[name] = int(rest[0])
        else:
            assert kind == "note", words

    # ---- judging
    def check(self):
        wrong = []
        for part, log in self.logs.items():
            wrong += check_producers(self, part, log)
        for rule in (check_answers, check_reads, check_offsets, check_replicas):
            wrong += rule(self)
        return wrong


def name_of(part):
    return "%s-%d" % part


def some(lines):
    """Not all of what one fault may cause."""
    lines = list(lines)
    more = ["... and %d more of these" % (len(lines) - SHOWN)] if len(lines) > SHOWN else []
    return lines[:SHOWN] + more


def places(log):
    """{producer: [(number, offset)]} in the log's order"""
    found = defaultdict(list)
    for offset, value in enumerate(log):
        if value is not None:
            producer, _, number = value.split("/")
            found[producer].append((int(number), offset))
    return found


def check_producers(history, part, log):
    wrong, found = [], places(log)
    for producer in {name for name, at in history.sent if at == part}:
        mine = found.get(producer, [])
        where = "%s of %s" % (name_of(part), producer)
        wrong += some(check_order(where, mine, history.batches.get(part, {})))
        offset_of = dict(mine)
        wrong += some(check_acks(where, offset_of, history.acks[producer, part]))
        if producer in history.left and history.left[producer] == 0:
            wrong += some("%s: %d is missing" % (where, number)
                          for number in range(history.sent[producer, part])
                          if number not in offset_of)
    for stranger in set(found) - {name for name, at in history.sent if at == part}:
        wrong.append("%s: values of %s, which never wrote there" % (name_of(part), stranger))
    return wrong


def check_order(where, mine, batches):
    def at(offset):
        return "at %d%s" % (offset, " (%s)" % batches[offset] if offset in batches else "")

    seen, last = {}, -1
    for number, offset in mine:
        if number in seen:
            yield "%s: %d is %s and %s" % (where, number, at(seen[number]), at(offset))
        elif number < last:
            yield "%s: %d comes behind %d, at %d" % (where, number, last, offset)
        seen.setdefault(number, offset)
        last = max(last, number)


def check_acks(where, offset_of, acks):
    for number, offset in acks:
        at = offset_of.get(number)
        if at is None:
            yield "%s: %d was acknowledged at %d and is gone" % (where, number, offset)
        elif offset >= 0 and at != offset:  # -1: known to be a repetition, its place is not
            yield "%s: %d was acknowledged at %d and is at %d" % (where, number, offset, at)


def check_answers(history):
    wrong = ["%s: %s %d failed: %s" % (name_of(part), producer, number, why)
             for producer, part, number, why in history.failed]
    return some(wrong) + ["%s: %d values were never answered" % one
                          for one in history.left.items() if one[1] > 0]


def check_reads(history):
    def wrong():
        for who, part, offset, value in history.reads:
            log = history.logs.get(part, ())
            if offset >= len(log):
                yield "%s: %s read %s at %d, the log ends at %d" % (name_of(part), who, value,
                                                                    offset, len(log))
            elif log[offset] != value:
                yield "%s: %s read %s at %d, the log has %s there" % (name_of(part), who, value,
                                                                      offset, log[offset])
    return some(wrong())


def check_offsets(history):
    """Whoever asks after a commit was acknowledged finds that offset, or a later one."""
    def wrong():
        for key, found in history.found.items():
            for asked, offset in found:
                most = max((acked for at, acked in history.commits[key] if at <= asked),
                           default=-1)
                if offset < most:
                    yield "%s: group %s had committed %d, then %d was found" % (
                        name_of(key[1]), key[0], most, offset)
    return some(wrong())


def check_replicas(history):
    for part, replicas in history.replicas.items():
        nodes = sorted(replicas)
        for node in nodes[1:]:
            one, other = replicas[nodes[0]], replicas[node]
            if one != other:
                same = next((i for i, pair in enumerate(zip(one, other)) if pair[0] != pair[1]),
                            min(len(one), len(other)))
                yield "%s: nodes %d and %d differ from byte %d on (%d and %d bytes)" % (
                    name_of(part), nodes[0], node, same, len(one), len(other))
