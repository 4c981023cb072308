"""A layer made of scripts: each executable file named on the command line is one job.

usage: scripts_layer.py LAYER FILE..
"""
import os
import sys

from jobs import Job, run_jobs


def main(layer, paths):
    lib = os.path.dirname(os.path.abspath(__file__))
    jobs = [Job(os.path.basename(path), [sys.executable, path], timeout_s=600,
                env={"PYTHONPATH": lib})
            for path in paths if os.access(path, os.X_OK)]
    run_jobs(layer, jobs, parallel=1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
