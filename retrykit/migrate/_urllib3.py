"""Translation of urllib3's `Retry`, which requests uses as well.

A `Retry` becomes a `PolicyRetry`, a subclass, so code that takes a `Retry` need not
change.
"""

from typing import Final

import libcst as cst

from retrykit.migrate import _waits
from retrykit.migrate._expressions import (
    OURS,
    UNKNOWN,
    code,
    is_literal,
    literal,
    number_text,
    operand,
    parse,
)
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._settings import Settings, Use
from retrykit.migrate._source import Arguments, Source
from retrykit.migrate._waits import Wait

__all__ = ["HEAD", "PARAMETERS", "READ", "settings", "switches_off"]

HEAD: Final = f"{OURS}.integrations.urllib3.PolicyRetry"
"""The class that takes the place of ``Retry``."""

PARAMETERS: Final = (
    "total connect read redirect status other allowed_methods status_forcelist "
    "backoff_factor backoff_max raise_on_redirect raise_on_status history "
    "respect_retry_after_header remove_headers_on_redirect backoff_jitter "
    "retry_after_max"
)
"""The parameters of `Retry`, in their order."""

READ: Final = ("backoff_factor", "backoff_max", "backoff_jitter", "get_backoff_time")
"""The attributes of a `Retry` that a `PolicyRetry` has no use for."""

_DELAYS: Final = {"total", "backoff_factor", "backoff_max", "backoff_jitter"}


def switches_off(call: cst.Call) -> bool:
    """Return whether a ``Retry`` has ``total=False``, and so retries nothing."""
    first = call.args[0] if call.args else None
    totals = [x.value for x in call.args if x.keyword and x.keyword.value == "total"]
    if first is not None and first.keyword is None and not first.star:
        totals.append(first.value)
    return any(code(each) == "False" for each in totals)


def settings(arguments: Arguments, _use: Use) -> Settings:
    """Return the settings of a `PolicyRetry` for the arguments of `Retry`.

    Raises:
        Untranslatable: The arguments cannot be translated exactly.
    """
    unknown = arguments.values.keys() - {*PARAMETERS.split()}
    if unknown or arguments.extra:
        name = min(unknown, default="of that position")
        raise Untranslatable(f"urllib3 has no parameter {name}")
    if "history" in arguments.values:
        raise Untranslatable("it begins with a history")
    source = arguments.source
    found = {
        "max_attempts": _attempts(source, arguments.get("total")),
        "schedule": _wait(arguments).text,
    }
    respected = arguments.get("respect_retry_after_header")
    if respected is None or code(respected) != "False":
        found["hint_cap"] = "None"
    return found | {
        name: code(arguments.values[name])
        for name in PARAMETERS.split()
        if name in arguments.values and name not in _DELAYS
    }


def _attempts(source: Source, total: cst.BaseExpression | None) -> str:
    """Return the number of attempts as text, one more than the number of retries."""
    if total is None:
        return "11"
    known = literal(source.value(total))
    if known is None:
        return "None"
    if known is UNKNOWN:
        if source.may_be_none(total):
            raise Untranslatable(f"total={code(total)} may be None")
    elif type(known) is not int or known < 0:
        raise Untranslatable(f"total={code(total)} is no number of retries")
    elif is_literal(total):
        return str(known + 1)
    return f"{operand(total)} + 1"


def _wait(arguments: Arguments) -> Wait:
    factor = arguments.get("backoff_factor")
    jitter = arguments.get("backoff_jitter")
    if factor is None and jitter is None:
        return _waits.NO_WAIT
    first = _doubled(factor or parse("0"))
    grown = _waits.NO_WAIT if first == "0" else _waits.exponential(first, None, None)
    if jitter is not None and literal(jitter, None) != 0:
        grown = grown.plus(_waits.uniform("0", code(jitter)))
    if grown is _waits.NO_WAIT:
        return grown
    most = arguments.get("backoff_max")
    later = grown.cap(parse("120") if most is None else most)
    return _waits.sequence([0], repeat_last=False).method("then", later.text)


def _doubled(factor: cst.BaseExpression) -> str:
    value = literal(factor, None)
    if _waits.is_number(value):
        if value < 0:
            raise Untranslatable("its backoff_factor is below 0")
        return number_text(value * 2)
    return f"2 * {operand(factor)}"
