"""A Celery worker that ends after its running attempts."""

import os
import signal
import threading
from typing import Any, Final

from celery import Celery, signals

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import check_choice, check_instance, user_facing
from retrykit.integrations.celery._child_signals import ChildSignals

__all__ = ["serve"]

_OPTIONS: Final = ("autoscale", "concurrency", "exclude_queues", "hostname", "include",
                   "logfile", "loglevel", "max_memory_per_child", "max_tasks_per_child",
                   "optimization", "pool", "prefetch_multiplier", "queues",
                   "soft_time_limit", "task_events", "without_gossip",
                   "without_heartbeat", "without_mingle")  # fmt: skip


@user_facing
def serve(app: Celery, *, grace: Duration = "60s", **options: Any) -> None:
    """Run a worker until SIGTERM or SIGINT, let its attempts end, and return.

    ::

        if __name__ == "__main__":
            serve(app, concurrency=4, loglevel="INFO")

    It must be called in the main thread. Attempts that still run after *grace* are cut
    off by a cold shutdown of Celery, and repeated by the next worker. A SIGTERM that
    also reaches the child processes of a prefork pool does not cut attempts off.

    Args:
        app: The Celery application.
        grace: How long running attempts may take to end. A duration, >= 0; less than
            the time after which the supervisor kills the process.
        **options: Options of Celery's worker, as on its command line: autoscale,
            concurrency, exclude_queues, hostname, include, logfile, loglevel,
            max_memory_per_child, max_tasks_per_child, optimization, pool,
            prefetch_multiplier, queues, soft_time_limit, task_events, without_gossip,
            without_heartbeat, without_mingle.

    Raises:
        ConfigError: *grace* is not a duration, there is no such option, or jobs would
            be lost with the settings of the application.
        RuntimeError: The worker has ended because of an error; its log shows which.
    """
    check_instance("app", app, Celery)
    seconds = parse_duration("grace", grace)
    for option in options:
        check_choice("options", option, _OPTIONS, "set it in app.conf")
    children = ChildSignals(os.getpid())

    def quit_() -> None:
        children.stop(warm=False)
        os.kill(os.getpid(), signal.SIGQUIT)

    cold = threading.Timer(seconds, quit_)
    cold.daemon = True

    def stopping(how: str, **_: Any) -> None:
        children.stop(warm=how == "Warm")
        if how == "Warm" and not cold.is_alive():
            cold.start()

    signals.worker_shutting_down.connect(stopping)
    signals.task_prerun.connect(children.protect)
    try:
        worker = app.Worker(**options)
        worker.start()
    finally:
        signals.worker_shutting_down.disconnect(stopping)
        signals.task_prerun.disconnect(children.protect)
        stopped = cold.ident is not None
        cold.cancel()
    if worker.exitcode and not stopped:
        msg = "the worker has ended because of an error; see its log"
        raise RuntimeError(msg)
