"""What is done to a cluster. A fault is a generator: it begins, yields for how many seconds it holds,
and mends when it is resumed; run_faults() plays them by seed, now and then two at a time.

Every kind is dealt once before any comes again (a deck), so that a short run has all of them. What
takes a whole data directory away waits until all replicas are in sync: two copies lost at once are
lost.
"""
import heapq
import shutil
import signal
import socket
import time
from dataclasses import dataclass, field

from client import wait_for
from membership import broker_comes_and_goes, voters_change

TWO_AT_ONCE = 0.35
HOUR_MS = 3600 * 1000
SMALL = 3  # the node with a small disk


# ---- processes
def kill(chaos, node):
    chaos.cluster.kill(node)
    yield chaos.hold()
    chaos.cluster.start(node, wait=False)


def pause(chaos, node):
    chaos.cluster.pause(node)
    yield chaos.hold()
    chaos.cluster.resume(node)


def freeze(chaos, node):
    chaos.cluster.freeze(node)
    yield chaos.hold()
    chaos.cluster.resume(node)


def freeze_all(chaos, _):
    """The machine stands still, its clients too, as a virtual one does that is moved."""
    nodes = list(chaos.members)
    chaos.busy.update(nodes)
    for worker in chaos.workers:
        worker.process.send_signal(signal.SIGSTOP)
    for node in nodes:
        chaos.cluster.freeze(node)
    yield chaos.hold()
    for worker in chaos.workers:
        worker.process.send_signal(signal.SIGCONT)
    for node in nodes:
        chaos.cluster.resume(node)


def restart(chaos, node):
    chaos.cluster[node].wait_ready()
    chaos.cluster.stop(node)
    yield chaos.hold() / 4
    chaos.cluster.start(node, wait=False)


def kill_all(chaos, _):
    nodes = list(chaos.members)
    chaos.busy.update(nodes)
    for node in nodes:
        chaos.cluster.kill(node)
    yield chaos.hold() / 4
    for node in nodes:
        chaos.cluster.start(node, wait=False)


def rolling_restart(chaos, _):
    for node in list(chaos.members):
        for one in chaos.members:
            chaos.cluster[one].wait_ready()
        if node in chaos.members:
            chaos.cluster.restart(node)
        yield 0.5


def lose_directory(chaos, node):
    chaos.wait_in_sync()
    chaos.cluster.kill(node)
    shutil.rmtree(chaos.cluster[node].data_dir)
    chaos.format(node)
    yield chaos.hold() / 2
    chaos.cluster.start(node, wait=False)


def lose_directory_and_kill(chaos, node):
    """Killed again while it catches up: it knows even less of what it had promised."""
    for _ in lose_directory(chaos, node):
        yield _
    yield chaos.chance.uniform(0.05, 0.5)
    chaos.cluster.kill(node)
    chaos.cluster.start(node, wait=False)


# ---- disks and clocks
def full_disk(chaos, node):
    yield from disk(chaos, node, "ENOSPC")


def filled_disk(chaos, node):
    """No fault that is made up: its file system has no room."""
    wait_listening(chaos.cluster[node])
    chaos.cluster[node].fill()
    yield chaos.hold()
    chaos.cluster[node].empty()


def failing_disk(chaos, node):
    yield from disk(chaos, node, "EIO")


def stalled_disk(chaos, node):
    yield from disk(chaos, node, "STALL")


def slow_disk(chaos, node):
    yield from disk(chaos, node, "DELAY %d" % chaos.chance.randrange(20, 400))


def wait_listening(broker):
    """A disk that fails while a broker starts is said, and ends the process."""
    wait_for("%s listens" % broker.name, lambda: socket.create_connection(
        (broker.host, broker.port), 1.0).close() is None)


def disk(chaos, node, how):
    wait_listening(chaos.cluster[node])
    chaos.cluster[node].fault(how)
    yield chaos.hold()
    chaos.cluster[node].heal()


def clock_jumps(chaos, node):
    for _ in range(3):
        chaos.cluster[node].set_clock(chaos.chance.randrange(-10 * HOUR_MS, 10 * HOUR_MS))
        yield chaos.hold() / 3
    chaos.cluster[node].set_clock(0)


# ---- the network
def others(chaos, node):
    return [other for other in chaos.cluster if other != node]


def isolated(chaos, node):
    """Clients still reach it."""
    cut(chaos, node, True, True)
    yield chaos.hold()
    mend(chaos, node)


def unplugged(chaos, node):
    chaos.network.unplug(node)
    yield chaos.hold()
    chaos.network.plug(node)


def mute(chaos, node):
    cut(chaos, node, True, False)
    yield chaos.hold()
    mend(chaos, node)


def deaf(chaos, node):
    cut(chaos, node, False, True)
    yield chaos.hold()
    mend(chaos, node)


def two_apart(chaos, node):
    """Two nodes do not reach each other, the third one reaches both."""
    other = chaos.chance.choice([one for one in chaos.members if one != node])
    chaos.network.drop(node, other)
    chaos.network.drop(other, node)
    yield chaos.hold()
    mend(chaos, node)


