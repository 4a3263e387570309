"""The application of the Procrastinate engine."""

import asyncio
import os
import time

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException

from retrykit.integrations import procrastinate as durable
from tests.engines import job
from tests.engines.engine import WORKER, report_to_dict, run_application

APP = App(
    connector=PsycopgConnector(conninfo=os.environ["RETRYKIT_ENGINE_DATABASE"]),
    worker_defaults={
        "name": os.environ.get(WORKER, "client"),
        "fetch_job_polling_interval": 0.2,
        "update_heartbeat_interval": 0.5,
        "stalled_worker_timeout": 2.0,
    },
)
GRACE = float(os.environ.get("RETRYKIT_ENGINE_GRACE", "60"))

durable.prepare(APP, cron="* * * * * *")
verify = durable.task(APP, job.policy(), name="verify")(job.verify)
averify = durable.task(APP, job.policy(), name="averify")(job.averify)


@durable.task(APP, job.policy(), name="poison")
def poison(plan):
    job.verify(plan)
    # As if it had run out of memory.
    os._exit(1)


@durable.task(APP, job.policy(), name="threaded")
async def threaded(plan):
    """Wait for a thread, which goes on if the coroutine is cancelled."""
    return await asyncio.to_thread(job.verify, plan)


KINDS = {"sync": verify, "async": averify, "poison": poison, "threaded": threaded}


def worker():
    # Like a supervisor: a worker ends when its database is unavailable.
    while True:
        try:
            durable.serve(APP, grace=GRACE)
        except (ConnectorException, RuntimeError):
            time.sleep(0.2)
        else:
            return


def opened(function):
    def call(*arguments):
        with APP.open():
            return function(*arguments)

    return call


def schema():
    APP.schema_manager.apply_schema()
    durable.apply_schema(APP)
    durable.apply_schema(APP)


def submit(job_id, plan, kind):
    return KINDS[kind].start_as(job_id, plan)


def status(job_id):
    return report_to_dict(durable.status(APP, job_id))


if __name__ == "__main__":
    run_application(
        worker=worker,
        schema=opened(schema),
        submit=opened(submit),
        status=opened(status),
        dead=opened(lambda: [each.job for each in durable.jobs(APP, status="dead")]),
        requeue=opened(lambda job_id: durable.requeue(APP, job_id)),
        kill=opened(lambda job_id: durable.kill(APP, job_id)),
    )
