"""The statements of the store on PostgreSQL, of which the fast tests have a copy."""

import asyncio
import logging
import threading
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

from retrykit import ConfigError, GiveUp, Policy, schedules as s
from retrykit.integrations import procrastinate as durable
from retrykit.integrations.procrastinate.store import MOVE, WAKE
from tests._support.postgres_server import PostgresServer

pytestmark = pytest.mark.engines

HOURLY = Policy(schedule=s.constant("1h"), max_attempts=9, max_elapsed=None, on=OSError)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = PostgresServer(tmp_path_factory.mktemp("sql"))
    server.start()
    with App(connector=PsycopgConnector(conninfo=server.url)).open() as app:
        app.schema_manager.apply_schema()
        durable.apply_schema(app)
    yield server
    server.stop()


class Jobs:
    """An application, and what its job is told to do."""

    def __init__(self, url):
        # Where a year ends first.
        self.url = url = f"{url}?options=-ctimezone%3DPacific/Kiritimati"
        self.app = App(connector=PsycopgConnector(conninfo=url))
        self.blocking = App(connector=SyncPsycopgConnector(conninfo=url))
        self.calls, self.error, self.meanwhile = 0, OSError("refused"), int
        for app in (self.app, self.blocking):
            durable.prepare(app, cron="0 0 29 2 *")
        self.task = durable.task(self.app, HOURLY, name="verify")(self.verify)
        # Where the first is open in a worker, who asks from outside blocks.
        self.other = durable.task(self.blocking, HOURLY, name="verify")(self.verify)

    def verify(self):
        self.calls += 1
        self.meanwhile()
        if self.error:
            raise self.error

    def work(self):
        self.app.run_worker(wait=False, install_signal_handlers=False)

    @property
    def place(self):
        [[place]] = self.sql("SELECT id FROM procrastinate_jobs")
        return place

    def sql(self, query, *values):
        with psycopg.connect(self.url) as database:
            asked = database.execute(query, values)
            return asked.fetchall() if asked.description else None


@pytest.fixture
def jobs(server):
    jobs = Jobs(server.url)
    with jobs.app.open(), jobs.blocking.open():
        yield jobs
    jobs.sql("TRUNCATE procrastinate_jobs, procrastinate_workers CASCADE")


def test_many_that_start_an_id_at_the_same_time_start_one_job(jobs):
    start = threading.Barrier(8)

    def begin():
        start.wait()
        jobs.other.start_as("host")

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert jobs.sql("SELECT count(*) FROM procrastinate_jobs") == [(1,)]


def test_an_error_may_say_what_jsonb_cannot_hold(jobs, caplog):
    # What is no UTF-8 cannot be reported to who runs the tests side by side.
    caplog.set_level(logging.CRITICAL, "procrastinate")
    jobs.error = GiveUp(OSError("\x00 \ud800 'quoted' %s {} \\"))
    jobs.other.start_as("host")
    jobs.work()
    [report] = durable.dead(jobs.blocking)
    kept = r"OSError: \x00 \ud800 'quoted' %s {}" + " \\"
    assert report.failures[0].describe() == kept
    assert report.reason.endswith(kept)


def test_a_job_may_wait_beyond_the_last_year(jobs):
    endless = Policy(schedule=[1e15], max_elapsed=None, on=OSError)
    task = durable.task(jobs.app, endless, name="endless")(fail)
    with jobs.app.open():
        task.start_as("host")
    jobs.work()
    assert jobs.sql("SELECT scheduled_at > now() + interval '7000 years'"
                    " FROM procrastinate_jobs") == [(True,)]  # fmt: skip


def fail():
    raise OSError


def test_an_attempt_is_moved_in_both_tables(jobs):
    jobs.other.start_as("host")
    later = datetime.now(UTC) + timedelta(days=9)
    durable.retry_at(jobs.blocking, "host", later)
    jobs.work()
    assert jobs.calls == 0
    durable.retry_at(jobs.blocking, "host", datetime.now(UTC))
    jobs.work()
    assert jobs.calls == 1
    durable.retry_at(jobs.blocking, "host", later)
    assert durable.status(jobs.blocking, "host").due == later
    [[at]] = jobs.sql("SELECT scheduled_at FROM procrastinate_jobs")
    assert at == later
    jobs.sql("UPDATE procrastinate_jobs SET status = 'doing'")
    with pytest.raises(ConfigError, match="it is running"):
        durable.retry_at(jobs.blocking, "host", later)


