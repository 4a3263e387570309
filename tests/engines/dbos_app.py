"""The application of the DBOS engines."""

import os
import sys

from retrykit.integrations import dbos as durable
from tests.engines import job
from tests.engines.dbos_engine import GRACE, VERSION
from tests.engines.engine import WORKER, report_to_dict, run_application

verify = durable.job(job.policy(), name="verify")(job.verify)
averify = durable.job(job.policy(), name="averify")(job.averify)

SETTINGS = durable.config(
    "engines",
    database=os.environ["RETRYKIT_ENGINE_DATABASE"],
    executor=os.environ.get(WORKER),
    log_level="WARNING",
)
if VERSION in os.environ:
    SETTINGS["application_version"] = os.environ[VERSION]


def worker():
    durable.serve(SETTINGS, polling=0.1, grace=os.environ.get(GRACE, "60s"))


def submit(job_id, plan, kind):
    return (verify if kind == "sync" else averify).start_as(job_id, plan)


def status(job_id):
    return report_to_dict(durable.status(job_id))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        durable.connect(SETTINGS)
    run_application(
        worker=worker,
        submit=submit,
        status=status,
        dead=lambda: [each.job for each in durable.jobs(status="dead")],
        requeue=durable.requeue,
        kill=durable.kill,
        take_over=durable.take_over,
    )
