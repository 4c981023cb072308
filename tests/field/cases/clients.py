"""Runs a scenario of a stock client (tests/clients) as part of a field case."""
import importlib.util
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
RUNNER = os.path.join(HERE, "..", "..", "clients", "run.py")


class Skip(Exception):
    """The client cannot be had here."""


def layer():
    spec = importlib.util.spec_from_file_location("clients_layer", RUNNER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(client, bootstrap, scenario, *args):
    """The scenario has to pass; Skip if the client is not to be had."""
    clients = layer()
    try:
        command = clients.CLIENTS[client][0]()
    except clients.toolchains.Unavailable as why:
        raise Skip("%s: %s" % (client, why))
    done = subprocess.run([*command, bootstrap, scenario, *args], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0, "%s %s: %s" % (client, scenario, done.stdout[-800:])
