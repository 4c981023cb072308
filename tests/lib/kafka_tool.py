"""Runs one of Kafka's Java tools in place of this process.

usage: kafka_tool.py CLASS ARGUMENT..    a bare class name means org.apache.kafka.tools.CLASS
"""
import os
import sys

import kafka_peer

command = kafka_peer.tool_command(*sys.argv[1:])
os.execvp(command[0], command)
