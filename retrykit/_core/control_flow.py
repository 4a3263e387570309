"""Exceptions by which a library steers the code that it runs.

They derive from `Exception`, but nothing has failed: a job is queued again, a test is
skipped, an iteration has ended. To retry them would do it twice.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from retrykit._core.failures import StopReason
from retrykit._core.rules import types_of

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = ["CANCELLED", "CONTROL_FLOW", "control_flow_reason", "find_control_flow"]
__all__ += ["names_control_flow"]

CONTROL_FLOW: Final = {
    "Python": "builtins.StopIteration builtins.StopAsyncIteration bdb.BdbQuit "
    "asyncio.queues.QueueShutDown queue.ShutDown "
    "concurrent.futures._base.CancelledError unittest.case.SkipTest "
    "unittest.case._ShouldStop",
    "aiogram": "aiogram.dispatcher.event.bases.CancelHandler "
    "aiogram.dispatcher.event.bases.SkipHandler",
    "Airflow": "airflow.exceptions.AirflowFailException "
    "airflow.exceptions.AirflowRescheduleException "
    "airflow.exceptions.AirflowSkipException "
    "airflow.sdk.exceptions.AirflowFailException "
    "airflow.sdk.exceptions.AirflowRescheduleException "
    "airflow.sdk.exceptions.AirflowSkipException",
    "arq": "arq.worker.Retry arq.worker.RetryJob",
    "Celery": "celery.exceptions.MaxRetriesExceededError "
    "celery.exceptions.TaskPredicate celery.exceptions.TaskRevokedError "
    "billiard.exceptions.SoftTimeLimitExceeded billiard.exceptions.Terminated",
    "Click and Typer": "click.exceptions.Abort click.exceptions.Exit "
    "typer.exceptions.Abort typer.exceptions.Exit",
    "Dagster": "dagster._core.definitions.events.RetryRequested",
    "DBOS": "dbos._error.DBOSAwaitedWorkflowCancelledError",
    "Dramatiq": "dramatiq.errors.Retry dramatiq.middleware.middleware.SkipMessage",
    "Huey": "huey.exceptions.CancelExecution huey.exceptions.RetryTask",
    "Hypothesis": "hypothesis.errors.UnsatisfiedAssumption",
    "Invoke": "invoke.exceptions.Exit",
    "kopf": "kopf._core.actions.execution.PermanentError "
    "kopf._core.actions.execution.TemporaryError",
    "Locust": "locust.exception.InterruptTaskSet locust.exception.RescheduleTask "
    "locust.exception.StopUser",
    "nox": "nox.sessions._SessionQuit nox.sessions._SessionSkip",
    "Prefect": "prefect.exceptions.CancelledRun prefect.exceptions.PausedRun",
    "Procrastinate": "procrastinate.exceptions.JobAborted "
    "procrastinate.exceptions.JobRetry",
    "python-telegram-bot": "telegram.ext._application.ApplicationHandlerStop",
    "Ray": "ray.exceptions.AsyncioActorExit ray.exceptions.TaskCancelledError",
    "Robot Framework": "robot.api.exceptions.FatalError "
    "robot.api.exceptions.SkipExecution",
    "RQ": "rq.exceptions.StopRequested rq.timeouts.BaseTimeoutException",
    "Scrapy": "scrapy.exceptions.CloseSpider scrapy.exceptions.DontCloseSpider "
    "scrapy.exceptions.DropItem scrapy.exceptions.IgnoreRequest "
    "scrapy.exceptions.NotConfigured scrapy.exceptions.StopDownload",
    "taskiq": "taskiq.exceptions.NoResultError taskiq.exceptions.TaskRejectedError",
    "Temporal": "temporalio.exceptions.CancelledError",
    "Tornado": "tornado.gen.Return tornado.web.Finish",
    "Twisted": "twisted.internet.defer.CancelledError "
    "twisted.internet.error.ConnectingCancelledError "
    "twisted.trial.unittest.SkipTest",
}
"""By library, the full names of the exceptions. Subclasses are included."""

CANCELLED: Final = {
    "celery.exceptions.TaskRevokedError",
    "concurrent.futures._base.CancelledError",
    "dbos._error.DBOSAwaitedWorkflowCancelledError",
    "huey.exceptions.CancelExecution",
    "prefect.exceptions.CancelledRun",
    "procrastinate.exceptions.JobAborted",
    "ray.exceptions.TaskCancelledError",
    "temporalio.exceptions.CancelledError",
    "twisted.internet.defer.CancelledError",
    "twisted.internet.error.ConnectingCancelledError",
}
"""Those of them after which a call has been cancelled."""

# By name, so that nothing is imported.
_NAMES = {name for names in CONTROL_FLOW.values() for name in names.split()}


def _find(kind: type) -> tuple[type, StopReason] | None:
    for each in kind.__mro__:
        name = f"{each.__module__}.{each.__qualname__}"
        if name in _NAMES:
            ended = name in CANCELLED
            return each, StopReason.CANCELLED if ended else StopReason.NOT_RETRYABLE
    return None


find_control_flow: Final[Callable[[type], tuple[type, StopReason] | None]] = cast(
    "Any", lru_cache(maxsize=256)(_find)
)
"""Returns the listed class that a class is or derives from, and its stop reason."""


def names_control_flow(policy: "Policy", error: Exception, base: type) -> bool:
    """Return whether a policy or one of its rules names the class of an error in `on`.

    It may name a class between that of the error and *base*, the one that is listed.
    """
    conditions = (policy.on, *(rule.on for rule in policy.rules))
    named = [kind for each in conditions for kind in types_of(each)]
    return any(isinstance(error, kind) and issubclass(kind, base) for kind in named)


def control_flow_reason(policy: "Policy", error: Exception) -> StopReason | None:
    """Return why an error is not retried if it is control flow, else None."""
    found = find_control_flow(type(error))
    if found is None or names_control_flow(policy, error, found[0]):
        return None
    return found[1]