@pytest.mark.parametrize(("status", "before"), [("doing", None), ("todo", "{}")])
def test_an_attempt_is_not_moved_that_has_been_made_meanwhile(jobs, status, before):
    jobs.other.start_as("host")
    jobs.sql("UPDATE procrastinate_jobs SET status = %s", status)
    told = {"place": jobs.place, "when": datetime.now(UTC), "envelope": "{}"}
    moved = jobs.blocking.connector.execute_query_all(MOVE, before=before, **told)
    assert moved == jobs.sql("SELECT place FROM retrykit_jobs") == []
    assert jobs.sql("SELECT scheduled_at FROM procrastinate_jobs") == [(None,)]


def test_a_job_is_not_rescued_that_another_worker_has_by_now(jobs):
    jobs.other.start_as("host")
    worker = "INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id"
    [[died]], [[lives]] = jobs.sql(worker), jobs.sql(worker)
    jobs.sql("UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s", lives)
    wake = jobs.blocking.connector.execute_query_all
    assert wake(WAKE, place=jobs.place, worker=died) == []
    assert wake(WAKE, place=jobs.place, worker=None) == []
    assert wake(WAKE, place=jobs.place, worker=lives) == [{"id": jobs.place}]


def test_a_dead_job_is_begun_anew_once_and_listed_until_then(jobs):
    jobs.error = GiveUp(OSError())
    jobs.other.start_as("host")
    with jobs.app.open():
        jobs.task.task.defer()
    jobs.work()
    names = [each.job for each in durable.dead(jobs.blocking)]
    assert names[1] == "host"
    assert names[0].startswith("verify@")
    assert [each.job for each in durable.dead(jobs.blocking, limit=1)] == names[:1]
    for name in names:
        durable.requeue(jobs.blocking, name)
    assert durable.dead(jobs.blocking) == []
    jobs.work()
    assert [each.job for each in durable.dead(jobs.blocking)] == names[::-1]
    assert durable.status(jobs.blocking, "host").envelope.key == "host#2:1"


def test_a_history_goes_when_procrastinate_removes_its_job(jobs):
    jobs.error = None
    jobs.other.start_as("host")
    jobs.work()
    assert durable.status(jobs.blocking, "host").status == "succeeded"
    jobs.sql("DELETE FROM procrastinate_jobs")
    assert jobs.sql("SELECT count(*) FROM retrykit_jobs") == [(0,)]


def test_jobs_are_rescued_of_workers_that_are_dead_and_of_no_others(jobs):
    for name in ("of none", "of a dead one", "of one that lives", "to be killed"):
        jobs.other.start_as(name)
    jobs.sql("INSERT INTO procrastinate_workers DEFAULT VALUES")
    jobs.sql("INSERT INTO procrastinate_workers (last_heartbeat)"
             " VALUES (now() - interval '1 minute')")  # fmt: skip
    [[lives], [died]] = jobs.sql("SELECT id FROM procrastinate_workers ORDER BY 1")
    rows = jobs.sql("SELECT id FROM procrastinate_jobs ORDER BY 1")
    for (row,), worker in zip(rows, [None, died, lives, died], strict=True):
        jobs.sql("UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s"
                 " WHERE id = %s", worker, row)  # fmt: skip
    durable.kill(jobs.blocking, "to be killed")

    async def rescue():
        async with jobs.app.open_async():
            # By two at the same time.
            both = await asyncio.gather(*[durable.rescue(jobs.app) for _ in range(2)])
            return sorted([*both[0], *both[1]])

    [first, second, _, fourth] = [row for (row,) in rows]
    assert asyncio.run(rescue()) == [first, second, fourth]
    told = [durable.status(jobs.blocking, name).status
            for name in ("of none", "of a dead one", "of one that lives")]  # fmt: skip
    assert told == ["waiting", "waiting", "running"]
    assert "it was killed" in durable.status(jobs.blocking, "to be killed").reason


def test_what_another_worker_has_kept_is_not_overwritten(jobs):
    jobs.other.start_as("host")

    def overtake():
        kept = "INSERT INTO retrykit_jobs (place, envelope) VALUES (%s, '{}')"
        jobs.sql(kept, jobs.place)

    jobs.meanwhile = overtake
    jobs.work()
    assert jobs.calls == 1
    assert jobs.sql("SELECT envelope::text FROM retrykit_jobs") == [("{}",)]
    assert jobs.sql("SELECT status::text FROM procrastinate_jobs") == [("todo",)]
