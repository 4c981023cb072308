"""What the benchmarks do with figures: pair them, print ratios with their spread, keep a history.

A figure of a noisy machine means nothing alone. Each pair is one run of either broker, one right
after the other; the ratio Ottla / Kafka is taken inside the pair, and median, smallest and largest
ratio over the pairs are what is reported.
"""
import csv
import datetime
import os
import platform
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
HISTORY = os.path.join(HERE, "history.csv")
COLUMNS = ["date", "commit", "machine", "settings", "scenario", "metric", "pairs", "ottla", "kafka",
           "ratio_median", "ratio_min", "ratio_max"]

# What Ottla sets out to reach: (scenario, metric) -> ("ratio" or "value", at most).
TARGETS = {
    ("start", "first_metadata_ms"): ("value", 30),
    ("start", "idle_memory_mb"): ("value", 12),
    ("one-1", "produce_cpu_s_per_million"): ("ratio", 0.2),
    ("big-1", "produce_cpu_s_per_gb"): ("ratio", 0.7),
    ("big-1", "consume_cpu_s_per_gb"): ("ratio", 1.0),
    ("partitions-10000", "create_to_usable_s"): ("ratio", 0.05),
    ("partitions-10000", "memory_mb"): ("ratio", 0.05),
    ("partitions-10000", "ready_after_kill_s"): ("ratio", 0.05),
    ("cluster-produce", "mean_ms"): ("ratio", 1.0),
    ("cluster-produce", "p99_ms"): ("ratio", 0.5),
    ("cluster-produce-synced", "mean_ms"): ("ratio", 1.0),
    ("cluster-produce-synced", "p99_ms"): ("ratio", 0.5),
    ("cluster-cpu-big", "rf3_to_rf1"): ("value", 2.5),
    ("cluster-cpu-16k", "rf3_to_rf1"): ("value", 2.5),
    ("cluster-slow-follower", "slow_to_healthy_p99"): ("value", 1.2),
    ("cluster-slow-metadata", "slow_to_healthy_p99"): ("value", 1.2),
}


def git(*words):
    done = subprocess.run(("git", "-C", HERE) + words, capture_output=True, text=True)
    return done.stdout.strip()


def commit():
    """The commit measured; a plus sign where the tree had changes outside the history file."""
    dirty = git("status", "--porcelain", "--untracked-files=no", ":/", ":!" + HISTORY)
    return git("rev-parse", "--short=10", "HEAD") + ("+" if dirty else "")


def machine():
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return "%s %d cores %d GiB Linux %s" % (platform.machine(), os.cpu_count(),
                                            round(pages / 2**30), platform.release())


class Pairs:
    """The figures of one scenario: add(broker, {metric: value}) after each run."""

    def __init__(self, scenario):
        self.scenario, self.runs = scenario, {"ottla": [], "kafka": []}

    def add(self, broker, figures):
        self.runs[broker].append(figures)

    def rows(self):
        """One dict per metric, for every pair that both brokers finished."""
        rows = []
        both = list(zip(self.runs["ottla"], self.runs["kafka"]))
        for metric in both[0][0] if both else ():
            values = [(o[metric], k[metric]) for o, k in both if metric in k]
            ratios = [o / k for o, k in values if k] or [float("nan")]
            rows.append({
                "scenario": self.scenario, "metric": metric, "pairs": len(values),
                "ottla": statistics.median(o for o, _ in values),
                "kafka": statistics.median(k for _, k in values),
                "ottla_min": min(o for o, _ in values), "ottla_max": max(o for o, _ in values),
                "ratio_median": statistics.median(ratios),
                "ratio_min": min(ratios), "ratio_max": max(ratios)})
        return rows


def figure(value):
    return "%.4g" % value if abs(value) < 1e5 else "%.0f" % value


def verdict(row):
    """'reached', 'missed' or '' where no target is set."""
    kind, limit = TARGETS.get((row["scenario"], row["metric"]), (None, None))
    if kind is None:
        return ""
    value = row["ratio_median"] if kind == "ratio" else row["ottla"]
    spread = "" if kind == "ratio" else "; ottla %s..%s" % (
        figure(row["ottla_min"]), figure(row["ottla_max"]))
    return "%s (target %s%g%s)" % ("reached" if value <= limit else "missed",
                                   "x" if kind == "ratio" else "", limit, spread)


def print_rows(rows):
    form = "%-22s %-28s %10s %10s   %7s [%s..%s] %s"
    print(form % ("scenario", "metric", "ottla", "kafka", "ratio", "min", "max", ""))
    for row in rows:
        print(form % (row["scenario"], row["metric"], figure(row["ottla"]), figure(row["kafka"]),
                      figure(row["ratio_median"]), figure(row["ratio_min"]),
                      figure(row["ratio_max"]), verdict(row)))


def append_history(rows, options, path=HISTORY):
    """Adds rows to the history, with Ottla's further settings; a new file gets its heading."""
    stamp = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
             "commit": options.commit or commit(), "machine": machine(),
             "settings": " ".join(options.override)}
    new = not os.path.exists(path)
    with open(path, "a", newline="") as f:
        writer = csv.DictWriter(f, COLUMNS, lineterminator="\n", extrasaction="ignore")
        if new:
            writer.writeheader()
        for row in rows:
            shown = {k: figure(v) if isinstance(v, float) else v for k, v in row.items()}
            writer.writerow({**stamp, **shown})
