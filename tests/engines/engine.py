"""Base class of the engines under test: starts workers and jobs, and reads reports.

Each engine has an application, a module that runs as a command in other processes:
``worker`` runs jobs until it is killed, and ``serve`` answers requests, lines of JSON.
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

__all__ = ["WORKER", "Engine", "StartedAttempt", "report_to_dict", "run_application"]

WORKER = "RETRYKIT_ENGINE_WORKER"
ROOT = Path(__file__).parents[2]


class StartedAttempt:
    """An attempt that was started, as the job has recorded it."""

    def __init__(self, line):
        at, worker, self.key = line.split()
        self.at, self.worker = float(at), int(worker)
        self.attempt = int(self.key.rpartition(":")[2])


class Worker:
    """A process that runs jobs, and its child processes."""

    def __init__(self, command, environ, log):
        self.log = log.open("a")
        self.process = subprocess.Popen(  # noqa: S603  a fixed command
            command, env=environ, cwd=ROOT, stdout=self.log, stderr=self.log,
            start_new_session=True,
        )  # fmt: skip

    def kill(self):
        """Kill it without warning."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()


class Client:
    """A process that starts jobs and reports on them."""

    def __init__(self, command, environ, log):
        self.environ = environ
        self.log = log.open("a")
        self.process = subprocess.Popen(  # noqa: S603  a fixed command
            command, env=environ, cwd=ROOT, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log,
        )  # fmt: skip

    def request(self, command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        ready, *_ = select.select([self.process.stdout], [], [], 60)
        reply = self.process.stdout.readline() if ready else ""
        assert reply, f"no answer to {command}; see {self.log.name}"
        return json.loads(reply)

    def kill(self):
        self.process.kill()
        # It waits, and closes the pipes.
        self.process.communicate()
        self.log.close()


class Engine:
    """An engine with its servers, for one test.

    Attributes:
        name: Its name in tables.
        granularity: How late an attempt may start on a busy machine, in seconds.
        module: The module of its application.
        app: The name in it of the app, or of the settings.
        unsupported: The kinds of functions that it cannot run, each with the reason.
    """

    name = ""
    module = app = ""
    granularity = 2.0
    unsupported: ClassVar = {}

    def __init__(self, folder):
        self.folder = folder
        self.table = []
        self.workers = []
        self.client = None
        self.policy = "patient"

    def start(self):
        """Start the servers, if there are any."""

    def stop(self):
        """Stop the servers."""

    def restart(self):
        """Restart the servers with the data that they have stored."""
        pytest.skip(f"{self.name} has no server")

    def environ(self):
        """Return environment variables for the application."""
        return {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_error):
        self.stop_client()
        for worker in self.workers:
            worker.kill()
        self.stop()

    def start_worker(self, name="one"):
        """Start or restart the worker of a name, and return it."""
        log = self.folder / f"worker-{len(self.workers)}-{name}.log"
        environ = self._environ() | {WORKER: name}
        self.workers.append(Worker(self._command("worker"), environ, log))
        return self.workers[-1]

    def command_environ(self):
        """Return the environment of ``retrykit jobs``, as in a pipe without colors."""
        environ = self._environ() | {"RETRYKIT_APP": f"{self.module}:{self.app}"}
        environ.pop("FORCE_COLOR", None)
        return environ

    def change_envelope(self, job, change):
        """Apply a function to the stored envelope of a waiting job, a string."""
        pytest.skip(f"{self.name} cannot change its stored envelopes")

    def submit(self, job, *, kind="sync", **plan):
        """Start a job that fails as planned; its function is "sync" or "async"."""
        (self.folder / f"{job}.json").write_text(json.dumps(plan))
        return self.request("submit", job, job, kind)

    def request(self, *command):
        """Return the application's answer to a command."""
        environ = self._environ()
        if self.client is not None and self.client.environ != environ:
            self.stop_client()
        if self.client is None:
            log = self.folder / "client.log"
            self.client = Client(self._command("serve"), environ, log)
        return self.client.request(command)

    def stop_client(self):
        """Stop the client process; the next request starts another one."""
        if self.client is not None:
            self.client.kill()
            self.client = None

    def started_attempts(self, job=None):
        """Return the attempts that were started, in their order."""
        return self._recorded("runs", job)

    def finished_attempts(self, job=None):
        """Return the attempts that were finished, in their order."""
        return self._recorded("ends", job)

    def wait_for_start(self, attempt, job, timeout=120):
        """Wait until an attempt has started; return those of the job."""
        return self.wait_until(
            lambda: any(run.attempt >= attempt for run in self.started_attempts(job)),
            f"attempt {attempt} of {job}", timeout, job,
        )  # fmt: skip

    def wait_for_finish(self, attempt, job, timeout=120):
        """Wait until an attempt has finished; return those that have started."""
        return self.wait_until(
            lambda: any(run.attempt >= attempt for run in self.finished_attempts(job)),
            f"the end of attempt {attempt} of {job}", timeout, job,
        )  # fmt: skip

    def wait_for_failures(self, failed, job, timeout=120):
        """Wait until so many attempts have failed and the next one is scheduled."""

        def waits():
            report = self.request("status", job)
            return report["failed"] == failed and report["status"] == "waiting"

        self.wait_for_finish(failed, job, timeout)
        return self.wait_until(waits, f"{failed} failures of {job}", timeout, job)

    def wait_until(self, condition, what, timeout=120, job=None):
        """Wait until a condition holds; return the started attempts of the job."""
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                pytest.fail(f"{self.name}: no {what}\n{self.describe(job)}")
            # Not more often: each question keeps the client and the server busy.
            time.sleep(0.2)
        return self.started_attempts(job)

    def wait_until_ended(self, job, timeout=120):
        """Wait until a job has ended, and return its report."""
        report = {}

        def ended():
            report.update(self.request("status", job))
            return report["status"] in {"succeeded", "dead"}

        self.wait_until(ended, f"end of {job}", timeout, job)
        return report

    def count_attempts(self, job):
        """Return how often each attempt was started; none may finish twice."""
        counts = Counter(run.attempt for run in self.started_attempts(job))
        finished = Counter(run.attempt for run in self.finished_attempts(job))
        assert {*finished.values()} == {1}, f"finished twice\n{self.describe(job)}"
        summary = "1 once" if len(counts) == 1 else f"1 to {max(counts)} once each"
        again = [attempt for attempt, times in counts.items() if times > 1]
        summary += "".join(f", {each} again: killed in its middle" for each in again)
        self.table.append(summary)
        return dict(sorted(counts.items()))

    def gaps(self, job):
        """Return the seconds between the end of each attempt and the next start."""
        started, finished = self.started_attempts(job), self.finished_attempts(job)
        return [b.at - a.at for a, b in zip(finished, started[1:], strict=False)]

    def describe(self, job=None):
        """Return the attempts and the logs, for the message of a failed test."""
        lines = [
            f"{run.at:.2f} {run.worker} {run.key}" for run in self.started_attempts(job)
        ]
        for log in sorted(self.folder.glob("*.log")):
            lines += [f"-- {log.name}", *log.read_text().splitlines()[-40:]]
        return "\n".join(lines)

    def _recorded(self, name, job):
        path = self.folder / name
        lines = path.read_text().splitlines() if path.exists() else []
        found = [StartedAttempt(line) for line in lines]
        return [r for r in found if job is None or r.key.rpartition(":")[0] == job]

    def _command(self, *command):
        return [sys.executable, "-m", self.module, *command]

    def _environ(self):
        given = {FOLDER: str(self.folder), POLICY: self.policy, "PYTHONPATH": str(ROOT)}
        return os.environ | given | self.environ()


def run_application(worker, **requests):
    """Run an application: as a worker, or to answer requests."""
    if sys.argv[1] == "worker":
        worker()
        return
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        sys.stdout.write(json.dumps(requests[command](*arguments)) + "\n")
        sys.stdout.flush()


def report_to_dict(report):
    """Return a report as plain data, the answer of an application."""
    failures = report.failures
    return {
        "status": report.status,
        "reason": report.reason,
        "due": report.due and report.due.timestamp(),
        "result": report.result,
        "failed": report.envelope and report.envelope.failed_attempts,
        "counts": report.envelope and dict(report.envelope.counts),
        "policy": report.envelope and report.envelope.policy,
        "delays": [failure.delay for failure in failures],
        "errors": [failure.describe() for failure in failures],
    }
