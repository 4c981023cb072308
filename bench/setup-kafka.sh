#!/usr/bin/env bash
# Runs a stock Apache Kafka (KRaft) on loopback from Maven artifacts: the peer of
# bench/compare and bench/joyqueue, which start it themselves. Needs Java 17 and Maven.
#
#   setup-kafka.sh install            resolve the jars (once; later calls are no-ops)
#   setup-kafka.sh start [1|3]        start one node, or a three-node cluster   (default 1)
#   setup-kafka.sh start-node 1|3 ID  start one node of a profile, e.g. after a kill -9
#   setup-kafka.sh stop  [1|3] [ID]   SIGTERM by pid file (all nodes, or node ID)
#   setup-kafka.sh kill  1|3 ID       SIGKILL one node
#   setup-kafka.sh wipe  [1|3]        stop and delete the data
#   setup-kafka.sh status             pid, port, RSS of every node
#   setup-kafka.sh tools              the Java tools' class names
#   setup-kafka.sh tool CLASS ARGS..  run one (also $KAFKA_PEER_DIR/kafka-tool CLASS ARGS..)
#
# Single node:  127.0.0.1:18092 (controller 28092).
# Cluster:      127.0.0.1:19092,19093,19094 (controllers 29092,29093,29094).
# Both may run at once.
set -euo pipefail

DIR=${KAFKA_PEER_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/kafka-peer}
VERSION=${KAFKA_VERSION:-4.4.0}
HEAP=${KAFKA_HEAP:-1g}                # Kafka's own default is -Xmx1G -Xms1G
PORT1=${KAFKA_PORT_SINGLE:-18092}     # controller port = broker port + 10000
PORT3=${KAFKA_PORT_CLUSTER:-19092}
EXTRA=${KAFKA_EXTRA:-}                # more server.properties, ';'-separated: 'a=1;b=2'
START_TIMEOUT=${KAFKA_START_TIMEOUT:-120}
LIB=$DIR/lib-$VERSION

die() { echo "setup-kafka: $*" >&2; exit 1; }

install_jars() {
  [ -e "$LIB/.done" ] && return 0
  command -v mvn >/dev/null || die "mvn not found"
  mkdir -p "$DIR/build"
  dep() { echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version></dependency>"; }
  cat > "$DIR/build/pom.xml" <<POM
<project><modelVersion>4.0.0</modelVersion>
<groupId>peer</groupId><artifactId>kafka-peer</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
$(dep org.apache.kafka kafka_2.13 "$VERSION")
$(dep org.apache.kafka kafka-tools "$VERSION")
$(dep org.apache.logging.log4j log4j-slf4j-impl "${LOG4J_VERSION:-2.25.5}")
</dependencies></project>
POM
  rm -rf "$LIB"
  mvn -q -B -Dstyle.color=never -f "$DIR/build/pom.xml" dependency:copy-dependencies \
      -DincludeScope=runtime -DoutputDirectory="$LIB" || die "maven could not resolve Kafka $VERSION"
  for w in broker:INFO:SYSTEM_OUT tool:WARN:SYSTEM_ERR; do IFS=: read -r n level to <<<"$w"
    cat > "$DIR/log4j2-$n.properties" <<LOG
appender.c.type = Console
appender.c.name = C
appender.c.target = $to
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = $level
rootLogger.appenderRef.c.ref = C
LOG
  done
  cat > "$DIR/kafka-tool" <<'TOOL'
#!/bin/sh
# kafka-tool CLASS ARGS..; a bare class name means org.apache.kafka.tools.CLASS
d=$(cd "$(dirname "$0")" && pwd); c=$1; shift
case $c in *.*) ;; *) c=org.apache.kafka.tools.$c ;; esac
TOOL
  echo "exec java \${KAFKA_TOOL_OPTS:--Xmx512m} -XX:TieredStopAtLevel=\${KAFKA_TOOL_JIT:-4} -Dlog4j2.configurationFile=\"\$d/log4j2-tool.properties\" -cp \"\$d/lib-\${KAFKA_VERSION:-$VERSION}/*\" \$c \"\$@\"" >> "$DIR/kafka-tool"
  chmod +x "$DIR/kafka-tool"
  touch "$LIB/.done"
}

# profile 1 or 3 -> base port, node directory
base()  { [ "$1" = 1 ] && echo "$PORT1" || echo "$PORT3"; }
ndir()  { echo "$DIR/run-$1/node$2"; }
dirid() { printf 'peer-node-dir-%07dA' "$1"; }     # a fixed 22-character Kafka uuid
# by command line rather than kill -0: a zombie and a reused pid both count as dead
alive() { [ -s "$1/pid" ] && grep -aqF "$1/server.properties" "/proc/$(cat "$1/pid")/cmdline" 2>/dev/null; }

