"""Retry policies of gRPC service configs: read as policies, and written from them.

No gRPC library is needed: errors of any client are matched by their status code.

Source:
    gRFC A6, "gRPC Retry Design", with its validation rules and the proportional
    jitter that it has had since 2024 (pull request 452 of the proposals); for the
    lookup of a method in a config, `service_config.proto` of gRPC.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, Literal, NamedTuple, NoReturn, get_args

from retrykit._core.final_error import check_no_fallback
from retrykit._core.policy import Policy
from retrykit._core.settings import SETTINGS
from retrykit._internal.validation import (
    check_choice,
    check_instance,
    invalid_setting,
    prefix_errors,
    user_facing,
)
from retrykit.budgets import Throttle
from retrykit.hints import grpc_pushback
from retrykit.hints.grpc import STATUS_CODES, StatusCodes
from retrykit.schedules import exponential, sequence
from retrykit.schedules._base import Schedule
from retrykit.schedules._basic import Exponential
from retrykit.schedules._transforms import Cap, Derived

__all__ = ["Jitter", "StatusCodes", "entry_for"]
__all__ += ["from_service_config", "parts_of_name", "to_service_config"]

Jitter = Literal["proportional", "full"]
"""The jitter of the client: 0.8 to 1.2 times the delay, or from 0 to the delay."""


@user_facing
def from_service_config(
    config: Mapping[str, Any] | str,
    *,
    method: str | None = None,
    jitter: Jitter = "proportional",
) -> Policy:
    """Return the policy with which gRPC would retry a method.

    Disable the channel's own retries (option ``grpc.enable_retries``), or each attempt
    may become several. The timeout limits the retries, not a running attempt: pass it
    to the stub as well. Pushback from servers is followed, as in gRPC.

    >>> policy = from_service_config('''{
    ...     "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s",
    ...     "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}''')
    >>> policy.schedule, policy.max_attempts
    (exponential(0.1, factor=2.0).cap(1.0).jitter(0.2), 4)

    This accepts the same configs as gRPC itself, which is ``grpcio`` in Python: numbers
    may be strings, unknown keys are ignored, and one invalid entry makes the whole
    config invalid. Load balancing and health checks are not validated.

    Args:
        config: A service config with its ``methodConfig``, or a single retryPolicy; a
            dict or JSON. ``retryThrottling`` becomes a new `Throttle`. gRPC has one for
            all methods of a server; to share it, use ``.replace(budget=first.budget)``.
        method: ``package.Service/Method``. Its own entry applies, or else its
            service's, or else the default one. None if there is only one retryPolicy.
        jitter: ``"proportional"``, as in all clients since 2024, and earlier in C++
            and Python; or ``"full"``, as in the other clients before 2024.

    Returns:
        A policy; its `max_elapsed` is None if the config has no timeout, or one of
        zero. More than five attempts count as five, as in gRPC. Decreasing delays,
        from a multiplier below 1, become a sequence.

    Raises:
        ConfigError: *config* is not valid in gRPC, does not retry *method*, or hedges
            it.
    """
    check_choice("jitter", jitter, get_args(Jitter))
    loaded = _load(config)
    budget = _parse_throttle(loaded.get("retryThrottling"))
    entry = entry_for(loaded, method)
    if not entry.settings:
        suggestion = "write hedge=Hedge(...) in a Policy"
        raise invalid_setting(
            "hedgingPolicy",
            "left out",
            entry.hedging,
            suggestion,
            code="not-expressible",
        )
    settings = dict(entry.settings)
    schedule = _add_jitter(settings.pop("schedule"), jitter)
    return Policy(
        schedule=schedule,
        hint=grpc_pushback(),
        hint_cap=None,
        budget=budget,
        **settings,
    )


@user_facing
def to_service_config(
    policy: Policy, *methods: str, jitter: Jitter = "proportional"
) -> dict[str, Any]:
    """Return the service config with which gRPC retries like a policy.

    >>> from retrykit.schedules import exponential
    >>> schedule = exponential("100ms", factor=2).cap("1s").jitter(0.2)
    >>> policy = Policy(schedule=schedule, max_attempts=5, max_elapsed="1m")
    >>> policy = policy.replace(on=StatusCodes(["UNAVAILABLE"]))
    >>> policy = policy.replace(hint=grpc_pushback(), hint_cap=None)
    >>> config = to_service_config(policy, "shop.Cart/Add")
    >>> config["methodConfig"][0]["name"], config["methodConfig"][0]["timeout"]
    ([{'service': 'shop.Cart', 'method': 'Add'}], '60s')
    >>> from_service_config(config) == policy
    True

    Args:
        policy: A policy that gRPC supports: a capped exponential schedule with gRPC's
            jitter, 2 to 5 attempts, `StatusCodes` as its `on`, any `max_elapsed`, a
            `Throttle` or no budget, and the default for every other setting. It may
            have the hint `grpc_pushback` without a cap, since gRPC always follows that.
        *methods: ``package.Service/Method``, or ``package.Service`` for all methods
            of a service; by default all methods.
        jitter: As in `from_service_config`.

    Returns:
        A dict for JSON.

    Raises:
        ConfigError: gRPC does not support a setting of *policy*, or one of *methods*
            is in neither form.
    """
    check_choice("jitter", jitter, get_args(Jitter))
    _check_other_settings(check_instance("policy", policy, Policy))
    example = 'write StatusCodes(["UNAVAILABLE"])'
    codes = check_instance("on", policy.on, StatusCodes, example)
    most = _Literal(policy.max_attempts)
    first, factor, longest = _find_formula(policy.schedule, jitter)
    retry_policy = {
        "maxAttempts": _parse_integer("max_attempts", most, 2, _MAX_ATTEMPTS),
        "initialBackoff": _format_duration("first", first),
        "maxBackoff": _format_duration("limit", longest),
        "backoffMultiplier": factor,
        "retryableStatusCodes": [*codes.codes],
    }
    names = [parts_of_name(method) for method in methods] or [{}]
    entry = {"name": names, "retryPolicy": retry_policy}
    if policy.max_elapsed is not None:
        entry["timeout"] = _format_duration("max_elapsed", policy.max_elapsed)
    config = {"methodConfig": [entry]}
    if policy.budget is None:
        return config
    throttle = check_instance("budget", policy.budget, Throttle, "gRPC has no other")
    tokens, ratio = map(_Literal, (throttle.max_tokens, throttle.token_ratio))
    throttling = {
        "maxTokens": _parse_integer("max_tokens", tokens, 1, _MAX_TOKENS),
        "tokenRatio": _parse_ratio("token_ratio", ratio),
    }
    return config | {"retryThrottling": throttling}


def _check_other_settings(policy: Policy) -> None:
    check_no_fallback(policy)
    # gRPC follows the pushback of its servers, without a limit.
    pushback = {"hint": grpc_pushback(), "hint_cap": None} if policy.hint else {}
    for name in [each for each in SETTINGS if each not in _SUPPORTED]:
        value, default = getattr(policy, name), getattr(Policy, name)
        expected = pushback.get(name, default)
        if value != expected:
            rule = f"{expected!r} in a policy for gRPC"
            suggestion = f"write .replace({name}={expected!r})"
            raise invalid_setting(name, rule, value, suggestion, code="not-expressible")


def _parse_throttle(config: object) -> Throttle | None:
    if config is None:
        return None
    if not isinstance(config, Mapping) or not {"maxTokens", "tokenRatio"} <= set(
        config
    ):
        rule = "a dict with the keys maxTokens, tokenRatio"
        raise invalid_setting("retryThrottling", rule, config, code="unknown-name")
    tokens = _parse_integer("maxTokens", config["maxTokens"], 1, _MAX_UINT32)
    return Throttle(tokens, _parse_ratio("tokenRatio", config["tokenRatio"]))


def _parse_ratio(name: str, value: object) -> float:
    ratio = float(_match(_DECIMAL, value) or 0)
    if not _MIN_RATIO <= ratio <= _MAX_RATIO:
        rule = f"a number from {_MIN_RATIO} to {_MAX_RATIO}, without an exponent"
        raise invalid_setting(name, rule, value, code="out-of-range")
    return ratio


def _find_formula(schedule: Schedule, jitter: Jitter) -> tuple[float, float, float]:
    """Return the first delay, the factor and the cap of a schedule."""
    match schedule:
        case Derived(of=Cap(of=Exponential() as formula, limit=limit) as capped):
            if _add_jitter(capped, jitter) == schedule:
                return formula.first, formula.factor, limit
    example = _add_jitter(exponential(0.1).cap(1), jitter)
    rule = f"a capped exponential with gRPC's jitter, such as {example!r}"
    suggestion = f"jitter={jitter!r} requires this form"
    raise invalid_setting(
        "schedule", rule, schedule, suggestion, code="not-expressible"
    )


def _add_jitter(schedule: Schedule, jitter: Jitter) -> Schedule:
    return schedule.full_jitter() if jitter == "full" else schedule.jitter(0.2)


def _parse_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a policy that an entry asks for, without jitter.

    Empty if the entry does not retry.
    """
    timeout = 0.0
    if entry.get("timeout") is not None:
        timeout = _parse_duration("timeout", entry["timeout"], 0)
    if not isinstance(entry.get("waitForReady"), bool | None):
        raise invalid_setting("waitForReady", "true or false", entry["waitForReady"])
    for name in ("maxRequestMessageBytes", "maxResponseMessageBytes"):
        if entry.get(name) is not None:
            _parse_integer(name, entry[name], 0, _MAX_UINT32)
    if entry.get("retryPolicy") is None:
        return {}
    retry_policy = entry["retryPolicy"]
    if not isinstance(retry_policy, Mapping) or not set(_KEYS) <= set(retry_policy):
        rule = f"a dict with the keys {', '.join(_KEYS)}"
        suggestion = "a whole service config has the key methodConfig"
        raise invalid_setting(
            "retryPolicy", rule, retry_policy, suggestion, code="unknown-name"
        )
    attempts = _parse_integer("maxAttempts", retry_policy["maxAttempts"], 2, _MAX_INT32)
    settings = {
        "schedule": _parse_delays(retry_policy),
        "max_attempts": min(attempts, _MAX_ATTEMPTS),
        # A timeout of zero means no timeout.
        "max_elapsed": timeout or None,
    }
    codes = _parse_codes(retry_policy["retryableStatusCodes"])
    return settings | {"on": StatusCodes(codes)} if codes else {}


