"""The statements of the store on PostgreSQL; the fast tests use a fake of them."""

import asyncio
import logging
import threading
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

from retrykit import ConfigError, GiveUp, Policy, schedules as s
from retrykit.integrations import procrastinate as durable
from retrykit.integrations.procrastinate._store import BEGIN, RELEASE, RESCHEDULE
from tests._support.postgres_server import PostgresServer

pytestmark = pytest.mark.engines

HOURLY = Policy(schedule=s.constant("1h"), max_attempts=9, on=OSError)


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
    """An application with one job."""

    def __init__(self, url):
        # The time zone in which a year ends first.
        self.url = url = f"{url}?options=-ctimezone%3DPacific/Kiritimati"
        self.app = App(connector=PsycopgConnector(conninfo=url))
        self.sync_app = App(connector=SyncPsycopgConnector(conninfo=url))
        self.calls, self.error, self.during = 0, OSError("refused"), int
        for app in (self.app, self.sync_app):
            durable.prepare(app, cron="0 0 29 2 *")
        self.task = durable.task(self.app, HOURLY, name="verify")(self.verify)
        # The async app is open in a worker, so control functions use the sync one.
        self.sync_task = durable.task(self.sync_app, HOURLY, name="verify")(self.verify)

    def verify(self):
        self.calls += 1
        self.during()
        if self.error:
            raise self.error

    def work(self):
        self.app.run_worker(wait=False, install_signal_handlers=False)

    @property
    def row_id(self):
        [[row_id]] = self.sql("SELECT id FROM procrastinate_jobs")
        return row_id

    def sql(self, query, *values):
        with psycopg.connect(self.url) as database:
            cursor = database.execute(query, values)
            return cursor.fetchall() if cursor.description else None


@pytest.fixture
def jobs(server):
    jobs = Jobs(server.url)
    with jobs.app.open(), jobs.sync_app.open():
        yield jobs
    jobs.sql("TRUNCATE procrastinate_jobs, procrastinate_workers CASCADE")


