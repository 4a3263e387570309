"""Settings to and from where they are kept: data, files, variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from retrykit.policy.settings import Settings, recast

__all__ = ["Stored"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Stored(Settings):
    """Settings that can be kept; `Policy` says what each of them means."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return this policy as plain data, for JSON and TOML.

        >>> from retrykit import Policy
        >>> Policy(max_elapsed=None, schedule=[1]).to_dict()["max_elapsed"]
        'unlimited'

        A hint is written as the text of its name, and a budget by its settings.
        What a budget has left is no setting: the policy that comes back has a
        new one, which is full, or, if it has a scope, the one that is shared
        by that scope.

        Raises:
            ConfigError: A setting is code: a predicate, an observer, a
                generator function, a hint or a budget of your own.
        """
        # Here and below: most programs write and read no policies.
        from retrykit.policy.serialization import policy_to_dict  # noqa: PLC0415

        return policy_to_dict(self)

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Return the policy that `to_dict` wrote.

        A setting that is missing has its default.

        >>> from retrykit import Policy
        >>> Policy.from_dict({"schedule": ["1s", "1m"], "on": "OSError"})
        Policy(schedule=sequence([1.0, 60.0]), on=OSError)

        Exception types are named as ``OSError`` or ``module:Name``; no module
        is imported to find them. A rule is a dict of ``on`` and of ``schedule``,
        ``max_attempts`` or both; a hint is a text, as ``retry_after`` (see
        `retrykit.hints.hint_named`); a budget is a dict of its ``kind``, its
        settings and its ``scope`` (see `retrykit.budgets.budget_from`); and an
        ``attempt_timeout`` that the function is told is a dict, as
        ``{"argument": "timeout", "seconds": 5}``.

        Raises:
            ConfigError: A setting is unknown or wrong.
        """
        from retrykit.policy.serialization import policy_from_dict  # noqa: PLC0415

        return cls(**policy_from_dict(data))

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], name: str) -> Self:
        """Return a policy of a TOML file, as pyproject.toml, or of a JSON file.

        >>> import tempfile
        >>> from pathlib import Path
        >>> from retrykit import Policy
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "pyproject.toml")
        ...     _ = path.write_text('''
        ...         [tool.retrykit.policies.fetch]
        ...         extends = "zizq:retry_limit=10"
        ...         on = ["ConnectionError", "TimeoutError"]
        ...     ''')
        ...     policy = Policy.from_toml(path, "fetch")
        >>> policy.max_attempts, policy.on
        (11, (<class 'ConnectionError'>, <class 'TimeoutError'>))

        Reading imports no module and runs no code.

        Args:
            path: A file with a table ``[tool.retrykit.policies.NAME]``, or
                ``[policies.NAME]`` in a file without ``[tool.retrykit]``. If its
                name ends in ``.json``, it is JSON of the same structure.
            name: The name of the policy in the file. What is in its table is
                what `from_dict` reads, and ``extends``: the name of another
                policy of the file, or a preset, whose settings hold where this
                table has none.

        Raises:
            ConfigError: The file cannot be read or has no such policy, or a
                setting is unknown or wrong.
        """
        # Imported here: only who keeps policies in files needs it.
        from retrykit.config.files import load_policy  # noqa: PLC0415

        return recast(load_policy(path, name), cls)

    @classmethod
    def from_env(
        cls,
        prefix: str,
        *,
        base: Settings | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Self:
        """Return the policy that environment variables ask for.

        >>> from retrykit import Policy
        >>> told = {"APP_RETRY_MAX_ATTEMPTS": "8", "APP_RETRY_ON": "OSError"}
        >>> Policy.from_env("APP_RETRY", environ=told)
        Policy(max_attempts=8, on=OSError)

        With the prefix ``APP_RETRY`` they are APP_RETRY_SCHEDULE (``1s, 5s, 1m``,
        or an expression, as ``exponential("500ms").cap("1m").full_jitter()``),
        _MAX_ATTEMPTS, _MAX_ELAPSED (``90s``; both may be ``unlimited``), _DEADLINE,
        _ON and _GIVE_UP_ON (names of exception types, separated by commas),
        _HINT (as ``retry_after``), _HINT_CAP, _HINT_OVER, _ATTEMPT_TIMEOUT (both
        times may be ``unlimited``, too), _OUTER, _RAISES, _REDACT and
        _KEEP_TRACEBACKS (``true`` or ``false``), _MAX_FAILURES, _SEED, _NAME, and
        _EXTENDS, a preset such as ``zizq:retry_limit=10`` that takes the place of
        *base*. Rules and budgets have no variable: they are no matter of one text,
        and come from *base*.

        And those of the job queue Zizq: _RETRY_LIMIT, _BACKOFF_BASE,
        _BACKOFF_EXPONENT, _BACKOFF_JITTER; base and jitter are milliseconds, or
        have a unit, and the three are given together. Without *base*, the rest
        is then as in `retrykit.presets.zizq`, and so it is with the prefix
        ``ZIZQ_DEFAULT``.

        >>> told = {"ZIZQ_DEFAULT_RETRY_LIMIT": "3"}
        >>> Policy.from_env("ZIZQ_DEFAULT", environ=told).max_attempts
        4

        Args:
            prefix: What the names of the variables begin with, with or without
                the underscore after it. A variable that is empty is not given.
            base: The policy whose settings hold where no variable is given, as
                one from a file: ``base=Policy.from_toml("policies.toml", "fetch")``.
            environ: The variables; by default those of this process, as they
                are now.

        Raises:
            ConfigError: A variable is wrong or nearly one of these, contradicts
                another, or a part of the formula is missing.
        """
        # Imported here: only who keeps settings in variables needs it.
        from retrykit.config.environment import settings_from_env  # noqa: PLC0415

        told = os.environ if environ is None else environ
        return recast(settings_from_env(prefix, told, base=base), cls)
