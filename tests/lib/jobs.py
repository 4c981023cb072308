"""Runs test programs as processes, several at once, and reports each as one result row.

A program passes with exit status 0; 77 is a skip whose reason is the last line it printed; anything
else, or running over its time, is a failure whose note is the last line. Its output is kept in
OTTLA_LOG_DIR. Programs run in a process group of their own, which is killed as a whole when the
time is over, so that no client is left behind.
"""
import os
import re
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from leash import on_leash
from results import add_row

SKIP_STATUS = 77


@dataclass
class Job:
    """test: the row's name. argv: the command. env: added to the environment."""
    test: str
    argv: list
    timeout_s: float = 60
    env: dict = field(default_factory=dict)
    cwd: str = None


def log_path(layer, test):
    folder = os.environ.get("OTTLA_LOG_DIR") or tempfile.gettempdir()
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, "%s-%s.log" % (layer, re.sub(r"[^\w.-]+", "_", test)))


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def execute(job, path):
    """(status or None when the time was over, last line of the output)"""
    with open(path, "wb") as log:
        process = subprocess.Popen(job.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   env={**os.environ, **job.env}, cwd=job.cwd,
                                   start_new_session=True, preexec_fn=on_leash())
        try:
            status = process.wait(job.timeout_s)
        except subprocess.TimeoutExpired:
            status = None
        kill_group(process)
        process.wait()
    with open(path, errors="replace") as log:
        lines = [line.strip() for line in log if line.strip()]
    return status, lines[-1] if lines else ""


def run_job(layer, job):
    """Run one job and report it. True unless it failed."""
    path = log_path(layer, job.test)
    start = time.monotonic()
    status, last = execute(job, path)
    seconds = time.monotonic() - start
    if status == 0:
        add_row(layer, job.test, "PASS", seconds)
    elif status == SKIP_STATUS:
        add_row(layer, job.test, "SKIP", seconds, last or "no reason printed")
    else:
        why = "over %g s" % job.timeout_s if status is None else "status %d" % status
        add_row(layer, job.test, "FAIL", seconds, "%s: %s (%s)" % (why, last, path))
    return status in (0, SKIP_STATUS)


def run_jobs(layer, jobs, parallel=2):
    """Run all jobs, `parallel` at a time; returns how many failed."""
    with ThreadPoolExecutor(parallel) as pool:
        return sum(not good for good in pool.map(lambda job: run_job(layer, job), jobs))
