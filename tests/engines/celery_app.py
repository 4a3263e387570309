"""The application of the Celery engines: the job as a durable task."""

import json
import os
import signal
import time

from celery import Celery
from celery.signals import after_task_publish

from retrykit.integrations import celery as durable
from retrykit.integrations.celery import _lost_jobs as lost_jobs
from tests.engines import job
from tests.engines.engine import WORKER, report_to_dict, run_application

KIND = os.environ["RETRYKIT_ENGINE_KIND"]
HOP = int(os.environ["RETRYKIT_ENGINE_HOP"])
MAX_HOLD = None if KIND == "quorum" else HOP
DIES = int(os.environ["RETRYKIT_ENGINE_DIES"])
SLOW = float(os.environ["RETRYKIT_ENGINE_SLOW"])

app = Celery(
    "engines",
    broker=os.environ["RETRYKIT_ENGINE_BROKER"],
    backend=os.environ["RETRYKIT_ENGINE_BACKEND"],
)
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_connection_retry_delay=0.2,
    worker_cancel_long_running_tasks_on_connection_loss=True,
)
if KIND == "redis":
    # Messages are redelivered after two seconds more than the visibility timeout.
    lost_jobs._SLACK = 4  # noqa: SLF001  no setting
    app.conf.broker_transport_options = {
        "visibility_timeout": 3 * HOP,
        # Looks each second for messages held for too long.
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        # A worker killed meanwhile leaves a lock behind, by default for 5 minutes.
        "unacked_mutex_expire": 5,
    }
else:
    app.conf.broker_transport_options = {"confirm_publish": True}
if KIND == "quorum":
    app.conf.update(
        task_default_queue_type="quorum", task_default_exchange_type="topic"
    )


@app.task(
    base=durable.DurableTask, policy=job.policy(), name="verify", max_hold=MAX_HOLD
)
def verify(plan):
    return job.verify(plan)


def die(headers, **_):
    """Die between sending a message and acknowledging the one before it."""
    if len(json.loads(headers["retrykit"])["state"]["failures"]) == DIES:
        os.killpg(0, signal.SIGKILL)


def store_slowly(*args, store=app.backend.store_result, **kwargs):
    time.sleep(SLOW)
    return store(*args, **kwargs)


def worker():
    if DIES:
        after_task_publish.connect(die)
    if SLOW:
        app.backend.store_result = store_slowly
    name = f"{os.environ.get(WORKER, 'one')}@engines"
    quiet = ["--without-mingle", "--without-gossip", "--without-heartbeat"]
    app.worker_main(["worker", "-n", name, "-c", "2", "-l", "WARNING", *quiet])


def submit(job_id, plan, _kind):
    return verify.apply_async([plan], task_id=job_id).id


if __name__ == "__main__":
    run_application(
        worker=worker,
        submit=submit,
        status=lambda job_id: report_to_dict(durable.status(app, job_id)),
        dead=lambda: [each.job for each in durable.jobs(app, status="dead")],
        requeue=lambda job_id: durable.requeue(app, job_id),
        kill=lambda job_id: durable.kill(app, job_id),
    )
