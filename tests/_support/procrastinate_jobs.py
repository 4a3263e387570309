"""Jobs on Procrastinate in this process, with tables in memory."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from procrastinate import App
from procrastinate.exceptions import UniqueViolation
from procrastinate.testing import InMemoryConnector

from retrykit import Policy, schedules as s
from retrykit.durable import Envelope, idempotency_key
from retrykit.integrations import procrastinate as durable
from retrykit.integrations.procrastinate import _store as store

__all__ = [
    "AT_ONCE",
    "EMPTY",
    "HOURLY",
    "HostsJob",
    "MemoryConnector",
    "kind",
    "make_job",
]
__all__ += ["prepared_app", "waiting_job"]

# The row of a job that was not attempted.
EMPTY = {"envelope": None, "result": None, "reason": None, "killed": 0, "begun": False}


class MemoryConnector(InMemoryConnector):
    """Executes the statements of the store on a dict.

    Attributes:
        stored: The row of retrykit's table for each job.
        before: Functions that are called once before a statement, by the statement;
            they do what another process does then.
        schemas: The schemas that were applied.
    """

    def __init__(self):
        super().__init__()
        self.stored = {}
        self.before = {}
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
            store.ALL: self.all,
            store.RESCHEDULE: self.reschedule,
            store.RELEASE: self.release,
            store.BEGIN: self.begin,
        }
        if query not in answers:
            return await super().execute_query_all_async(query, **arguments)
        self.before.pop(query, lambda: None)()
        return answers[query](**arguments)

    async def defer_jobs_all(self, jobs):
        taken = [self.started(job) for job in self.jobs.values()]
        for job in jobs:
            started = self.started({"args": job.args})
            if started is not None and started in taken:
                raise UniqueViolation(constraint_name=store.STARTED, queueing_lock=None)
        return await super().defer_jobs_all(jobs)

    def read(self, row_id):
        return [dict(self.stored[row_id])] if row_id in self.stored else []

    def write(self, row_id, before, left, **after):
        now = self.stored.get(row_id)
        if now is not None and now["envelope"] != before:
            return []
        json.loads(after["envelope"] or "null")
        self.stored[row_id] = EMPTY | after
        return [{"at": datetime.now(UTC) + timedelta(seconds=left)}]

    def find(self, job, task, row_id):
        def matches(row):
            started = self.started(row)
            if started is not None:
                return started[0] == job
            return (row["id"], row["task_name"]) == (row_id, task)

        return [self.row(row) for row in self.jobs.values() if matches(row)]

    def all(self, after, limit):
        newest = {self.named(row): row for row in self.jobs.values()}
        rows = [
            self.row(row)
            for row in sorted(newest.values(), key=lambda row: row["id"])
            if self.started(row) or row["id"] in self.stored
        ]
        return [row for row in rows if row["id"] > after][:limit]

    def reschedule(self, row_id, when, envelope, before):
        now = self.stored.get(row_id, EMPTY)
        if self.jobs[row_id]["status"] != "todo" or now["envelope"] != before:
            return []
        self.jobs[row_id]["scheduled_at"] = when
        self.stored[row_id] = now | {"envelope": envelope}
        return [{"row_id": row_id}]

    def release(self, row_id, worker, killed):
        row = self.jobs[row_id]
        if (row["status"], row["worker_id"]) != ("doing", worker):
            return []
        row["status"] = "failed" if row["abort_requested"] else "todo"
        row["scheduled_at"] = datetime.now(UTC)
        stored = self.stored.get(row_id, EMPTY)
        if stored["begun"] or not stored["killed"]:
            stored = stored | {"killed": stored["killed"] + killed}
        self.stored[row_id] = stored | {"begun": False}
        return [{"id": row_id}]

    def begin(self, row_id, begun):
        self.stored[row_id]["begun"] = begun
        return [{"row_id": row_id}]

    def row(self, row):
        stored = self.stored.get(row["id"], EMPTY)
        live = row["status"] in {"todo", "doing"}
        ends = [
            event["at"]
            for event in self.events[row["id"]]
            if event["type"] in {"succeeded", "failed"}
        ]
        return {
            "ended": None if live else max(ends, default=None),
            "id": row["id"],
            "status": row["status"],
            "task": row["task_name"],
            "args": json.dumps(row["args"]),
            "queue": row["queue_name"],
            "priority": row["priority"],
        } | {name: stored[name] for name in ("envelope", "result", "reason")}

    def named(self, row):
        started = self.started(row)
        return started[0] if started else f"{row['task_name']}@{row['id']}"

    def started(self, row):
        """Return id and run of a job, as in the index of started jobs."""
        arguments = row["args"].get("retrykit")
        if not isinstance(arguments, dict):
            return None
        return arguments["envelope"]["job"], arguments["envelope"]["run"]


AT_ONCE = Policy(schedule=[0, 0], on=OSError, name="hosts")
HOURLY = Policy(schedule=s.constant("1h").jitter(0.5), max_attempts=9,
                on=OSError, name="hosts")  # fmt: skip


class HostsJob:
    """A job whose function is sync or async, and the calls of the function."""

    def __init__(self, policy, kind, fails=2, max_killed=3, **errors):
        self.app = prepared_app()
        self.connector = self.app.connector
        self.keys, self.fails, self.errors = [], fails, errors
        self.value = {"verified": True}
        function = self.averify if kind == "async" else self.verify
        known = {"name": "verify", "previous_names": ["once"]}
        decorate = durable.task(self.app, policy, max_killed=max_killed, **known)
        self.task = decorate(function)

    def verify(self, *hosts, port=443):
        self.keys.append(idempotency_key())
        if len(self.keys) <= self.fails:
            raise self.errors.get("error", ConnectionError(f"{hosts}:{port} refused"))
        return self.value

    async def averify(self, *hosts, port=443):
        return self.verify(*hosts, port=port)

    def work(self):
        """Run a worker until no job is due."""
        self.app.run_worker(
            wait=False, install_signal_handlers=False, listen_notify=False
        )

    def row(self, row_id=1):
        return self.connector.jobs[row_id]

    def wake(self, row_id=1):
        """Run a job now, even if its envelope is not due."""
        self.row(row_id).update(status="todo", scheduled_at=None)
        self.work()

    def stall(self, row_id=1, worker=77, *, begun=True):
        """Leave a job like a worker that was killed, by default in its attempt."""
        self.row(row_id).update(status="doing", worker_id=worker)
        stored = self.connector.stored.get(row_id, EMPTY)
        if stored["killed"]:
            self.connector.stored[row_id] = stored | {"begun": begun}

    def envelope(self, row_id=1):
        return Envelope.from_dict(self.connector.stored[row_id]["envelope"])

    def status(self, job="host"):
        return durable.status(self.app, job)


def prepared_app(**options):
    """Return a prepared application, which hardly ever rescues jobs by itself."""
    app = App(connector=MemoryConnector())
    durable.prepare(app, cron="0 0 29 2 *", **options)
    return app


@pytest.fixture(params=["sync", "async"])
def kind(request):
    return request.param


@pytest.fixture
def make_job(kind):
    return lambda policy=AT_ONCE, **options: HostsJob(policy, kind, **options)


@pytest.fixture
def waiting_job(make_job):
    """A job that has failed once and waits for an hour."""
    job = make_job(HOURLY)
    job.task.start_as("host", "example.com")
    job.work()
    return job