def _parse_codes(codes: object) -> list[str]:
    """Return the names of status codes, without OK, which is never retried."""
    name, rule = "retryableStatusCodes", "a list of names of status codes, at least one"
    if not isinstance(codes, list) or not codes:
        raise invalid_setting(name, rule, codes)
    for code in codes:
        if type(code) is not str or code not in {"OK", *STATUS_CODES}:
            suggestion = "gRPC reads neither numbers nor small letters"
            raise invalid_setting(name, rule, codes, suggestion)
    return [code for code in codes if code != "OK"]


def _parse_delays(retry_policy: Mapping[str, Any]) -> Schedule:
    """Return the delays of a retryPolicy, without jitter."""
    first, longest = (
        _parse_duration(key, retry_policy[key], _MIN_BACKOFF)
        for key in ("initialBackoff", "maxBackoff")
    )
    multiplier = retry_policy["backoffMultiplier"]
    factor = float(_match(_FLOAT, multiplier) or 0)
    if factor <= _ZERO_IN_FLOAT32:
        raise invalid_setting(
            "backoffMultiplier", "a number > 0", multiplier, code="out-of-range"
        )
    if factor >= 1:
        # Infinity is also read: the second delay is the longest.
        factor = min(factor, sys.float_info.max)
        return exponential(first, factor=factor).cap(longest)
    return sequence([min(first * factor**n, longest) for n in range(_MAX_ATTEMPTS - 1)])


