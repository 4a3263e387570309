"""A page on which policies can be seen, and changed to see what follows.

One HTML file that needs nothing else and asks no network for anything. Here it
is put together from the files beside this one; what it computes is theirs: the
bounds of every kind of schedule in ``schedules.js``, the effect of the limits in
``limits.js``. It knows nothing of command lines.
"""

import base64
import hashlib
import html
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.resources import files
from string import Template
from typing import Any, Final

from retrykit import schedules
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import check_instance, check_integer, invalid_setting
from retrykit.analysis.duration_ticks import suits_log
from retrykit.analysis.html_report.hidden_settings import unseen
from retrykit.analysis.html_report.presets import preset_of
from retrykit.analysis.preview import Preview, preview
from retrykit.analysis.preview.caveats import caveats, has_other_delays
from retrykit.config.rendering import toml_key
from retrykit.policy.policy import Policy
from retrykit.policy.timeouts import timeout_seconds
from retrykit.schedules.base import Schedule
from retrykit.schedules.kinds import SCHEDULE_KINDS

__all__ = ["page"]


def page(  # noqa: PLR0913  each says of the page what no other does
    policies: Mapping[str, Policy],
    *,
    cumulative: bool = False,
    log: bool | None = None,
    attempt: Duration = 0.0,
    retries: int = 100,
    title: str = "Retry policies",
) -> str:
    """Return a page that shows policies and lets them be changed.

    Each number of a policy has a field and a slider. A chart of the delays, a
    table of them, how the policy ends, and its Python and TOML to be copied
    follow at once. The numbers are those of the library, within 1e-12 of each.

    >>> from retrykit import presets
    >>> text = page({"zizq": presets.zizq(), "google": presets.google()})
    >>> text.splitlines()[0], "https://" in text
    ('<!doctype html>', False)

    A policy under the name of Zizq, Google or Polly that these presets can make
    is shown by the parameters of the preset, and written as that.

    Settings that are not on the page, such as `on`, are in its texts all the
    same; those that are code are named there as left out.

    Args:
        policies: The policies by the names that the page gives them, one or
            more; up to six are told apart by colour.
        cumulative: Whether the delays up to a retry are added up at first.
        log: Whether the time is drawn on a logarithmic scale at first; None,
            the default, is where the longest delay shown is more than 100
            times the shortest above zero.
        attempt: How long each attempt takes at first. Seconds, timedelta or
            text, >= 0.
        retries: Most retries that are shown of a policy. Count, 1 to 10_000.
            How it ends is looked for among the first 1000 at least.
        title: What the page is called.

    Returns:
        The text of an HTML file.

    Raises:
        ConfigError: *policies* has no policy in it, or one whose schedule is
            the user's own code; or another argument is wrong.
    """
    data: dict[str, Any] = {
        "policies": [_shown(name, policy) for name, policy in _named(policies)],
        "attempt": parse_duration("attempt", attempt),
        "retries": check_integer("retries", retries, at_least=1, at_most=_MOST),
        "looked_at": max(retries, _LOOKED_AT),
        "view": {"cumulative": check_instance("cumulative", cumulative, bool)},
        "told": {kind: _told(kind) for kind in SCHEDULE_KINDS},
    }
    if log is None:
        show = partial(preview, attempt=attempt, retries=retries, samples=0)
        log = _is_wide(map(show, policies.values()), cumulative=cumulative)
    data["view"]["log"] = check_instance("log", log, bool)
    return _composed(data, check_instance("title", title, str))


def _is_wide(seen: Iterable[Preview], *, cumulative: bool) -> bool:
    """Return whether what a chart shows needs a logarithmic scale."""
    bands = (row.band(cumulative=cumulative) for each in seen for row in each.rows)
    return suits_log(duration for band in bands for duration in band)


def _composed(data: object, title: str) -> str:
    """Return the files beside this one as a single one, about some data."""
    script = "\n".join(_file(f"{name}.js") for name in _SCRIPTS)
    style = _file("page.css")
    # By its hash each is allowed, and nothing that is written into the page.
    allowed = {"script-src": _hash(script), "style-src": _hash(style)}
    rules = {"default-src": "'none'", **allowed, "base-uri": "'none'"}
    return Template(_file("page.html")).substitute(
        title=html.escape(title),
        policy="; ".join(f"{name} {value}" for name, value in rules.items()),
        style=style,
        # No text inside of a script may look like its end.
        data=json.dumps(data).replace("<", r"\u003c"),
        script=script,
    )


# From what knows nothing of the page to what knows all of it.
_IDEAS: Final = (
    *("schedules", "limits", "quantities", "rules", "expressions", "presets"),
    "scales",
)
_SCRIPTS: Final = (
    *_IDEAS,
    "elements",
    "inputs",
    "controls",
    "chart",
    "reading",
    "page",
)


def _file(name: str) -> str:
    return files(__name__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _named(policies: object) -> Iterable[tuple[str, object]]:
    named = isinstance(policies, Mapping) and all(isinstance(n, str) for n in policies)
    if not named or not isinstance(policies, Mapping) or not policies:
        suggestion = 'write {"name": policy}'
        raise invalid_setting(
            "policies", "a dict of policies by name", policies, suggestion
        )
    return policies.items()


# As many as `preview` looks at by default.
_LOOKED_AT: Final = 1_000
# A browser takes seconds to lay out more.
_MOST: Final = 10_000


def _shown(name: str, given: object) -> dict[str, Any]:
    policy = check_instance(f"policies[{name!r}]", given, Policy)
    limits = {
        "schedule": policy.schedule.to_dict(),
        "max_attempts": policy.max_attempts,
        "max_elapsed": policy.max_elapsed,
    }
    return {
        "name": name,
        "key": toml_key(name),
        **limits,
        "deadline": policy.deadline,
        "attempt_timeout": timeout_seconds(policy.attempt_timeout),
        "has_other_delays": has_other_delays(policy),
        "caveats": list(caveats(policy)),
        **unseen(policy),
        "preset": preset_of(name, policy, limits),
    }


_OPERATORS: Final = {"sum": "add", "union": "or", "intersection": "and", "scale": "mul"}


def _told(kind: str) -> str:
    """Return what a kind of schedule does, as its documentation begins: `names` so."""
    method = f"__{_OPERATORS[kind]}__" if kind in _OPERATORS else kind
    builds: Callable[..., Schedule] = (
        getattr(Schedule, method, None) or vars(schedules)[kind]
    )
    summary = (inspect.getdoc(builds) or "").partition("\n")[0]
    return re.sub(r"`+(.*?)`+|\*(\w+)\*", r"`\1\2`", summary)
