"""The job on Procrastinate, in processes of its own."""

import os
import time

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException

from retrykit.integrations import procrastinate as durable
from tests.engines import job
from tests.engines.engine import WORKER, answer, as_data

APP = App(
    connector=PsycopgConnector(conninfo=os.environ["RETRYKIT_ENGINE_DATABASE"]),
    worker_defaults={
        "name": os.environ.get(WORKER, "asker"),
        "fetch_job_polling_interval": 0.2,
        "update_heartbeat_interval": 0.5,
        "stalled_worker_timeout": 2.0,
    },
)
durable.prepare(APP, cron="* * * * * *")
verify = durable.task(APP, job.policy(), name="verify")(job.verify)
averify = durable.task(APP, job.policy(), name="averify")(job.averify)


def worker():
    # As a supervisor does: a worker ends when its database is away.
    while True:
        try:
            APP.run_worker()
        except ConnectorException:
            time.sleep(0.2)


def asked(what):
    def ask(*arguments):
        with APP.open():
            return what(*arguments)

    return ask


def schema():
    APP.schema_manager.apply_schema()
    durable.apply_schema(APP)
    durable.apply_schema(APP)


def submit(job_id, plan, colour):
    return (verify if colour == "sync" else averify).start_as(job_id, plan)


def status(job_id):
    return as_data(durable.status(APP, job_id))


if __name__ == "__main__":
    answer(
        worker=worker,
        schema=asked(schema),
        submit=asked(submit),
        status=asked(status),
        dead=asked(lambda: [each.job for each in durable.dead(APP)]),
        requeue=asked(lambda job_id: durable.requeue(APP, job_id)),
        kill=asked(lambda job_id: durable.kill(APP, job_id)),
    )