configure() { # PROFILE ID
  local n=$1 i=$2 d b k q= v=; d=$(ndir "$n" "$i"); b=$(base "$n"); mkdir -p "$d"
  for k in $(seq 1 "$n"); do
    q+=,127.0.0.1:$((b + 10000 + k - 1))
    v+=,$k@127.0.0.1:$((b + 10000 + k - 1)):$(dirid "$k")
  done
  cat > "$d/server.properties" <<PROPS
process.roles=broker,controller
node.id=$i
controller.quorum.bootstrap.servers=${q#,}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$((b + i - 1)),CONTROLLER://127.0.0.1:$((b + 10000 + i - 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$((b + i - 1)),CONTROLLER://127.0.0.1:$((b + 10000 + i - 1))
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=$d/data
# as in the stock config/server.properties
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.segment.bytes=1073741824
log.retention.hours=168
# replicated internal topics where there are nodes for it; no wait at a group's first join
default.replication.factor=$n
min.insync.replicas=$(( (n + 1) / 2 ))
offsets.topic.replication.factor=$n
transaction.state.log.replication.factor=$n
transaction.state.log.min.isr=$(( (n + 1) / 2 ))
share.coordinator.state.topic.replication.factor=$n
share.coordinator.state.topic.min.isr=$(( (n + 1) / 2 ))
group.initial.rebalance.delay.ms=0
$(tr ';' '\n' <<<"$EXTRA")
PROPS
  [ -e "$d/data/meta.properties" ] && return 0
  java -Xmx256m -Dlog4j2.configurationFile="$DIR/log4j2-tool.properties" -cp "$LIB/*" kafka.tools.StorageTool format \
    -c "$d/server.properties" -t peer-kafka-cluster--0A --initial-controllers "${v#,}" >"$d/format.log" 2>&1 ||
    { cat "$d/format.log" >&2; die "format failed"; }
}

launch() { # PROFILE ID; returns at once
  local d; d=$(ndir "$1" "$2")
  alive "$d" && return 0
  configure "$1" "$2"
  ulimit -n "$(ulimit -Hn)"
  # the JVM options of kafka-run-class.sh and kafka-server-start.sh
  setsid java -Xmx"$HEAP" -Xms"$HEAP" -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 \
    -XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent -Djava.awt.headless=true \
    -Xlog:gc*:file="$d/gc.log":time,tags:filecount=10,filesize=100M ${KAFKA_JVM_OPTS:-} \
    -Dlog4j2.configurationFile="$DIR/log4j2-broker.properties" \
    -cp "$LIB/*" kafka.Kafka "$d/server.properties" >"$d/server.log" 2>&1 </dev/null &
  echo $! > "$d/pid"
  for _ in 1 2 3 4 5 6 7 8 9 10; do alive "$d" && break; sleep 0.05; done   # until the exec
}

await() { # PROFILE ID
  local d t; d=$(ndir "$1" "$2"); t=$((START_TIMEOUT * 20))
  until grep -q 'Kafka Server started' "$d/server.log" 2>/dev/null; do
    alive "$d" || { tail -20 "$d/server.log" >&2; die "node $2 exited; see $d/server.log"; }
    [ $((t--)) -gt 0 ] || die "node $2 not up in $START_TIMEOUT s; see $d/server.log"
    sleep 0.05
  done
}

stop_node() { # PROFILE ID SIGNAL
  local d; d=$(ndir "$1" "$2")
  if alive "$d"; then
    kill "-$3" "$(cat "$d/pid")"; while alive "$d"; do sleep 0.1; done
  fi
  rm -f "$d/pid"
}

cmd=${1:-}; [ $# -gt 0 ] && shift
profile=1
case $cmd in start|start-node|stop|kill|wipe)
  profile=${1:-1}; [ "$profile" = 1 ] || [ "$profile" = 3 ] || die "profile is 1 or 3" ;;
esac
case $cmd in
  install)    install_jars ;;
  start)      install_jars
              for i in $(seq 1 "$profile"); do launch "$profile" "$i"; done
              for i in $(seq 1 "$profile"); do await "$profile" "$i"; done
              seq -f "127.0.0.1:%.0f" -s, "$(base "$profile")" $(( $(base "$profile") + profile - 1 )) ;;
  start-node) install_jars; launch "$profile" "${2:?node id}"; await "$profile" "$2" ;;
  stop)       if [ -n "${2:-}" ]; then stop_node "$profile" "$2" TERM; else
              # signal every node first: a controller waits for its quorum to shut down
              for i in $(seq 1 "$profile"); do d=$(ndir "$profile" "$i"); alive "$d" && kill "$(cat "$d/pid")"; done || true
              for i in $(seq 1 "$profile"); do stop_node "$profile" "$i" TERM; done; fi ;;
  kill)       stop_node "$profile" "${2:?node id}" KILL ;;
  wipe)       for i in $(seq 1 "$profile"); do stop_node "$profile" "$i" KILL; done
              rm -rf "$DIR/run-$profile" ;;
  status)     for d in "$DIR"/run-*/node*; do [ -d "$d" ] || continue
                if alive "$d"; then p=$(cat "$d/pid")
                  echo "$d pid=$p $(grep -o 'PLAINTEXT://[^,]*' "$d/server.properties" | head -1) rss_kb=$(awk '/VmRSS/{print $2}' "/proc/$p/status")"
                else echo "$d down"; fi; done ;;
  tool)       install_jars; exec "$DIR/kafka-tool" "$@" ;;
  tools)      cat <<'LIST'
org.apache.kafka.tools.:  ProducerPerformance ConsumerPerformance EndToEndLatency
  TopicCommand ConfigCommand GetOffsetShell DumpLogSegments DeleteRecordsCommand LogDirsCommand
  BrokerApiVersionsCommand MetadataQuorumCommand FeatureCommand ClusterTool GroupsCommand
  LeaderElectionCommand TransactionsCommand VerifiableProducer VerifiableConsumer ConsoleProducer
  AclCommand (needs an authorizer: KAFKA_EXTRA='authorizer.class.name=..')
org.apache.kafka.tools.consumer.:       ConsoleConsumer ConsoleShareConsumer
org.apache.kafka.tools.consumer.group.: ConsumerGroupCommand ShareGroupCommand
org.apache.kafka.tools.reassign.:       ReassignPartitionsCommand
kafka.tools.StorageTool
present, not tried: ShareConsumerPerformance (starts) ReplicaVerificationTool (deprecated)
  TransactionalMessageCopier DelegationTokenCommand ClientMetricsCommand JmxTool streams.StreamsGroupCommand
LIST
              ;;
  *)          sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; [ -z "$cmd" ] || die "unknown command $cmd" ;;
esac
