"""Many jobs on an engine whose workers are killed at random moments.

``python -m tests.engines.chaos --engine celery-redis --jobs 300 --kills 20 --seed 1``

The attempts record their begins and ends themselves; an engine is not asked what it
ran. A run takes at most ten minutes.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.engines.engines import ENGINES

__all__ = ["COLUMNS", "Outcome", "run"]

_TIMEOUT = 600
# Seconds between two kills.
_SHORTEST, _LONGEST = 0.5, 3.0
_MOST_FAILURES = 3
_DELAY = 1.0  # of the policy "patient"

COLUMNS = (
    "engine", "expected", "run", "cut", "again", "doubled", "lost", "not ended",
    "given up", "late p50 (s)", "late max (s)",
)  # fmt: skip
"""The columns of the table: see `Outcome`."""


class Outcome(NamedTuple):
    """What happened to the attempts of all jobs.

    Attributes:
        engine: The name of the engine.
        expected: How many attempts the jobs need.
        run: How many were begun.
        cut: How many of these did not end, since their worker was killed.
        again: How many were made again after they had ended, since their worker was
            killed before the engine had recorded that.
        doubled: How many were made again for no such reason.
        lost: How many of the expected ones did not end, except of jobs given up.
        unended: How many jobs did not end.
        given_up: How many jobs are dead, since their workers were killed too often
            during the same attempt.
        late_median: Median of the lateness of retries, in seconds.
        late_max: The longest one.
    """

    engine: str
    expected: int
    run: int
    cut: int
    again: int
    doubled: int
    lost: int
    unended: int
    given_up: int
    late_median: float
    late_max: float


def run(engine, jobs, kills, seed, workers=2):
    """Run jobs on an engine, kill workers meanwhile, and return the outcome.

    Args:
        engine: The engine, started.
        jobs: The number of jobs.
        kills: How often a worker is killed and started again.
        seed: The seed of everything that is random here.
        workers: The number of workers.
    """
    chance = random.Random(seed)  # noqa: S311  not a secret
    names = ["one", "two", "three"][:workers]
    alive = {name: engine.start_worker(name) for name in names}
    needed = {f"job-{index}": chance.randint(1, 1 + _MOST_FAILURES)
              for index in range(jobs)}  # fmt: skip
    for job, attempts in needed.items():
        slow = {str(each): chance.uniform(0, 0.5) for each in range(1, attempts + 1)}
        engine.submit(job, fails=attempts - 1, slow=slow)
    killed = []
    for _ in range(kills):
        time.sleep(chance.uniform(_SHORTEST, _LONGEST))
        name = chance.choice(names)
        killed.append((alive[name].process.pid, time.time()))
        alive[name].kill()
        alive[name] = engine.start_worker(name)
    return _judge(engine, needed, killed, _wait_until_ended(engine, needed))


def _wait_until_ended(engine, jobs):
    """Wait until the jobs have ended, and return the reports of those that did."""
    end, reports = time.monotonic() + _TIMEOUT, {}
    while len(reports) < len(jobs) and time.monotonic() < end:
        time.sleep(0.5)
        for job in jobs.keys() - reports:
            report = engine.request("status", job)
            if report["status"] in {"succeeded", "dead"}:
                reports[job] = report
    return reports


def _judge(engine, needed, killed, reports):
    begun, ends = Counter(), defaultdict(list)
    started = engine.started_attempts()
    for each in started:
        begun[each.key] += 1
    for each in engine.finished_attempts():
        ends[each.key].append(each)
    again = doubled = lost = 0
    given_up = {job for job, report in reports.items() if "killed" in report["reason"]}
    for job, attempts in needed.items():
        for attempt in range(1, attempts + 1):
            own = ends[f"{job}:{attempt}"]
            if not own and job not in given_up:
                lost += 1
                print(f"lost: {job}:{attempt}, {reports.get(job)}", file=sys.stderr)
            for end, later in pairwise(own):
                # A session's leader has the pid of the session.
                reason = any(
                    worker == end.worker and end.at <= at + 0.1 and at <= later.at
                    for worker, at in killed
                )
                again += reason
                doubled += not reason
                if not reason:
                    print(f"doubled: {end} and {later}", file=sys.stderr)
    late = _lateness(started, ends)
    return Outcome(
        engine=engine.name,
        expected=sum(needed.values()),
        run=len(started),
        cut=len(started) - sum(map(len, ends.values())),
        again=again,
        doubled=doubled,
        lost=lost,
        unended=len(needed) - len(reports),
        given_up=len(given_up),
        late_median=median(late) if late else 0.0,
        late_max=max(late, default=0.0),
    )


def _lateness(started, ends):
    """Return how late each retry began, in seconds."""
    first = {}
    for each in started:
        first.setdefault(each.key, each.at)
    late = []
    for key, at in first.items():
        job, _, attempt = key.rpartition(":")
        before = ends.get(f"{job}:{int(attempt) - 1}")
        if before:
            late.append(max(at - before[-1].at - _DELAY, 0.0))
    return late


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    known = {kind.name: kind for kind in ENGINES}
    parser.add_argument("--engine", action="append", choices=known, dest="engines")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"| --- |{' ---: |' * (len(COLUMNS) - 1)}")
    bad = False
    for name in args.engines or known:
        with (
            tempfile.TemporaryDirectory() as folder,
            known[name](Path(folder)) as engine,
        ):
            outcome = run(engine, args.jobs, args.kills, args.seed)
        cells = [f"{x:.1f}" if isinstance(x, float) else str(x) for x in outcome]
        print(f"| {' | '.join(cells)} |", flush=True)
        bad |= bool(outcome.lost or outcome.doubled or outcome.unended)
    return bad


if __name__ == "__main__":
    sys.exit(main())
