"""Jobs on Procrastinate in process: its tables and ours, without a database."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from procrastinate import App
from procrastinate.exceptions import UniqueViolation
from procrastinate.testing import InMemoryConnector

from retrykit import Policy, schedules as s
from retrykit.durable import Envelope, idempotency_key
from retrykit.integrations import procrastinate as durable
from retrykit.integrations.procrastinate import store

__all__ = ["AT_ONCE", "HOURLY", "Hosts", "Memory", "colour", "hosts", "prepared"]
__all__ += ["started"]


class Memory(InMemoryConnector):
    """What the statements of the store do, in a dict.

    Attributes:
        kept: What is kept at each place.
        meanwhile: What another process does just before a statement.
        schemas: What was applied.
    """

    def __init__(self):
        super().__init__()
        self.kept = {}
        self.meanwhile = {}
        self.schemas = []

    async def execute_query_async(self, query, **arguments):
        if query == store.schema():
            self.schemas.append(query)
        else:
            await super().execute_query_async(query, **arguments)

    async def execute_query_all_async(self, query, **arguments):
        answers = {
            store.READ: self.read,
            store.WRITE: self.write,
            store.FIND: self.find,
            store.DEAD: self.dead,
            store.MOVE: self.move,
            store.WAKE: self.wake,
        }
        if query not in answers:
            return await super().execute_query_all_async(query, **arguments)
        self.meanwhile.pop(query, lambda: None)()
        return answers[query](**arguments)

    async def defer_jobs_all(self, jobs):
        taken = [self.started(job) for job in self.jobs.values()]
        for job in jobs:
            started = self.started({"args": job.args})
            if started is not None and started in taken:
                raise UniqueViolation(constraint_name=store.STARTED, queueing_lock=None)
        return await super().defer_jobs_all(jobs)

    def read(self, place):
        return [dict(self.kept[place])] if place in self.kept else []

    def write(self, place, envelope, result, why, before, left):
        now = self.kept.get(place)
        if now is not None and now["envelope"] != before:
            return []
        json.loads(envelope or "null")
        self.kept[place] = {"envelope": envelope, "result": result, "why": why}
        return [{"at": datetime.now(UTC) + timedelta(seconds=left)}]

    def find(self, job, task, place):
        def asked(row):
            started = self.started(row)
            if started is not None:
                return started[0] == job
            return (row["id"], row["task_name"]) == (place, task)

        return [self.row(row) for row in self.jobs.values() if asked(row)]

    def dead(self, limit):
        newest = {self.named(row): row for row in self.jobs.values()}
        ended = {"failed", "cancelled", "aborted"}
        rows = [
            self.row(row)
            for row in reversed(newest.values())
            if row["status"] in ended and (self.started(row) or row["id"] in self.kept)
        ]
        return rows[:limit]

    def move(self, place, when, envelope, before):
        now = self.kept.get(place, {"envelope": None, "result": None, "why": None})
        if self.jobs[place]["status"] != "todo" or now["envelope"] != before:
            return []
        self.jobs[place]["scheduled_at"] = when
        self.kept[place] = now | {"envelope": envelope}
        return [{"place": place}]

    def wake(self, place, worker):
        row = self.jobs[place]
        if (row["status"], row["worker_id"]) != ("doing", worker):
            return []
        row["status"] = "failed" if row["abort_requested"] else "todo"
        row["scheduled_at"] = datetime.now(UTC)
        return [{"id": place}]

    def row(self, row):
        nothing = {"envelope": None, "result": None, "why": None}
        return {
            "id": row["id"],
            "status": row["status"],
            "task": row["task_name"],
            "args": json.dumps(row["args"]),
            "queue": row["queue_name"],
            "priority": row["priority"],
        } | self.kept.get(row["id"], nothing)

    def named(self, row):
        started = self.started(row)
        return started[0] if started else f"{row['task_name']}@{row['id']}"

    def started(self, row):
        """What the index holds of a job."""
        carried = row["args"].get("retrykit")
        if not isinstance(carried, dict):
            return None
        return carried["envelope"]["job"], carried["envelope"]["run"]


AT_ONCE = Policy(schedule=[0, 0], max_elapsed=None, on=OSError, name="hosts")
HOURLY = Policy(schedule=s.constant("1h").jitter(0.5), max_attempts=9,
                max_elapsed=None, on=OSError, name="hosts")  # fmt: skip


class Hosts:
    """A job of either colour, and all that was called."""

    def __init__(self, policy, colour, fails=2, **errors):
        self.app = prepared()
        self.connector = self.app.connector
        self.keys, self.fails, self.errors = [], fails, errors
        self.value = {"verified": True}
        function = self.averify if colour == "async" else self.verify
        known = {"name": "verify", "previous_names": ["once"]}
        self.task = durable.task(self.app, policy, **known)(function)

    def verify(self, *hosts, port=443):
        self.keys.append(idempotency_key())
        if len(self.keys) <= self.fails:
            raise self.errors.get("error", ConnectionError(f"{hosts}:{port} refused"))
        return self.value

    async def averify(self, *hosts, port=443):
        return self.verify(*hosts, port=port)

    def work(self):
        """Let a worker do what is due."""
        self.app.run_worker(
            wait=False, install_signal_handlers=False, listen_notify=False
        )

    def row(self, place=1):
        return self.connector.jobs[place]

    def wake(self, place=1):
        """Let a worker have a job now, whatever its envelope says."""
        self.row(place).update(status="todo", scheduled_at=None)
        self.work()

    def stall(self, place=1, worker=77):
        """Leave a job as a worker that was killed does."""
        self.row(place).update(status="doing", worker_id=worker)

    def envelope(self, place=1):
        return Envelope.from_dict(self.connector.kept[place]["envelope"])

    def status(self, job="host"):
        return durable.status(self.app, job)


def prepared(**options):
    """An application that is prepared, and hardly ever rescues by itself."""
    app = App(connector=Memory())
    durable.prepare(app, cron="0 0 29 2 *", **options)
    return app


@pytest.fixture(params=["sync", "async"])
def colour(request):
    return request.param


@pytest.fixture
def hosts(colour):
    return lambda policy=AT_ONCE, **how: Hosts(policy, colour, **how)


@pytest.fixture
def started(hosts):
    """A job that has failed once, and waits for an hour."""
    started = hosts(HOURLY)
    started.task.start_as("host", "example.com")
    started.work()
    return started
