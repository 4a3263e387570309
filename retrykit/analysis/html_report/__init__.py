"""Interactive HTML report of policies: one self-contained file.

It is assembled from the files in this folder. Its script computes the bounds of every
kind of schedule (``kinds.js``), the effect of the limits (``limits.js``), what a server
goes through after an outage (``simulation.js``), and what a reader wants to know first
(``answers.js``). The script also reads and writes the page's address (``address.js``).
"""

import base64
import hashlib
import html
import inspect
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from string import Template
from typing import Any, Final

from retrykit import schedules
from retrykit._core.policy import Policy
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    invalid_setting,
    user_facing,
)
from retrykit.analysis._duration_ticks import POWERS, STEPS, suits_log
from retrykit.analysis.html_report._policy_data import policy_data
from retrykit.analysis.html_report._simulation_data import stream_keys
from retrykit.analysis.preview import preview
from retrykit.schedules._base import Schedule
from retrykit.schedules._kinds import SCHEDULE_KINDS

__all__ = ["page"]


@user_facing
def page(  # noqa: PLR0913  independent options
    policies: Mapping[str, Policy],
    *,
    cumulative: bool = False,
    log: bool | None = None,
    attempt: Duration = 0.0,
    retries: int = 100,
    title: str = "Retry policies",
) -> str:
    """Return an HTML page that shows policies and lets the reader change them.

    Numbers have fields and sliders, and limits can be switched off. A chart and a table
    of the delays, the policy's Python and TOML, and the answers at the top are updated
    at once: when the policy gives up, how long a call takes, and what it does to a
    server that is down. The numbers match the library's to a relative error of 1e-12.

    After each change, the address of the page holds the policies, as readable text:
    whoever opens the page with that address sees them.

    >>> from retrykit import presets
    >>> text = page({"zizq": presets.zizq(), "google": presets.google()})
    >>> text.splitlines()[0], "https://" in text
    ('<!doctype html>', False)

    If a policy has the name of the preset zizq, google or polly, and that preset can
    produce its schedule, its fields are the parameters of the preset.

    The Python and TOML include settings without a field, such as `on`, and list the
    names of those that are omitted because they are code.

    A section simulates what the edited policy does to a server after an outage: it
    gives the verdict of `retrykit.simulate.simulate` with seed 1, to the digit.

    Args:
        policies: The policies keyed by name, at least one; up to six have distinct
            colors.
        cumulative: Whether the chart first sums the delays up to each retry.
        log: Whether the time axis is logarithmic at first; by default it is if
            the longest delay is more than 100 times the shortest above zero.
        attempt: How long each attempt takes at first. A duration, >= 0.
        retries: Maximum number of retries to show per policy. Count, 1 to 10,000. The
            end is computed from at least the first 1000.
        title: The title of the page.

    Raises:
        ConfigError: An argument is invalid, *policies* is empty, or a schedule is the
            user's own code.
    """
    data: dict[str, Any] = {
        "policies": [
            policy_data(name, policy)
            for name, policy in _check_policies(policies).items()
        ],
        "attempt": parse_duration("attempt", attempt),
        "retries": check_integer("retries", retries, at_least=1, at_most=_MAX_RETRIES),
        "computed_retries": max(retries, _MIN_COMPUTED),
        "view": {"cumulative": check_instance("cumulative", cumulative, bool)},
        "descriptions": {kind: _describe(kind) for kind in SCHEDULE_KINDS},
        "ticks": {"steps": STEPS, "powers": POWERS},
        "streams": stream_keys(),
    }
    if log is None:
        show = partial(preview, attempt=attempt, retries=retries, samples=0)
        rows = (row for each in policies.values() for row in show(each).rows)
        bands = (row.band(cumulative=cumulative) for row in rows)
        log = suits_log(duration for band in bands for duration in band)
    data["view"]["log"] = check_instance("log", log, bool)
    return _assemble(data, check_instance("title", title, str))


def _assemble(data: object, title: str) -> str:
    """Return the page: the files in this folder, with the data."""
    script = "\n".join(_file(f"{name}.js") for name in _SCRIPTS)
    style = _file("page.css")
    # The browser rejects any other script or style, such as an injected one.
    security_policy = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "base-uri": "'none'",
    }
    return Template(_file("page.html")).substitute(
        title=html.escape(title),
        policy="; ".join(f"{name} {value}" for name, value in security_policy.items()),
        style=style,
        # No string may close the script element.
        data=json.dumps(data).replace("<", r"\u003c"),
        script=script,
    )


# The first two lines do not depend on the page.
_SCRIPTS: Final = (
    *("schedules", "limits", "values", "kinds", "source_text", "delays"),
    *("random_numbers", "simulated_budgets", "simulation_results", "simulation"),
    *("answers", "expressions", "address"),
    *("controls", "chart", "chart_cursor", "cards", "outage", "page"),
)


def _file(name: str) -> str:
    return files(__name__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _check_policies(policies: object) -> Mapping[str, object]:
    rule, suggestion = "a dict of policies by name", 'write {"name": policy}'
    if not isinstance(policies, Mapping):
        raise invalid_setting("policies", rule, policies, suggestion)
    if not policies:
        raise invalid_setting("policies", "at least one policy", policies, suggestion)
    for name in policies:
        check_instance("the name of a policy", name, str, suggestion)
    return policies


# The default of `preview`.
_MIN_COMPUTED: Final = 1_000
# Browsers take seconds to lay out more.
_MAX_RETRIES: Final = 10_000

_OPERATORS: Final = {"sum": "add", "union": "or", "intersection": "and", "scale": "mul"}


def _describe(kind: str) -> str:
    """Return the first line of a kind's docstring, with names in backticks."""
    method = f"__{_OPERATORS[kind]}__" if kind in _OPERATORS else kind
    build: Callable[..., Schedule] = getattr(Schedule, method, None) or getattr(
        schedules, kind
    )
    summary = (inspect.getdoc(build) or "").partition("\n")[0]
    return re.sub(r"`+(.*?)`+|\*(\w+)\*", r"`\1\2`", summary)