class _Literal(str):
    """A number of a JSON document, as it is written there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _load(config: object) -> Mapping[str, Any]:
    """Return the data of a config, with each number as its text.

    gRPC reads numbers from their texts, and so from some strings as well.
    """
    text = config
    try:
        if isinstance(config, Mapping):
            text = json.dumps(dict(config), allow_nan=False, default=dict)
        if isinstance(text, str):
            config = json.loads(
                text,
                parse_int=_Literal,
                parse_float=_Literal,
                parse_constant=_reject_constant,
                object_pairs_hook=_build_object,
            )
    except (ValueError, TypeError, RecursionError) as error:
        raise invalid_setting(
            "config", "JSON", text, str(error), code="unreadable-file"
        ) from error
    if not isinstance(config, Mapping):
        rule = "a service config or a retryPolicy, as a dict or as JSON"
        raise invalid_setting("config", rule, config)
    return config


def _reject_constant(name: str) -> NoReturn:
    msg = f"{name} is not in the JSON of gRPC"
    raise ValueError(msg)


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) < len(pairs):
        repeated = [
            key for key, count in Counter(key for key, _ in pairs).items() if count > 1
        ]
        msg = f"repeated keys: {', '.join(repeated)}"
        raise ValueError(msg)
    return built


def _match(pattern: re.Pattern[str], value: object) -> str:
    """Return *value* if it is a text that matches a pattern, else an empty string."""
    return value if isinstance(value, str) and pattern.fullmatch(value) else ""


def _parse_integer(name: str, value: object, at_least: int, at_most: int) -> int:
    text = _match(_INTEGER, value)
    number = int(text) if text else at_least - 1
    if not at_least <= number <= at_most:
        rule = f"an integer from {at_least} to {at_most}"
        raise invalid_setting(name, rule, value, code="out-of-range")
    return number


def _parse_duration(name: str, value: object, at_least: float) -> float:
    """Parse a protobuf duration, in its JSON form, to seconds."""
    text = _match(_DURATION, value)
    seconds = float(text.removesuffix("s")) if text else -1.0
    if not at_least <= seconds < _MAX_SECONDS + 1:
        rule = f'>= {at_least:g}s, such as "0.1s", with at most nine decimals'
        raise invalid_setting(name, rule, value, code="out-of-range")
    return seconds


def _format_duration(name: str, duration: float) -> str:
    text = f"{duration:.9f}".rstrip("0").rstrip(".")
    if not _MIN_BACKOFF <= float(text) <= _MAX_SECONDS:
        rule = "from a millisecond to 315576000000 seconds, for gRPC"
        raise invalid_setting(name, rule, duration, code="not-expressible")
    return f"{text}s"


_MAX_ATTEMPTS = 5
# The limit of the document; grpcio reads larger numbers, other clients do not.
_MAX_TOKENS = 1000
_MAX_INT32, _MAX_UINT32 = 2**31 - 1, 2**32 - 1
_MIN_RATIO, _MAX_RATIO = 0.001, 4294967
_MIN_BACKOFF = 0.001  # grpcio counts milliseconds
_MAX_SECONDS = 315_576_000_000  # ten thousand years
_ZERO_IN_FLOAT32 = 2.0**-150
# Digits are bounded, since Python converts no more than 4,300.
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,100}\s*", re.ASCII)
_DECIMAL = re.compile(r"\s*\+?[0-9]+(?:\.[0-9]+)?\s*", re.ASCII)
_FLOAT = re.compile(
    r"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?)\s*",
    re.ASCII | re.IGNORECASE,
)
_DURATION = re.compile(r"\s*\+?[0-9]+(?:\.[0-9]{1,9})?\s*s", re.ASCII)
_KEYS = ["maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier"]
_KEYS += ["retryableStatusCodes"]
_SUPPORTED = {"schedule", "max_attempts", "max_elapsed", "on", "fallback", "budget"}


class _Entry(NamedTuple):
    """An entry of a methodConfig.

    Attributes:
        settings: The settings of a policy, without jitter; empty if the entry does
            not retry.
        hedging: The hedgingPolicy of the entry, unchecked; None if there is none.
    """

    settings: Mapping[str, Any]
    hedging: object


def entry_for(config: Mapping[str, Any], method: str | None) -> _Entry:
    """Return the entry of a config that applies to a method.

    Args:
        config: A service config, or a single retryPolicy.
        method: ``package.Service/Method``; None for the only entry that retries or
            hedges.

    Raises:
        ConfigError: The config is not valid, or neither retries nor hedges the method.
    """
    if "methodConfig" not in config:
        if method is not None:
            raise invalid_setting(
                "method",
                "left out with a single retryPolicy",
                method,
                code="contradiction",
            )
        entries = [("/", _Entry(_parse_entry({"retryPolicy": config}), None))]
    else:
        entries = list(_iter_entries(config["methodConfig"]))
    found = dict(entries)
    if len(found) < len(entries):
        rule = "a list with unique names"
        raise invalid_setting("methodConfig", rule, [name for name, _ in entries])
    retried = {name: each for name, each in found.items() if any(each)}
    rule = f"one that the config retries: {', '.join(retried) or 'none'}"
    if method is None:
        if len({id(each) for each in retried.values()}) != 1:
            raise invalid_setting("method", rule, method, code="unknown-name")
        return next(iter(retried.values()))
    service, name = _split_name(method)
    keys = (f"{service}/{name}", f"{service}/", "/")
    # The most specific entry applies, even if it retries nothing.
    key = next((key for key in keys if key in found), None)
    if key not in retried:
        suggestion = "without retries, write Policy(max_attempts=1)"
        raise invalid_setting("method", rule, method, suggestion, code="unknown-name")
    return retried[key]


def _iter_entries(entries: object) -> Iterator[tuple[str, _Entry]]:
    """Yield each entry of a methodConfig with each of its names."""
    for index, each in enumerate(_check_list("methodConfig", entries)):
        with prefix_errors(f"methodConfig[{index}]"):
            entry = _Entry(_parse_entry(each), each.get("hedgingPolicy"))
        names = [] if each.get("name") is None else each["name"]
        for name in _check_list("name", names):
            service, method = name.get("service"), name.get("method")
            if not all(type(part) in {str, NoneType} for part in (service, method)):
                raise invalid_setting("name", "a dict of strings", name)
            if method is not None and service is None:
                raise invalid_setting("name", "a method with its service", name)
            # For grpcio an empty service is the default, whatever the method.
            yield f"{service}/{method or ''}" if service else "/", entry


def _check_list(name: str, value: object) -> list[Mapping[str, Any]]:
    items: list[Mapping[str, Any]] = []
    for each in value if isinstance(value, list) else [None]:
        if not isinstance(each, Mapping):
            raise invalid_setting(name, "a list of dicts", value)
        items.append(each)
    return items


def _split_name(method: object) -> tuple[str, str]:
    text = method.removeprefix("/") if isinstance(method, str) else ""
    service, _, name = text.partition("/")
    if not service or "/" in name:
        raise invalid_setting("method", 'like "package.Service/Method"', method)
    return service, name


def parts_of_name(method: str) -> dict[str, str]:
    """Return the ``name`` that a service config has for a method or a service."""
    service, name = _split_name(method)
    return {"service": service} | ({"method": name} if name else {})