def test_concurrent_starts_of_an_id_start_one_job(jobs):
    start = threading.Barrier(8)

    def start_job():
        start.wait()
        jobs.sync_task.start_as("host")

    threads = [threading.Thread(target=start_job) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert jobs.sql("SELECT count(*) FROM procrastinate_jobs") == [(1,)]


def test_stores_an_error_message_that_jsonb_cannot_hold(jobs, caplog):
    # pytest-xdist cannot report text that UTF-8 cannot encode.
    caplog.set_level(logging.CRITICAL, "procrastinate")
    jobs.error = GiveUp(OSError("\x00 \ud800 'quoted' %s {} \\"))
    jobs.sync_task.start_as("host")
    jobs.work()
    [report] = durable.jobs(jobs.sync_app, status="dead")
    stored = r"OSError: \x00 \ud800 'quoted' %s {}" + " \\"
    assert report.failures[0].describe() == stored
    assert report.reason.endswith(stored)


def test_a_job_may_wait_beyond_the_year_9999(jobs):
    endless = Policy(schedule=[1e15], on=OSError)
    task = durable.task(jobs.app, endless, name="endless")(fail)
    with jobs.app.open():
        task.start_as("host")
    jobs.work()
    assert jobs.sql("SELECT scheduled_at > now() + interval '7000 years'"
                    " FROM procrastinate_jobs") == [(True,)]  # fmt: skip


def fail():
    raise OSError


def test_lists_each_job_once(jobs):
    jobs.error = GiveUp(OSError("refused"))
    for job in ("dead", "requeued"):
        jobs.sync_task.start_as(job)
    jobs.work()
    durable.requeue(jobs.sync_app, "requeued")

    def listed(**filters):
        return [each.job for each in durable.jobs(jobs.sync_app, **filters)]

    assert listed(status="dead", name="verify", error="OSError") == ["dead"]
    assert listed() == ["requeued", "dead"]


def test_retry_at_changes_both_tables(jobs):
    jobs.sync_task.start_as("host")
    later = datetime.now(UTC) + timedelta(days=9)
    durable.retry_at(jobs.sync_app, "host", later)
    jobs.work()
    assert jobs.calls == 0
    durable.retry_at(jobs.sync_app, "host", datetime.now(UTC))
    jobs.work()
    assert jobs.calls == 1
    durable.retry_at(jobs.sync_app, "host", later)
    assert durable.status(jobs.sync_app, "host").due == later
    [[at]] = jobs.sql("SELECT scheduled_at FROM procrastinate_jobs")
    assert at == later
    jobs.sql("UPDATE procrastinate_jobs SET status = 'doing'")
    with pytest.raises(ConfigError, match="it is running"):
        durable.retry_at(jobs.sync_app, "host", later)


@pytest.mark.parametrize(("status", "before"), [("doing", None), ("todo", "{}")])
def test_retry_at_changes_nothing_if_the_attempt_was_made_meanwhile(
    jobs, status, before
):
    jobs.sync_task.start_as("host")
    jobs.sql("UPDATE procrastinate_jobs SET status = %s", status)
    arguments = {"row_id": jobs.row_id, "when": datetime.now(UTC), "envelope": "{}"}
    rescheduled = jobs.sync_app.connector.execute_query_all(
        RESCHEDULE, before=before, **arguments
    )
    assert rescheduled == jobs.sql("SELECT row_id FROM retrykit_jobs") == []
    assert jobs.sql("SELECT scheduled_at FROM procrastinate_jobs") == [(None,)]


def test_a_job_that_another_worker_runs_by_now_is_not_rescued(jobs):
    jobs.sync_task.start_as("host")
    worker = "INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id"
    [[dead]], [[live]] = jobs.sql(worker), jobs.sql(worker)
    jobs.sql("UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s", live)
    execute = jobs.sync_app.connector.execute_query_all
    job = {"row_id": jobs.row_id, "killed": 1}
    assert execute(RELEASE, worker=dead, **job) == []
    assert execute(RELEASE, worker=None, **job) == []
    assert jobs.sql("SELECT killed FROM retrykit_jobs") == []
    assert execute(RELEASE, worker=live, **job) == [{"id": jobs.row_id}]


def test_a_dead_job_is_listed_until_it_is_requeued(jobs):
    jobs.error = GiveUp(OSError())
    jobs.sync_task.start_as("host")
    with jobs.app.open():
        jobs.task.task.defer()
    jobs.work()

    def listed(limit=None):
        reports = durable.jobs(jobs.sync_app, status="dead", limit=limit)
        return [each.job for each in reports]

    names = listed()
    assert names[1] == "host"
    assert names[0].startswith("verify@")
    assert listed(limit=1) == names[:1]
    for name in names:
        durable.requeue(jobs.sync_app, name)
    assert listed() == []
    jobs.work()
    assert listed() == names[::-1]
    assert durable.status(jobs.sync_app, "host").envelope.key == "host#2:1"


def test_requeues_a_job_whose_first_envelope_was_damaged(jobs):
    jobs.error = None
    jobs.sync_task.start_as("host")
    jobs.sql("UPDATE procrastinate_jobs SET args ="
             " jsonb_set(args, '{retrykit,envelope,version}', '99')")  # fmt: skip
    jobs.work()
    [report] = durable.jobs(jobs.sync_app, status="dead")
    assert "upgrade retrykit" in report.reason
    durable.requeue(jobs.sync_app, "host")
    jobs.work()
    assert jobs.calls == 1
    assert durable.status(jobs.sync_app, "host").envelope.key == "host#2:1"


def test_a_history_is_deleted_with_its_job(jobs):
    jobs.error = None
    jobs.sync_task.start_as("host")
    jobs.work()
    assert durable.status(jobs.sync_app, "host").status == "succeeded"
    jobs.sql("DELETE FROM procrastinate_jobs")
    assert jobs.sql("SELECT count(*) FROM retrykit_jobs") == [(0,)]


def test_rescues_the_jobs_of_dead_workers_only(jobs):
    for name in ("of none", "of a dead one", "of one that lives", "to be killed"):
        jobs.sync_task.start_as(name)
    jobs.sql("INSERT INTO procrastinate_workers DEFAULT VALUES")
    jobs.sql("INSERT INTO procrastinate_workers (last_heartbeat)"
             " VALUES (now() - interval '1 minute')")  # fmt: skip
    [[live], [dead]] = jobs.sql("SELECT id FROM procrastinate_workers ORDER BY 1")
    rows = jobs.sql("SELECT id FROM procrastinate_jobs ORDER BY 1")
    for (row,), worker in zip(rows, [None, dead, live, dead], strict=True):
        jobs.sql("UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s"
                 " WHERE id = %s", worker, row)  # fmt: skip
    durable.kill(jobs.sync_app, "to be killed")

    async def rescue():
        async with jobs.app.open_async():
            # Twice at the same time.
            both = await asyncio.gather(*[durable.rescue(jobs.app) for _ in range(2)])
            return sorted([*both[0], *both[1]])

    [first, second, _, fourth] = [row for (row,) in rows]
    assert asyncio.run(rescue()) == [first, second, fourth]
    statuses = [durable.status(jobs.sync_app, name).status
            for name in ("of none", "of a dead one", "of one that lives")]  # fmt: skip
    assert statuses == ["waiting", "waiting", "running"]
    assert "it was killed" in durable.status(jobs.sync_app, "to be killed").reason


def test_counts_how_often_a_worker_was_killed_in_an_attempt(jobs):
    jobs.sync_task.start_as("host")

    def kill_worker(*, begun=True):
        execute, row = jobs.sync_app.connector.execute_query_all, jobs.row_id
        jobs.sql("UPDATE procrastinate_jobs SET status = 'doing'")
        # The first time there is no row yet.
        execute(BEGIN, row_id=row, begun=begun)
        assert execute(RELEASE, row_id=row, worker=None, killed=1)

    for _ in range(2):
        kill_worker()
        kill_worker(begun=False)
    assert jobs.sql("SELECT killed, envelope FROM retrykit_jobs") == [(2, None)]
    jobs.work()
    assert jobs.calls == 1
    assert jobs.sql("SELECT killed, begun FROM retrykit_jobs") == [(0, False)]
    durable.retry_at(jobs.sync_app, "host", datetime.now(UTC))
    for _ in range(3):
        kill_worker()
    jobs.work()
    assert jobs.calls == 1
    [report] = durable.jobs(jobs.sync_app, status="dead")
    assert report.reason == "its worker was killed 3 times in attempt 2"
    assert datetime.now(UTC) - report.ended < timedelta(minutes=1)
    assert report.envelope.failed_attempts == 1


def test_an_interrupted_attempt_is_no_kill(jobs):
    async def verify():
        jobs.calls += 1
        # As when a worker is stopped.
        asyncio.current_task().cancel()
        await asyncio.sleep(60)

    durable.task(jobs.app, HOURLY, name="interrupted")(verify)
    start = durable.task(jobs.sync_app, HOURLY, name="interrupted")(verify).start_as
    start("host")
    for _ in range(4):
        jobs.work()
        jobs.sql("UPDATE procrastinate_jobs SET scheduled_at = now()")
    assert jobs.calls == 4
    assert jobs.sql("SELECT status::text FROM procrastinate_jobs") == [("todo",)]
    assert jobs.sql("SELECT killed FROM retrykit_jobs") == []


@pytest.mark.parametrize("column", ["killed", "begun"])
def test_a_table_of_a_previous_version_is_extended(jobs, column):
    jobs.sql(f"ALTER TABLE retrykit_jobs DROP COLUMN {column}")
    jobs.error = None
    jobs.sync_task.start_as("host")
    jobs.work()
    assert jobs.calls == 0, "nothing is attempted that could not be stored"
    assert jobs.sql("SELECT status::text FROM procrastinate_jobs") == [("todo",)]
    durable.apply_schema(jobs.sync_app)
    jobs.sql("UPDATE procrastinate_jobs SET scheduled_at = now()")
    jobs.work()
    assert (jobs.calls, durable.status(jobs.sync_app, "host").status) == (
        1, "succeeded"
    )  # fmt: skip


def test_a_worker_of_the_previous_version_works_with_the_extended_table(jobs):
    previous = """
    INSERT INTO retrykit_jobs AS stored (row_id, envelope, result, reason)
    VALUES (%s, '{}', NULL, NULL)
    ON CONFLICT (row_id) DO UPDATE SET envelope = excluded.envelope
    """
    jobs.sync_task.start_as("host")
    for _ in range(2):
        jobs.sql(previous, jobs.row_id)
    assert jobs.sql("SELECT killed FROM retrykit_jobs") == [(0,)]


def test_does_not_overwrite_an_envelope_that_another_worker_has_stored(jobs):
    jobs.sync_task.start_as("host")

    def store_envelope():
        stored = "INSERT INTO retrykit_jobs (row_id, envelope) VALUES (%s, '{}')"
        jobs.sql(stored, jobs.row_id)

    jobs.during = store_envelope
    jobs.work()
    assert jobs.calls == 1
    assert jobs.sql("SELECT envelope::text FROM retrykit_jobs") == [("{}",)]
    assert jobs.sql("SELECT status::text FROM procrastinate_jobs") == [("todo",)]
