#!/usr/bin/env python3
"""What clients notice when a leader dies or is stopped."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import NONE  # noqa: E402
from cluster import Cluster  # noqa: E402


def test_who_asks_at_once_is_told_the_new_leader():
    """librdkafka asks once when a connection breaks and then not again for up to a second."""
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3)
        for _ in range(4):
            leader = cluster.wait_leader("t")
            asked = [cluster.connect(node) for node in cluster if node != leader]
            cluster.kill(leader)
            for client in asked:
                part = client.call("Metadata", 12, topics=[{"name": "t"}],
                                   allowAutoTopicCreation=False)["topics"][0]["partitions"][0]
                assert part["errorCode"] == NONE and part["leaderId"] != leader, part
                client.close()
            cluster.start(leader)
            cluster.wait_brokers(3)


if __name__ == "__main__":
    cases.main("cluster", globals())