def flapping(chaos, node):
    for _ in range(chaos.chance.randrange(4, 12)):
        cut(chaos, node, chaos.chance.random() < 0.7, chaos.chance.random() < 0.7)
        yield chaos.chance.uniform(0.05, 0.8)
        mend(chaos, node)
        yield chaos.chance.uniform(0.05, 0.5)


def cut(chaos, node, out, into):
    for other in others(chaos, node):
        if out:
            chaos.network.drop(node, other)
        if into:
            chaos.network.drop(other, node)


def mend(chaos, node):
    for other in others(chaos, node):
        chaos.network.allow(node, other)
        chaos.network.allow(other, node)


# ---- the load
def topics_come_and_go(chaos, _):
    for _ in range(6):
        chaos.churn()
        yield chaos.chance.uniform(0.1, 0.5)


@dataclass
class Kind:
    run: object
    network: bool = False   # needs one
    alone: bool = False     # no other fault at the same time
    node: int = 0           # done to this one; 0: to any
    beside: bool = False    # goes on beside everything else, one of these at a time
    voters: bool = False    # changes who votes on metadata
    loses: bool = False     # takes promises away: of two voters, one may not be lost

    @property
    def name(self):
        return self.run.__name__


KINDS = [Kind(kill), Kind(pause), Kind(freeze), Kind(freeze_all, alone=True), Kind(restart),
         Kind(kill_all, alone=True),
         Kind(rolling_restart, alone=True), Kind(lose_directory, alone=True, loses=True),
         Kind(lose_directory_and_kill, alone=True, loses=True), Kind(full_disk), Kind(failing_disk),
         Kind(filled_disk, network=True, alone=True, node=SMALL),
         Kind(stalled_disk), Kind(slow_disk), Kind(clock_jumps), Kind(isolated, network=True),
         Kind(unplugged, network=True), Kind(mute, network=True), Kind(deaf, network=True),
         Kind(two_apart, network=True), Kind(flapping, network=True), Kind(topics_come_and_go),
         Kind(broker_comes_and_goes, beside=True), Kind(voters_change, beside=True, voters=True)]


@dataclass(order=True)
class Active:
    due: float
    name: str
    node: int
    steps: object = field(compare=False)
    kind: Kind = field(compare=False)


def kinds_for(chaos, only):
    return [kind for kind in KINDS if (chaos.network or not kind.network) and
            (chaos.voters_change or not kind.voters) and (only is None or kind.name in only)]


def run_each(chaos, only=None):
    """Every kind once, by itself."""
    for kind in kinds_for(chaos, only):
        active = []
        begin(chaos, kind, active)
        while active:
            time.sleep(max(active[0].due - time.monotonic(), 0))
            go_on(chaos, active)
            chaos.check_alive()


def run_faults(chaos, seconds, only=None):
    """Plays faults for so long; whatever is under way at the end is brought to its end."""
    kinds = kinds_for(chaos, only)
    lanes = [Deck(chaos, [kind for kind in kinds if kind.beside == beside])
             for beside in (False, True)]
    active, end = [], time.monotonic() + seconds
    while active or time.monotonic() < end:
        for lane in lanes:
            if time.monotonic() < end and may_begin(chaos, lane.top(), active):
                begin(chaos, lane.take(), active)
        wait = active[0].due - time.monotonic() if active else chaos.chance.uniform(0, 1.5)
        time.sleep(max(wait, 0))
        if active:
            go_on(chaos, active)
        chaos.check_alive()


class Deck:
    """Deals every kind once before any comes again."""

    def __init__(self, chaos, kinds):
        self.chaos, self.kinds, self.left = chaos, kinds, []

    def top(self):
        """None without any kind."""
        self.left = self.left or self.chaos.chance.sample(self.kinds, len(self.kinds))
        return self.left[-1] if self.left else None

    def take(self):
        return self.left.pop()


def may_begin(chaos, kind, active):
    if kind is None or any(kind.loses and one.kind.voters or kind.voters and one.kind.loses
                           for one in active):
        return False
    beside = [one for one in active if one.kind.beside == kind.beside]
    if not beside:
        return True
    return not (kind.beside or kind.alone or beside[0].kind.alone or len(beside) > 1) and \
        chaos.chance.random() < TWO_AT_ONCE


def begin(chaos, kind, active):
    node = 0
    if not kind.beside:
        node = kind.node or chaos.chance.choice(
            [node for node in chaos.members if node not in chaos.busy])
    chaos.say(kind.name + (" %d" % node if node else ""))
    if node:
        chaos.busy.add(node)
    steps = kind.run(chaos, node)
    heapq.heappush(active, Active(time.monotonic() + next(steps), kind.name, node, steps, kind))


def go_on(chaos, active):
    one = heapq.heappop(active)
    try:
        one.due = time.monotonic() + next(one.steps)
        heapq.heappush(active, one)
    except StopIteration:
        chaos.say("%s%s is over" % (one.name, " %d" % one.node if one.node else ""))
        if one.kind.alone:
            chaos.busy.clear()
        chaos.busy.discard(one.node)
