"""What the tests ask of an engine: workers that can be killed, jobs, reports.

Every engine has an application of its own, a module that is run as a command in
processes of their own: ``worker`` attempts jobs until it is killed, and ``serve``
answers each line of JSON with another one.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import ClassVar

import pytest

from tests.engines.job import FOLDER, POLICY

__all__ = ["WORKER", "Engine", "Run", "answer", "as_data"]

WORKER = "RETRYKIT_ENGINE_WORKER"
ROOT = Path(__file__).parents[2]


class Run:
    """One attempt that was begun, as the job itself noted it."""

    def __init__(self, line):
        at, worker, self.key = line.split()
        self.at, self.worker = float(at), int(worker)
        self.attempt = int(self.key.rpartition(":")[2])


class Worker:
    """A process that attempts jobs, with all that it starts."""

    def __init__(self, command, environ, log):
        self.log = log.open("a")
        self.process = subprocess.Popen(  # noqa: S603  the tests' own
            command, env=environ, cwd=ROOT, stdout=self.log, stderr=self.log,
            start_new_session=True,
        )  # fmt: skip

    def kill(self):
        """End it as a power cut would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()


class Asker:
    """A process that starts jobs and asks about them, for as long as a test runs."""

    def __init__(self, command, environ, log):
        self.environ = environ
        self.log = log.open("a")
        self.process = subprocess.Popen(  # noqa: S603  the tests' own
            command, env=environ, cwd=ROOT, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log,
        )  # fmt: skip

    def ask(self, command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        ready, *_ = select.select([self.process.stdout], [], [], 60)
        told = self.process.stdout.readline() if ready else ""
        assert told, f"{command}: {self.log.name} says why not"
        return json.loads(told)

    def kill(self):
        self.process.kill()
        # Which waits, and closes the pipes.
        self.process.communicate()
        self.log.close()


class Engine:
    """An engine with its servers, for one test.

    Attributes:
        name: What it is called in tables.
        granularity: By how much an attempt may come later than it is due, in
            seconds, on a machine that has other things to do, too.
        module: The application that is run.
        cannot: What it cannot do, each with the reason.
    """

    name = ""
    module = ""
    granularity = 2.0
    cannot: ClassVar = {}

    def __init__(self, folder):
        self.folder = folder
        self.table = []
        self.workers = []
        self.asker = None
        self.policy = "patient"

    def start(self):
        """Start the servers, if there are any."""

    def stop(self):
        """End the servers, by their own pids."""

    def restart(self):
        """End the servers, and start them again with what they kept."""
        pytest.skip(f"{self.name} has no server")

    def environ(self):
        """Settings of the application, for its processes."""
        return {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_error):
        self.hush()
        for worker in self.workers:
            worker.kill()
        self.stop()

    def work(self, name="one"):
        """Start a worker, and return it; one that is started again has its name."""
        log = self.folder / f"worker-{len(self.workers)}-{name}.log"
        environ = self._environ() | {WORKER: name}
        self.workers.append(Worker(self._command("worker"), environ, log))
        return self.workers[-1]

    def spoil(self, job, change):
        """Change what is kept of a job that waits: the text of its envelope."""
        pytest.skip(f"{self.name} has no way to change what it keeps")

    def submit(self, job, *, colour="sync", **plan):
        """Start a job that fails as its plan says."""
        (self.folder / f"{job}.json").write_text(json.dumps(plan))
        return self.ask("submit", job, job, colour)

    def ask(self, *command):
        """Return what the application answers to a command."""
        environ = self._environ()
        if self.asker is not None and self.asker.environ != environ:
            self.hush()
        if self.asker is None:
            log = self.folder / "asker.log"
            self.asker = Asker(self._command("serve"), environ, log)
        return self.asker.ask(command)

    def hush(self):
        """End the process that is asked; the next question starts another one."""
        if self.asker is not None:
            self.asker.kill()
            self.asker = None

    def runs(self, job=None):
        """The attempts that were begun, in their order."""
        return self._noted("runs", job)

    def ends(self, job=None):
        """The attempts that were made to their end."""
        return self._noted("ends", job)

    def until_run(self, attempt, job, timeout=120):
        """Wait until an attempt has begun, and return all of the job."""
        return self.until(
            lambda: any(run.attempt >= attempt for run in self.runs(job)),
            f"attempt {attempt} of {job}", timeout, job,
        )  # fmt: skip

    def until_ended(self, attempt, job, timeout=120):
        """Wait until an attempt was made to its end."""
        return self.until(
            lambda: any(run.attempt >= attempt for run in self.ends(job)),
            f"the end of attempt {attempt} of {job}", timeout, job,
        )  # fmt: skip

    def until_waiting(self, failed, job, timeout=120):
        """Wait until so many attempts have failed, and the engine knows it."""

        def waits():
            report = self.ask("status", job)
            return report["failed"] == failed and report["status"] == "waiting"

        self.until_ended(failed, job, timeout)
        return self.until(waits, f"{failed} failures of {job}", timeout, job)

    def until(self, holds, what, timeout=120, job=None):
        """Wait until something holds, and return the attempts of the job."""
        end = time.monotonic() + timeout
        while not holds():
            if time.monotonic() > end:
                pytest.fail(f"{self.name}: no {what}\n{self.told(job)}")
            time.sleep(0.05)
        return self.runs(job)

    def settled(self, job, timeout=120):
        """Wait until a job has ended, and return the report of it."""
        report = {}

        def ended():
            report.update(self.ask("status", job))
            return report["status"] in {"succeeded", "dead"}

        self.until(ended, f"end of {job}", timeout, job)
        return report

    def counted(self, job):
        """How often each attempt was begun: again only if it was made to no end."""
        counts = Counter(run.attempt for run in self.runs(job))
        made = Counter(run.attempt for run in self.ends(job))
        assert {*made.values()} == {1}, f"made to its end twice\n{self.told(job)}"
        told = "1 once" if len(counts) == 1 else f"1 to {max(counts)} once each"
        again = [attempt for attempt, times in counts.items() if times > 1]
        told += "".join(f", {each} again: killed in its middle" for each in again)
        self.table.append(told)
        return dict(sorted(counts.items()))

    def gaps(self, job):
        """The seconds between the end of each attempt and the start of the next."""
        begun, ended = self.runs(job), self.ends(job)
        return [b.at - a.at for a, b in zip(ended, begun[1:], strict=False)]

    def told(self, job=None):
        """The table of attempts, and what workers said, for a failed test."""
        lines = [f"{run.at:.2f} {run.worker} {run.key}" for run in self.runs(job)]
        for log in sorted(self.folder.glob("*.log")):
            lines += [f"-- {log.name}", *log.read_text().splitlines()[-40:]]
        return "\n".join(lines)

    def _noted(self, name, job):
        path = self.folder / name
        lines = path.read_text().splitlines() if path.exists() else []
        found = [Run(line) for line in lines]
        return [r for r in found if job is None or r.key.rpartition(":")[0] == job]

    def _command(self, *command):
        return [sys.executable, "-m", self.module, *command]

    def _environ(self):
        given = {FOLDER: str(self.folder), POLICY: self.policy, "PYTHONPATH": str(ROOT)}
        return os.environ | given | self.environ()


def answer(worker, **answers):
    """Do what an application was started for: to attempt jobs, or to be asked."""
    if sys.argv[1] == "worker":
        worker()
        return
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        sys.stdout.write(json.dumps(answers[command](*arguments)) + "\n")
        sys.stdout.flush()


def as_data(report):
    """A report as an application answers it."""
    failures = report.failures
    return {
        "status": report.status,
        "why": report.reason,
        "due": report.due and report.due.timestamp(),
        "result": report.result,
        "failed": report.envelope and report.envelope.failed,
        "counts": report.envelope and dict(report.envelope.counts),
        "policy": report.envelope and report.envelope.policy,
        "delays": [failure.delay for failure in failures],
        "errors": [failure.describe() for failure in failures],
    }
