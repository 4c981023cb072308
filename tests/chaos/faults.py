"""What is done to a cluster. A fault is a generator: it begins, yields for how many seconds it holds,
and mends when it is resumed; run_faults() plays them by seed, now and then two at a time.

Every kind is dealt once before any comes again (a deck), so that a short run has all of them. What
takes a whole data directory away waits until all replicas are in sync: two copies lost at once are
lost.
"""
import heapq
import shutil
import socket
import time
from dataclasses import dataclass, field

from client import wait_for

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


def restart(chaos, node):
    chaos.cluster[node].wait_ready()
    chaos.cluster.stop(node)
    yield chaos.hold() / 4
    chaos.cluster.start(node, wait=False)


def kill_all(chaos, _):
    for node in chaos.cluster:
        chaos.cluster.kill(node)
    yield chaos.hold() / 4
    for node in chaos.cluster:
        chaos.cluster.start(node, wait=False)


def rolling_restart(chaos, _):
    for node in chaos.cluster:
        for one in chaos.cluster:
            chaos.cluster[one].wait_ready()
        chaos.cluster.restart(node)
        yield 0.5


def lose_directory(chaos, node):
    chaos.wait_in_sync()
    chaos.cluster.kill(node)
    shutil.rmtree(chaos.cluster[node].data_dir)
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
    other = chaos.chance.choice(others(chaos, node))
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
    alone: bool = False     # nothing else at the same time
    node: int = 0           # done to this one; 0: to any

    @property
    def name(self):
        return self.run.__name__


KINDS = [Kind(kill), Kind(pause), Kind(restart), Kind(kill_all, alone=True),
         Kind(rolling_restart, alone=True), Kind(lose_directory, alone=True),
         Kind(lose_directory_and_kill, alone=True), Kind(full_disk), Kind(failing_disk),
         Kind(filled_disk, network=True, alone=True, node=SMALL),
         Kind(stalled_disk), Kind(slow_disk), Kind(clock_jumps), Kind(isolated, network=True),
         Kind(unplugged, network=True), Kind(mute, network=True), Kind(deaf, network=True),
         Kind(two_apart, network=True), Kind(flapping, network=True), Kind(topics_come_and_go)]


@dataclass(order=True)
class Active:
    due: float
    name: str
    node: int
    steps: object = field(compare=False)
    alone: bool = field(compare=False)


def run_faults(chaos, seconds, only=None):
    """Plays faults for so long; whatever is under way at the end is brought to its end."""
    kinds = [kind for kind in KINDS if (chaos.network or not kind.network) and
             (only is None or kind.name in only)]
    deck, active, end = [], [], time.monotonic() + seconds
    while active or time.monotonic() < end:
        if not deck:
            deck = chaos.chance.sample(kinds, len(kinds))
        if time.monotonic() < end and may_begin(chaos, deck[-1], active):
            begin(chaos, deck.pop(), active)
        wait = active[0].due - time.monotonic() if active else chaos.chance.uniform(0, 1.5)
        time.sleep(max(wait, 0))
        if active:
            go_on(chaos, active)
        chaos.check_alive()


def may_begin(chaos, kind, active):
    if not active:
        return True
    return not (kind.alone or active[0].alone or len(active) > 1) and \
        chaos.chance.random() < TWO_AT_ONCE


def begin(chaos, kind, active):
    free = [node for node in chaos.cluster if node not in {one.node for one in active}]
    node = kind.node or chaos.chance.choice(free)
    chaos.say("%s%s" % (kind.name, "" if kind.alone and "all" in kind.name else " %d" % node))
    steps = kind.run(chaos, node)
    heapq.heappush(active, Active(time.monotonic() + next(steps), kind.name, node, steps,
                                  kind.alone))


def go_on(chaos, active):
    one = heapq.heappop(active)
    try:
        one.due = time.monotonic() + next(one.steps)
        heapq.heappush(active, one)
    except StopIteration:
        chaos.say("%s %d is over" % (one.name, one.node))
