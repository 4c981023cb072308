#!/usr/bin/env python3
"""Three real brokers with real disks, each in a network of its own, under the load of stock clients:
killed, stopped, cut off, with full and stalled disks, wrong clocks and lost directories, while a
fourth one comes and goes, partitions move and voters change. Afterwards everything heals, and
nothing that was promised is broken (history.py, register.py).

Options: --seconds of faults with networks, --loopback-seconds without, --each how long each fault by
itself is held, --only a,b kinds of faults, --rounds how often, each with a seed of its own.
"""
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import network  # noqa: E402
import toolchains  # noqa: E402

if __name__ == "__main__":
    network.enter(toolchains.prepare)

import cases  # noqa: E402
import register  # noqa: E402
from chaos import NODES, Chaos  # noqa: E402
from faults import KINDS, run_each, run_faults  # noqa: E402

OPTIONS = None
PLAYED = []  # (seed, operations on registers, their logs), for the judge


def only():
    """The kinds of faults that were asked for; None for all."""
    wanted = OPTIONS.only.split(",") if OPTIONS.only else None
    unknown = set(wanted or ()) - {kind.name for kind in KINDS}
    assert not unknown, "no fault %s; there are: %s" % (
        ", ".join(unknown), ", ".join(kind.name for kind in KINDS))
    return wanted


def play(net, what, run):
    notes = []
    try:
        toolchains.python()
    except toolchains.Unavailable as why:
        raise cases.Skip("no stock client: %s" % why)
    for round_number in range(OPTIONS.rounds):
        seed = OPTIONS.seed + round_number
        print("seed %d: %s" % (seed, what))
        with Chaos(seed, net, voters_change=net is not None) as chaos:
            run(chaos)
            notes.append(chaos.finish())
            print(notes[-1])
            PLAYED.append((seed, chaos.operations(), chaos.register_logs))
    return "; ".join(notes)


def play_for(seconds):
    return "%g s of faults" % seconds, lambda chaos: run_faults(chaos, seconds, only())


def in_networks(what, run):
    try:
        net = network.Network(NODES)
    except network.Unavailable as why:
        raise cases.Skip("no network namespaces: %s" % why)
    try:
        return play(net, what, run)
    finally:
        net.close()


def test_each_fault_by_itself():
    if OPTIONS.each == 0:
        raise cases.Skip("--each 0")

    def run(chaos):
        chaos.patience = OPTIONS.each
        run_each(chaos, only())

    return in_networks("each fault by itself", run)


def test_faults_in_networks():
    if OPTIONS.seconds == 0:
        raise cases.Skip("--seconds 0")
    return in_networks(*play_for(OPTIONS.seconds))


def test_faults_on_loopback():
    if OPTIONS.loopback_seconds == 0:
        raise cases.Skip("--loopback-seconds 0")
    return play(None, *play_for(OPTIONS.loopback_seconds))


def test_registers_are_linearizable():
    """What the cases before did to the registers."""
    if not PLAYED:
        raise cases.Skip("no case before it came to its end")
    try:
        toolchains.linear()
    except toolchains.Unavailable as why:
        raise cases.Skip("porcupine cannot be had: %s" % why)
    count = 0
    for seed, operations, logs in PLAYED:
        path = os.path.join(tempfile.mkdtemp(prefix="ottla-registers-"), "history")
        wrong = register.judge(operations, logs, path)
        assert not wrong, "seed %d, %s: %s" % (seed, path, "; ".join(wrong[:3]))
        shutil.rmtree(os.path.dirname(path))
        count += len(operations)
    return "%d operations" % count


if __name__ == "__main__":
    cases.main("chaos", globals(), [
        ("--each", float, 0.3, "how patiently each fault by itself is held; 0: not at all"),
        ("--seconds", float, 60, "of faults in networks"),
        ("--loopback-seconds", float, 30, "of faults on loopback"),
        ("--only", str, "", "kinds of faults, with commas"),
        ("--rounds", int, 1, "how often, each with the next seed")])
