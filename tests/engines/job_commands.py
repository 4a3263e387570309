"""An operator's session with ``retrykit jobs`` on an engine, as a transcript.

``python -m tests.engines.job_commands`` rewrites the transcripts of all engines; look
at the diff before a commit.
"""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.engines.engines import ENGINES

__all__ = ["replay", "transcript"]

_FOLDER = Path(__file__).with_name("transcripts")
_HOUR = 3600


def transcript(engine):
    """Return the file with the transcript of an engine."""
    return _FOLDER / f"{engine.name}.txt"


def replay(engine):
    """Run the commands on an engine that was started, and return the transcript."""
    engine.policy = "few"
    # While a message is replaced by the next one, `retry-at` may be too late.
    engine.hop = 600
    session = _Session(engine)
    _start_jobs(engine)
    session.run("list")
    session.run("dead --error ConnectionError")
    session.run("counts --max-overdue 1h")
    session.run("counts --status dead --max-dead 0")
    session.run("show refused")
    (engine.folder / "refused.json").write_text("{}")
    session.run("requeue --error ConnectionError")
    engine.wait_until_ended("refused")
    session.run("retry-at now refused later")
    engine.wait_until_ended("later")
    session.run("kill unwanted")
    session.run("show unwanted")
    return "\n".join(session.lines)


def _start_jobs(engine):
    """Start jobs one after another, so that they are listed in a known order."""
    engine.start_worker()
    for job in ("good-1", "good-2"):
        engine.submit(job)
        assert engine.wait_until_ended(job)["status"] == "succeeded"
    engine.submit("refused", fails=2)
    assert engine.wait_until_ended("refused")["status"] == "dead"
    # The ledger of Celery is written before the job is put into the dead-letter queue.
    engine.wait_until(lambda: engine.request("dead") == ["refused"], "dead job")
    for job in ("later", "unwanted"):
        engine.submit(job, fails=1, raises={"1": _HOUR})
        engine.wait_for_failures(1, job)


class _Session:
    """The commands that were run on an engine, and what they printed."""

    def __init__(self, engine):
        self.engine, self.lines = engine, []

    def run(self, line):
        """Run a command as in a pipe; times and durations are replaced."""
        done = subprocess.run(  # noqa: S603  a fixed command
            [sys.executable, "-m", "retrykit", "jobs", *shlex.split(line)],
            env=self.engine.command_environ(), capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip
        printed = _normalize(done.stdout + done.stderr).splitlines()
        ending = [f"[exit {done.returncode}]"] if done.returncode else []
        self.lines += [f"$ retrykit jobs {line}", *printed, *ending, ""]


def _normalize(text):
    """Replace times and durations, on whose lengths the widths of columns depend."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "<time>", text)
    number = r"\d+(?:\.\d+)? ?(?:us|ms|s|m|min|h|d)"
    text = re.sub(rf"\b(?:{number})+\b", "<duration>", text)
    return re.sub(r"(?<=\S) {2,}", "  ", text)


def _main():
    for kind in ENGINES:
        with tempfile.TemporaryDirectory() as folder, kind(Path(folder)) as engine:
            transcript(engine).write_text(replay(engine), "utf-8")


if __name__ == "__main__":
    _main()
