"""A broker for tests: start it, stop it, kill it, bring it back.

Happy path: `with Broker() as b:` starts build/ottla on a free loopback port with a temporary data
directory, waits until it answers ApiVersions, and at the end stops it by SIGTERM and removes the
directory. b.bootstrap is what a client needs. A test that is killed takes its brokers with it.

Failure modes: a broker that does not answer in time, that exits by itself, that does not stop on
SIGTERM, that ends with a status other than 0 or whose log holds a sanitizer's report raises
BrokerError with the tail of its log. A data directory is kept when something failed.

Environment: OTTLA_BIN is the program (default build/ottla beside tests/), OTTLA_LOG_DIR is where the
logs go (default: the temporary directory). OTTLA_TEST_REFERENCE=kafka makes new_broker() start a
stock Apache Kafka instead, so that a test can be tried on the reference first.
"""
import fcntl
import os
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

from leash import on_leash

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SANITIZER = re.compile(r"(ERROR: \w+Sanitizer|runtime error:|Assertion .* failed)")
REFERENCE = os.environ.get("OTTLA_TEST_REFERENCE") == "kafka"
# Of all test processes of this user, wherever their data is.
PORT_LOCKS = os.path.join(tempfile.gettempdir(), "ottla-ports-%d" % os.getuid())
_held_ports = []  # lock files of the ports this process has taken; closed when it ends


class BrokerError(Exception):
    """The broker did not do what a test may take for granted."""


