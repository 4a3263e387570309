"""The job engine of an application that is named on the command line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, final

from retrykit._cli.modules import find_attribute
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting
from retrykit.durable import JobReport

__all__ = ["JobEngine", "open_engine"]

_RULE: Final = (
    "the module and the name of a Celery app, a Procrastinate app or DBOS settings"
)


@final
class JobEngine(Frozen):
    """The functions of an engine, for one application.

    Attributes:
        jobs: Lists jobs.
        status: Returns the report of a job.
        requeue: Starts a dead job again.
        kill: Stops a job.
        retry_at: Reschedules the next attempt of a job.
    """

    __slots__ = ("jobs", "kill", "requeue", "retry_at", "status")
    jobs: Callable[..., list[JobReport]]
    kill: Callable[..., None]
    requeue: Callable[..., None]
    retry_at: Callable[..., None]
    status: Callable[..., JobReport]


@contextmanager
def open_engine(text: str) -> Iterator[JobEngine]:
    """Import an application and connect to its engine.

    Args:
        text: Its module and name, as in ``mypackage.jobs:SETTINGS``.

    Raises:
        ConfigError: There is no such application.
    """
    module, _, path = text.partition(":")
    if not module or not path:
        raise invalid_setting("--app", _RULE, text, "write --app mypackage.jobs:app")
    app = find_attribute("--app", text, module, path)
    name = _engine_name(app)
    if name is None:
        # Not the value, which may contain a password.
        raise invalid_setting("--app", _RULE, type(app))
    functions = import_module(f"retrykit.integrations.{name}")
    with _CONNECTIONS[name](functions, app) as bound:
        calls = (getattr(functions, each) for each in JobEngine.__slots__)
        yield JobEngine(*(partial(call, *bound) for call in calls))


def _engine_name(app: object) -> str | None:
    if isinstance(app, dict) and "system_database_url" in app:
        return "dbos"
    packages = {each.__module__.partition(".")[0] for each in type(app).__mro__}
    return next(
        (name for name in ("celery", "procrastinate") if name in packages), None
    )


@contextmanager
def _connect_dbos(functions: Any, settings: dict[str, Any]) -> Iterator[list[Any]]:
    # It would log a dozen lines, and create a database under a name with a typo.
    quiet = {"log_level": "CRITICAL", "run_migrations": False}
    try:
        functions.connect(settings | quiet)
        yield []
    finally:
        functions.disconnect()


@contextmanager
def _connect_procrastinate(_functions: Any, app: Any) -> Iterator[list[Any]]:
    with app.open():
        yield [app]


@contextmanager
def _connect_celery(_functions: Any, app: Any) -> Iterator[list[Any]]:
    app.loader.import_default_modules()
    _check_results(str(app.conf.result_backend))
    yield [app]


def _check_results(backend: str) -> None:
    """Check that a SQLite file for results exists, since Celery would create it."""
    path = backend.removeprefix("db+sqlite:///").partition("?")[0]
    if path not in {backend, "", ":memory:"} and not Path(path).exists():
        rule = "that of a file in which a worker has stored results"
        raise invalid_setting("result_backend", rule, backend, "check its path")


_CONNECTIONS: Final[dict[str, Callable[..., Any]]] = {
    "celery": _connect_celery,
    "dbos": _connect_dbos,
    "procrastinate": _connect_procrastinate,
}
