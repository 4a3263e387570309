"""The job engine of an application that is named on the command line."""

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Final, cast

from retrykit._cli.modules import find_attribute
from retrykit._internal.validation import invalid_setting
from retrykit.durable import JobEngine

__all__ = ["open_engine"]

_RULE: Final = (
    "the module and the name of a Celery app, a Procrastinate app or DBOS settings"
)


def open_engine(text: str) -> AbstractContextManager[JobEngine]:
    """Import an application; entering the returned context connects to its engine.

    Args:
        text: Its module and name, such as ``mypackage.jobs:SETTINGS``.

    Raises:
        ConfigError: There is no such application, or its engine is unknown.
    """
    module, _, path = text.partition(":")
    if not module or not path:
        raise invalid_setting(
            "--app", _RULE, text, "write --app mypackage.jobs:app", code="unknown-name"
        )
    app = find_attribute("--app", text, module, path)
    name = _engine_name(app)
    if name is None:
        # Not the value, which may contain a password.
        raise invalid_setting("--app", _RULE, type(app), code="unknown-name")
    integration = import_module(f"retrykit.integrations.{name}")
    return cast("AbstractContextManager[JobEngine]", integration.job_engine(app))


def _engine_name(app: object) -> str | None:
    if isinstance(app, dict) and "system_database_url" in app:
        return "dbos"
    packages = {each.__module__.partition(".")[0] for each in type(app).__mro__}
    return next(
        (name for name in ("celery", "procrastinate") if name in packages), None
    )