def hold_port(port):
    """The lock file that holds the port for this process; None when it is not free."""
    lock = open(os.path.join(PORT_LOCKS, str(port)), "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    except OSError:
        lock.close()
        return None
    return lock


def free_port():
    """A loopback port that nobody listens on, held for this process by a lock file.

    Below the range from which the kernel takes the clients' own ports, so that no connection can
    sit on it while the broker is down.
    """
    return free_ports(1, 1)


def free_ports(count, step):
    """The first of so many ports in a row, a multiple of `step`; likewise."""
    os.makedirs(PORT_LOCKS, exist_ok=True)
    for _ in range(1000):
        first = random.randrange(12000, 32000 - count) // step * step
        locks = [hold_port(port) for port in range(first, first + count)]
        if None not in locks:
            _held_ports.extend(locks)
            return first
        for lock in locks:
            if lock is not None:
                lock.close()
    raise BrokerError("no free port")


def answers(port, timeout_s=1.0, host="127.0.0.1"):
    """True if an ApiVersions v0 request on host:port is answered with error 0."""
    request = struct.pack(">hhih", 18, 0, 1, -1)
    try:
        with socket.create_connection((host, port), timeout_s) as conn:
            conn.sendall(struct.pack(">i", len(request)) + request)
            data = b""
            while len(data) < 10:
                more = conn.recv(4096)
                if not more:
                    return False
                data += more
            return struct.unpack(">iih", data[:10])[1:] == (1, 0)
    except OSError:
        return False


def all_descriptors():
    """As many open files as the system allows this process."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Broker:
    """One Ottla process, on loopback unless `host` says else.

    overrides: server properties (dict), passed as --override key=value.
    env:       extra environment variables. args: extra command-line words.
    port:      the client port (default: a free one). data_dir: kept if given, else temporary.
    properties_file: a server.properties path given as the first argument.
    host:      its address. prefix: words before the command, such as those of a network namespace.
    """

    kind = "ottla"
    start_timeout_s = 30
    stop_timeout_s = 30

    def __init__(self, overrides=None, env=None, port=None, data_dir=None, name="broker", args=(),
                 properties_file=None, host="127.0.0.1", prefix=()):
        self.host, self.prefix = host, list(prefix)
        self.overrides = dict(overrides or {})
        self.env = dict(env or {})
        self.args = list(args)
        self.properties_file = properties_file
        self.port = port or free_port()
        self.name = name
        self.own_dir = tempfile.mkdtemp(prefix="ottla-test-")
        self.data_dir = data_dir or os.path.join(self.own_dir, "data")
        log_dir = os.environ.get("OTTLA_LOG_DIR") or self.own_dir
        os.makedirs(log_dir, exist_ok=True)
        self.log_path = os.path.join(log_dir, "%s-%d.log" % (name, self.port))
        self.process = None
        self.failed = False

    # ---- what a client needs
    @property
    def bootstrap(self):
        return "%s:%d" % (self.host, self.port)

    @property
    def pid(self):
        return self.process.pid

    # ---- life
    def command(self):
        binary = os.environ.get("OTTLA_BIN") or os.path.join(TOP, "build", "ottla")
        words = self.prefix + [binary, "server"]
        if self.properties_file:
            words.append(self.properties_file)
        settings = {"listeners": "PLAINTEXT://" + self.bootstrap, "log.dirs": self.data_dir}
        settings.update(self.overrides)
        for key, value in settings.items():
            words += ["--override", "%s=%s" % (key, value)]
        return words + self.args

    def spawn(self):
        """Start the process without waiting for it to serve."""
        assert self.process is None, "already started"
        log = open(self.log_path, "ab")
        self.process = subprocess.Popen(
            self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**os.environ, **self.env}, cwd=self.own_dir,
            preexec_fn=on_leash(all_descriptors))
        log.close()
        return self

    def wait_ready(self, timeout_s=None):
        """Wait until ApiVersions answers; raises if the process ends or the time is over."""
        end = time.monotonic() + (timeout_s or self.start_timeout_s)
        while not answers(self.port, host=self.host):
            if self.process.poll() is not None:
                self.fail("exited with status %s at start" % self.process.returncode)
            if time.monotonic() > end:
                self.fail("did not answer in %s s" % (timeout_s or self.start_timeout_s))
            time.sleep(0.02)
        return self

    def start(self):
        self.spawn()
        return self.wait_ready()

    def kill9(self):
        """SIGKILL, and wait until the process is gone. An earlier exit is an error."""
        if self.process.poll() is not None:
            self.fail("had exited with status %s" % self.process.returncode)
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def stop(self):
        """SIGTERM, and wait for a clean end."""
        if self.process is None:
            return
        if self.process.poll() is not None:
            self.fail("had exited with status %s" % self.process.returncode)
        self.process.send_signal(signal.SIGTERM)
        self.stop_after_signal()

    def stop_after_signal(self):
        """SIGTERM was sent already: wait for a clean end."""
        try:
            status = self.process.wait(self.stop_timeout_s)
        except subprocess.TimeoutExpired:
            self.fail("did not stop in %d s" % self.stop_timeout_s)
        if status not in self.clean_statuses():
            self.fail("stopped with status %s" % status)
        self.process = None
        self.check_log()

    def restart(self):
        """Stop if it runs (SIGTERM), then start on the same port and data."""
        self.stop()
        return self.start()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def close(self):
        """Stop whatever still runs and remove the temporary directory, unless something failed."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process = None
        if not self.failed:
            shutil.rmtree(self.own_dir, ignore_errors=True)

    # ---- failure
    def clean_statuses(self):
        return (0,)

    def log_tail(self, lines=25):
        try:
            with open(self.log_path, errors="replace") as log:
                return "".join(log.readlines()[-lines:])
        except OSError:
            return ""

    def check_log(self):
        with open(self.log_path, errors="replace") as log:
            for line in log:
                if SANITIZER.search(line):
                    self.fail("log: " + line.strip())

    def fail(self, why):
        self.failed = True
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process = None
        raise BrokerError("%s %s\n--- %s\n%s" % (self.name, why, self.log_path, self.log_tail()))

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.stop()
            else:
                self.failed = True
        finally:
            self.close()
        return False


def new_broker(**arguments):
    """A Broker, or a stock Kafka with the same interface when OTTLA_TEST_REFERENCE=kafka."""
    if REFERENCE:
        from kafka_peer import KafkaBroker
        return KafkaBroker(**arguments)
    return Broker(**arguments)
