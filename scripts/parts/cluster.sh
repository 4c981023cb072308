# Several brokers on this machine as one cluster, for scripts/run. Sourced, not run.
#
# What the nodes have to agree on (ports, cluster id) is made at the first start and kept in
# ./data/cluster, so that every later start is the same cluster; each broker's settings are in a file
# ./data/N.properties, with which it can be started by hand too.

# port_is_free PORT: whether nobody listens there on loopback.
port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# take_port VARIABLE STEP: moves the variable on by steps to a port that is free, and its neighbour.
take_port() {
  local -n at=$1
  until port_is_free "$at" && port_is_free "$((at + 1))"; do at=$((at + $2)); done
}

# write_plan NODES PORT FILE: a line "cluster ID", and one "node PORT CONTROLLER_PORT" for each.
write_plan() {
  local nodes=$1 next=$2 file=$3 node
  {
    echo "cluster $(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=')"
    for ((node = 1; node <= nodes; node++)); do
      take_port next 2
      echo "$node $next $((next + 1))"
      next=$((next + 2))
    done
  } >"$file.new"
  mv "$file.new" "$file"
}

# write_properties NODE PORT CONTROLLER_PORT ID VOTERS: the broker's settings, unless they are there.
write_properties() {
  [ -e "data/$1.properties" ] || cat >"data/$1.properties" <<END
node.id=$1
cluster.id=$4
controller.quorum.voters=$5
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$3
log.dirs=$PWD/data/$1
default.replication.factor=3
min.insync.replicas=2
END
}

# stop_all PID..: a clean end of all of them, each after the other so that leaders are handed over.
stop_all() {
  trap '' INT TERM
  echo >&2
  say "stopping"
  local pid
  for pid in "$@"; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}

# run_cluster NODES PORT [SERVER ARGUMENTS..]: starts them, waits, stops all on Ctrl-C.
run_cluster() {
  local nodes=$1 plan=data/cluster id voters="" bootstrap="" node port controller pids=()
  mkdir -p data
  [ ! -e data/meta.properties ] || die "$PWD/data holds a broker that stands alone"
  [ -e "$plan" ] || write_plan "$nodes" "$2" "$plan"
  shift 2
  [ "$(grep -vc '^cluster' "$plan")" = "$nodes" ] ||
    die "$PWD/data holds a cluster of another size"
  id=$(sed -n 's/^cluster //p' "$plan")
  while read -r node port controller; do
    voters+=${voters:+,}$node@127.0.0.1:$controller
    bootstrap+=${bootstrap:+,}127.0.0.1:$port
  done < <(grep -v '^cluster' "$plan")
  while read -r node port controller; do
    mkdir -p "data/$node"
    write_properties "$node" "$port" "$controller" "$id" "$voters"
    setsid "$BUILD/ottla" server "$PWD/data/$node.properties" "$@" >>"data/$node/ottla.log" 2>&1 &
    pids+=($!)
  done < <(grep -v '^cluster' "$plan")
  trap 'stop_all "${pids[@]}"; exit 0' INT TERM
  cat >&2 <<HELP

$nodes brokers make cluster $id; data and logs in $PWD/data/1 to $nodes; Ctrl-C stops them.
Any Kafka client or tool works with --bootstrap-server $bootstrap
For example, from another shell:
  echo hello | kcat -P -b $bootstrap -t greetings
  kcat -C -b $bootstrap -t greetings -o beginning -e
docs/operations.md tells how to see the cluster's state, grow and shrink it.

HELP
  local pid
  for pid in "${pids[@]}"; do
    wait "$pid" || say "a broker has ended: see the ends of $PWD/data/*/ottla.log"
  done
}
