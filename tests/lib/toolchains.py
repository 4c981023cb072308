"""What the stock clients are made with, brought by package name from the registries into the cache.

python(), node() and go() give the interpreters of one virtual environment (requirements.txt has the
Python clients and the wheels of Go and Node.js); go_program(), node_program(), java_classes() and
c_program() build the client programs in tests/clients, linear() the judge of tests/chaos. Everything is pinned, built once and kept in
OTTLA_CACHE under a name made of its inputs' hash; a lock keeps two runs from building the same.

Failure modes: Unavailable, with the end of what the tool said, when something cannot be had.
"""
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import kafka_peer
from ottla import TOP

CLIENTS = os.path.join(TOP, "tests", "clients")


class Unavailable(Exception):
    """A toolchain or a client that cannot be had on this machine."""


def run(argv, **options):
    """Run a build step; Unavailable with its last words if it fails."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, **options)
    except OSError as error:
        raise Unavailable(str(error))
    if done.returncode != 0:
        raise Unavailable("%s: %s" % (argv[0], done.stdout.decode(errors="replace")[-600:]))


def inputs_hash(paths):
    total = hashlib.sha256(sys.version.encode())
    for path in sorted(paths):
        total.update(os.path.basename(path).encode())
        with open(path, "rb") as data:
            total.update(data.read())
    return total.hexdigest()[:12]


def files_in(folder, *suffixes):
    found = []
    for base, _, names in os.walk(folder):
        found += [os.path.join(base, name) for name in names if name.endswith(suffixes)]
    return found


@contextmanager
def cached(kind, paths):
    """(folder, is new) for what is made of these files; complete only if the body succeeds."""
    folder = os.path.join(kafka_peer.cache_dir(), "%s-%s" % (kind, inputs_hash(paths)))
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = os.path.join(folder, ".complete")
        new = not os.path.exists(done)
        if new:
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        yield folder, new
        open(done, "w").close()


def venv():
    """The virtual environment's folder."""
    wanted = os.path.join(CLIENTS, "requirements.txt")
    with cached("venv", [wanted]) as (folder, new):
        if new:
            run([sys.executable, "-m", "venv", folder])
            run([os.path.join(folder, "bin", "pip"), "install", "--quiet",
                 "--disable-pip-version-check", "--no-deps", "-r", wanted])
    return folder


def prepare():
    """Makes the virtual environment if it can be made; whoever needs it hears why not."""
    try:
        venv()
    except Unavailable:
        return


def environment():
    """Variables with which the venv's tools are found and keep their downloads in the cache."""
    cache = kafka_peer.cache_dir()
    return {
        "PATH": os.path.join(venv(), "bin") + os.pathsep + os.environ["PATH"],
        "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOROOT": "", "GO111MODULE": "on",
        "GOPATH": os.path.join(cache, "go"), "GOCACHE": os.path.join(cache, "go-build"),
        "npm_config_cache": os.path.join(cache, "npm"), "npm_config_update_notifier": "false",
    }


def tool_environment():
    env = {**os.environ, **environment()}
    del env["GOROOT"]
    return env


def python():
    return os.path.join(venv(), "bin", "python")


def node():
    return os.path.join(venv(), "bin", "node")


def go_build(kind, source, *packages):
    """The folder with the programs of a Go module; its modules come from the proxy, checked by its
    go.sum."""
    env = tool_environment()
    with cached(kind, files_in(source, ".go", "go.mod", "go.sum")) as (folder, new):
        if new:
            run(["go", "build", "-o", folder + "/", *packages], cwd=source, env=env)
    return folder


def go_program(name):
    folder = go_build("go-clients", os.path.join(CLIENTS, "go"), "./franz", "./sarama", "./kafkago")
    return os.path.join(folder, name)


def linear():
    """The judge of registers, tests/chaos/linear."""
    source = os.path.join(TOP, "tests", "chaos", "linear")
    return os.path.join(go_build("go-linear", source, "."), "linear")


def node_program(name):
    """The path of a program beside which its packages are installed."""
    source = os.path.join(CLIENTS, "node")
    env = tool_environment()
    with cached("node-clients", files_in(source, ".js", ".json")) as (folder, new):
        if new:
            for path in files_in(source, ".js", ".json"):
                shutil.copy(path, folder)
            run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, env=env)
    return os.path.join(folder, name)


def java_classes():
    source = os.path.join(CLIENTS, "java", "Client.java")
    try:
        jars = os.path.join(kafka_peer.jars(), "lib", "*")
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable("Kafka's jars: %s" % error)
    with cached("java-clients", [source]) as (folder, new):
        if new:
            run(["javac", "-d", folder, "-cp", jars, source])
    return folder


def c_program():
    source = os.path.join(CLIENTS, "c", "client.c")
    with cached("c-client", [source]) as (folder, new):
        if new:
            run(["gcc", "-std=c17", "-O1", "-Wall", "-Wextra", "-Werror", source, "-lrdkafka", "-o",
                 os.path.join(folder, "client")])
    return os.path.join(folder, "client")
