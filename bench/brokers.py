"""The two brokers side by side: start, stop, kill, and what /proc says about them.

Happy path: Ottla(...) and Kafka(...) have the same methods. start() returns the seconds from the
start of the process to its first answer to Metadata; usage() its CPU seconds so far.

Each has a port of its own on loopback and its data below a directory of its own. Only processes
started here are ended, by their pid. With end_on_sigterm() a script that gets SIGTERM leaves its
contexts as after an error, so that they end what they have started; whole() sees to it that what
was started is known then.

Failure modes: BrokerError, with the tail of the log, when a broker exits or does not answer.
"""
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

from bench_wire import answers

HERE = os.path.dirname(os.path.abspath(__file__))
TICKS = os.sysconf("SC_CLK_TCK")
STATES = {"Z", "X"}


class BrokerError(Exception):
    """A broker did not start, stop or stay."""


def end_on_sigterm():
    """From now on SIGTERM raises SystemExit; those that come meanwhile are not heard."""
    def leave(number, _):
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)


@contextmanager
def whole():
    """A SIGTERM that comes within is heard at the end."""
    came = []
    before = signal.signal(signal.SIGTERM, lambda *_: came.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
    if came:
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def running(command, **options):
    """The process, as of subprocess.Popen; it is killed when what is done with it fails."""
    with whole():
        process = subprocess.Popen(command, **options)
    with process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def free_port(offset=0):
    """A loopback port nobody listens on, nor on the one `offset` above it."""
    for _ in range(1000):
        port = random.randrange(12000, 22000)
        try:
            for number in {port, port + offset}:
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", number))
        except OSError:
            continue
        return port
    raise BrokerError("no free port")


def stat_fields(pid):
    """The fields of /proc/PID/stat after the command: [0] is the state."""
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rpartition(")")[2].split()


def alive(pid):
    try:
        return stat_fields(pid)[0] not in STATES
    except (FileNotFoundError, ProcessLookupError):
        return False


def usage(pid):
    """(user + system, user) CPU seconds of the process so far."""
    fields = stat_fields(pid)
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / TICKS, user / TICKS


class Broker:
    """What both brokers share."""
    name = ""

    def __init__(self, home, port):
        self.home, self.port, self.pid = home, port, None
        self.address = "127.0.0.1:%d" % port
        os.makedirs(home, exist_ok=True)

    def usage(self):
        return usage(self.pid)

    def memory_mb(self):
        with open("/proc/%d/status" % self.pid) as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024 / 1e6
        raise BrokerError("%s: no VmRSS" % self.name)

    def age_s(self):
        """Seconds since the process began, from the kernel's own record (10 ms steps)."""
        began = int(stat_fields(self.pid)[19]) / TICKS
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began

    def wait_answer(self, limit_s=180.0):
        until = time.monotonic() + limit_s
        while not answers(self.port, 30.0):
            if self.exited():
                raise BrokerError("%s exited:\n%s" % (self.name, self.log_tail()))
            if time.monotonic() > until:
                raise BrokerError("%s does not answer:\n%s" % (self.name, self.log_tail()))
            time.sleep(0.0005)

    def log_tail(self):
        try:
            with open(self.log, errors="replace") as f:
                return f.read()[-2000:]
        except OSError:
            return ""

    def end(self, signal_number):
        if self.pid is None:
            return
        try:
            os.kill(self.pid, signal_number)
        except ProcessLookupError:
            pass
        until = time.monotonic() + 60
        while not self.exited():
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.01)
        self.pid = None

    def kill(self):
        self.end(signal.SIGKILL)

    def stop(self):
        self.end(signal.SIGTERM)

    def wipe(self):
        """Ends it and removes its data."""
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)
        os.makedirs(self.home)


class Ottla(Broker):
    """This project's broker."""
    name = "ottla"

    def __init__(self, home, binary, overrides=()):
        super().__init__(home, free_port())
        self.binary, self.overrides, self.process = binary, overrides, None
        self.log = os.path.join(home, "ottla.log")

    def start(self):
        command = [self.binary, "server"]
        for setting in ("listeners=PLAINTEXT://" + self.address,
                        "log.dirs=" + os.path.join(self.home, "data")) + tuple(self.overrides):
            command += ["--override", setting]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KAFKA_", "OTTLA_"))}
        with open(self.log, "ab") as log, whole():
            began = time.monotonic()
            self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
            self.pid = self.process.pid
        self.wait_answer()
        return time.monotonic() - began

    def exited(self):
        return self.process.poll() is not None


class Kafka(Broker):
    """A stock Apache Kafka, by setup-kafka.sh; the jars are shared between runs."""
    name = "kafka"

    def __init__(self, home, cache):
        super().__init__(home, free_port(10000))
        self.cache, self.script = cache, os.path.join(HERE, "setup-kafka.sh")
        self.run_script({"KAFKA_PEER_DIR": cache}, "install")
        self.node = os.path.join(home, "run-1", "node1")
        self.log = os.path.join(self.node, "server.log")

    def run_script(self, env, *words):
        done = subprocess.run([self.script] + list(words), env=dict(os.environ, **env),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise BrokerError("setup-kafka.sh: " + done.stderr[-2000:])

    def environment(self):
        return {"KAFKA_PEER_DIR": self.home, "KAFKA_PORT_SINGLE": str(self.port)}

    def link_jars(self):
        for entry in os.listdir(self.cache):
            if entry.startswith(("lib-", "log4j2-")):
                link = os.path.join(self.home, entry)
                if not os.path.lexists(link):
                    os.symlink(os.path.join(self.cache, entry), link)

    def start(self):
        """As Ottla.start; the data directory is formatted before, and that does not count."""
        self.link_jars()
        env = dict(os.environ, **self.environment())
        pid_file = os.path.join(self.node, "pid")
        if os.path.exists(pid_file):
            os.unlink(pid_file)
        with running([self.script, "start-node", "1", "1"], env=env,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as script:
            with whole():
                while self.pid is None:
                    if script.poll() is not None:
                        raise BrokerError("setup-kafka.sh failed:\n" + self.log_tail())
                    self.pid = self.pid_from(pid_file)
                    time.sleep(0.001)
            self.wait_answer()
            took = self.age_s()
            script.wait()
        return took

    @staticmethod
    def pid_from(path):
        try:
            with open(path) as f:
                return int(f.read())
        except (OSError, ValueError):
            return None

    def exited(self):
        return not alive(self.pid)
