"""The application of the Celery engines, whose worker is run by `serve`."""

import os

from retrykit.integrations import celery as durable
from tests.engines.celery_app import app
from tests.engines.engine import WORKER, run_application


def worker():
    durable.serve(
        app,
        grace=float(os.environ["RETRYKIT_ENGINE_GRACE"]),
        hostname=f"{os.environ.get(WORKER, 'one')}@engines",
        concurrency=2,
        loglevel="WARNING",
        without_mingle=True,
        without_gossip=True,
        without_heartbeat=True,
    )


if __name__ == "__main__":
    run_application(worker=worker)
