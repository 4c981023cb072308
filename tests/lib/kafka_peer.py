"""Apache Kafka from its Maven artifacts: its Java tools, and a stock broker as the reference.

jars() resolves the artifacts of kafka-pom.xml into the cache once and returns their directory;
tool_command() is the command line of one of Kafka's tools. KafkaBroker has Broker's interface, so
that any test can run against the reference: a single KRaft node on loopback with the settings of
the stock server.properties.

Failure modes: without Java or Maven, jars() raises FileNotFoundError or CalledProcessError.
"""
import fcntl
import os
import shutil
import subprocess

import ottla

VERSION = "4.4.0"
HERE = os.path.dirname(os.path.abspath(__file__))

# A node's directory id: any fixed uuid will do for a quorum of one.
DIRECTORY_ID = "reference-node-dir-01A"
STOCK = """process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""
LOG4J = """appender.c.type = Console
appender.c.name = C
appender.c.target = {target}
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = {level}
rootLogger.appenderRef.c.ref = C
"""


def cache_dir():
    return os.environ.get("OTTLA_CACHE") or os.path.expanduser("~/.cache/ottla-test")


def jars():
    """The directory of Kafka's jars, filled at the first call."""
    folder = os.path.join(cache_dir(), "kafka-" + VERSION)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, "complete")):
            build = os.path.join(folder, "maven")
            shutil.rmtree(os.path.join(folder, "lib"), ignore_errors=True)
            os.makedirs(build, exist_ok=True)
            shutil.copy(os.path.join(HERE, "kafka-pom.xml"), os.path.join(build, "pom.xml"))
            subprocess.run(["mvn", "-q", "-B", "-f", os.path.join(build, "pom.xml"),
                            "dependency:copy-dependencies", "-DincludeScope=runtime",
                            "-DoutputDirectory=" + os.path.join(folder, "lib")], check=True)
            for name, level, target in (("broker", "INFO", "SYSTEM_OUT"),
                                        ("tool", "WARN", "SYSTEM_ERR")):
                with open(os.path.join(folder, "log4j2-%s.properties" % name), "w") as out:
                    out.write(LOG4J.format(level=level, target=target))
            open(os.path.join(folder, "complete"), "w").close()
    return folder


def java_command(main_class, *args, heap="256m", log="tool", classpath=()):
    folder = jars()
    paths = [*classpath, os.path.join(folder, "lib", "*")]
    return ["java", "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-Dlog4j2.configurationFile=%s/log4j2-%s.properties" % (folder, log),
            "-cp", ":".join(paths), main_class, *args]


def tool_command(name, *args):
    """Kafka's tool by class name; a bare name means org.apache.kafka.tools.NAME."""
    return java_command(name if "." in name else "org.apache.kafka.tools." + name, *args)


class KafkaBroker(ottla.Broker):
    """A stock Kafka with Broker's interface; overrides are lines of its server.properties."""

    kind = "kafka"
    start_timeout_s = 90
    stop_timeout_s = 60

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.controller_port = ottla.free_port()
        self.config = os.path.join(self.own_dir, "server.properties")

    def clean_statuses(self):
        return (0, 143)  # a JVM ended by SIGTERM reports the signal

    def check_log(self):
        pass

    def command(self):
        with open(self.config, "w") as out:
            out.write(STOCK.format(port=self.port, controller=self.controller_port,
                                   data=self.data_dir))
            for key, value in self.overrides.items():
                if key == "listeners":  # Ottla needs no listener of its own for the controller
                    value += ",CONTROLLER://127.0.0.1:%d" % self.controller_port
                if key == "listener.security.protocol.map":
                    value += ",CONTROLLER:PLAINTEXT"
                out.write("%s=%s\n" % (key, value))
        if not os.path.exists(os.path.join(self.data_dir, "meta.properties")):
            self.format_storage()
        return java_command("kafka.Kafka", self.config, heap="1g", log="broker")

    def format_storage(self):
        voter = "1@127.0.0.1:%d:%s" % (self.controller_port, DIRECTORY_ID)
        done = subprocess.run(
            java_command("kafka.tools.StorageTool", "format", "-c", self.config, "-t",
                         "reference-kafka-node-0", "--initial-controllers", voter),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise ottla.BrokerError("format failed: " + done.stdout[-2000:])

    def wait_ready(self, timeout_s=None):
        """ApiVersions answers a little before the node is unfenced; wait for both."""
        super().wait_ready(timeout_s)
        import time
        end = time.monotonic() + self.start_timeout_s
        while True:
            with open(self.log_path, errors="replace") as log:
                starts = log.read().count("Kafka Server started")
            if starts > self.starts_seen:
                self.starts_seen = starts
                return self
            if time.monotonic() > end:
                self.fail("did not start")
            time.sleep(0.1)

    starts_seen = 0
