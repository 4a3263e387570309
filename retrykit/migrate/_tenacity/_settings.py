"""The settings of a policy for the arguments of tenacity."""

from typing import Final

import libcst as cst

from retrykit.migrate import _waits
from retrykit.migrate._expressions import call_text, code, parse
from retrykit.migrate._findings import Unknown, Untranslatable
from retrykit.migrate._settings import Settings, Use
from retrykit.migrate._source import Arguments, Source
from retrykit.migrate._tenacity._conditions import retry_settings
from retrykit.migrate._tenacity._delays import (
    by_hint,
    hint_settings,
    sleep_settings,
    wait_of,
)
from retrykit.migrate._tenacity._endings import ending_settings, hook_settings
from retrykit.migrate._tenacity._stops import Stop, is_exact, known_stop, limit_settings
from retrykit.migrate._tenacity._strategies import ADAPTERS

__all__ = ["PARAMETERS", "settings"]


PARAMETERS: Final = (
    "sleep stop wait retry before after before_sleep reraise retry_error_cls "
    "retry_error_callback name enabled"
)
"""The parameters of `retry`, `Retrying` and `AsyncRetrying`, in their order."""


def settings(arguments: Arguments, use: Use) -> Settings:
    """Return the settings of a policy for the arguments of tenacity.

    Raises:
        Untranslatable: The arguments cannot be translated exactly.
    """
    source = arguments.source
    if arguments.extra:
        raise Untranslatable("it has more arguments than tenacity knows")
    unknown = arguments.values.keys() - {*PARAMETERS.split()}
    if unknown:
        raise Untranslatable(f"tenacity has no parameter {min(unknown)}")
    enabled = arguments.get("enabled")
    if enabled is not None and code(enabled) != "True":
        raise Unknown(f"enabled={code(enabled)} is not known")
    stop, custom_stop = known_stop(source, arguments.get("stop"))
    ends = custom_stop is not None or stop != Stop()
    ending = ending_settings(source, arguments, use, ends=ends)
    found = retry_settings(source, arguments.get("retry"), excludes=not ending)
    found |= _delays(source, arguments, stop, custom_stop)
    found |= sleep_settings(source, arguments.get("sleep"), stop, use)
    found |= ending
    found |= hook_settings(source, arguments, decides=ADAPTERS in found.get("hint", ""))
    named = arguments.get("name")
    return found if named is None else found | {"name": code(named)}


def _delays(
    source: Source,
    arguments: Arguments,
    stop: "Stop",
    custom_stop: cst.BaseExpression | None,
) -> Settings:
    """Return the settings of the delays and the limits."""
    node = arguments.get("wait")
    after = arguments.get("after")
    try:
        wait = wait_of(source, node, stop.attempts)
        custom_wait = node if wait is None and custom_stop is not None else None
    except Untranslatable:
        wait, custom_wait = None, node
    if custom_stop is not None and "upcoming_sleep" in _text_of(source, custom_stop):
        custom_wait = node or parse("None")
    found = limit_settings(stop, custom=custom_stop is not None)
    named = {
        "stop": None if custom_stop is None else code(custom_stop),
        "after": None if after is None or code(after) == "None" else code(after),
    }
    if custom_wait is not None:
        hint = call_text(f"{ADAPTERS}.wait", code(custom_wait), **named)
        return found | by_hint(hint) | {"schedule": _waits.NO_WAIT.text}
    if wait is None:
        return found | hint_settings(source, node)
    found["schedule"] = wait.text
    if "limits" not in found and is_exact(stop, wait):
        found = _waits.limit_schedule(found)
    if custom_stop is not None:
        named.pop("stop")
        found["hint"] = call_text(f"{ADAPTERS}.stop", code(custom_stop), **named)
    return found


def _text_of(source: Source, node: cst.BaseExpression) -> str:
    """Return the text of a strategy, with the text of its class or function."""
    called = node.func if isinstance(node, cst.Call) else node
    function = source.function(called)
    found = source.class_of(called)
    return "".join(code(each) for each in (node, function, found) if each is not None)
