"""Retry policies of gRPC service configs: read as policies, and written from them.

Needs no gRPC library: errors of any client are matched by their status code.

Source:
    gRFC A6, "gRPC Retry Design", with its validation rules and the proportional
    jitter that it has had since 2024 (pull request 452 of the proposals); for the
    lookup of a method in a config, `service_config.proto` of gRPC.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args

from retrykit._internal.validation import (
    check_choice,
    check_instance,
    check_integer,
    check_number,
    invalid_setting,
)
from retrykit.budgets import Throttle
from retrykit.budgets.base import Budget
from retrykit.hints import grpc_pushback
from retrykit.policy.fallback import NO_FALLBACK
from retrykit.policy.grpc_status import StatusCodes, names_of_codes
from retrykit.policy.policy import Policy
from retrykit.policy.validators import VALIDATORS
from retrykit.schedules import exponential, sequence
from retrykit.schedules.base import Schedule
from retrykit.schedules.basic import Exponential
from retrykit.schedules.transforms import Cap, Derived

__all__ = ["Jitter", "StatusCodes", "entry_for"]
__all__ += ["from_service_config", "parts_of_name", "to_service_config"]

Jitter = Literal["proportional", "full"]
"""The jitter of the client: 0.8 to 1.2 times the delay, or from 0 to the delay."""


def from_service_config(
    config: Mapping[str, Any] | str,
    *,
    method: str | None = None,
    jitter: Jitter = "proportional",
) -> Policy:
    """Return the policy with which gRPC would retry a method.

    Disable the channel's own retries (option ``grpc.enable_retries``), or each attempt
    may become several. The timeout limits the retries, not a running attempt: pass it
    to the stub, too. Pushback from servers is followed, as in gRPC.

    >>> policy = from_service_config('''{
    ...     "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s",
    ...     "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}''')
    >>> policy.schedule, policy.max_attempts
    (exponential(0.1, factor=2.0).cap(1.0).jitter(0.2), 4)

    Args:
        config: A service config with its ``methodConfig``, or a single retryPolicy; a
            dict or JSON. ``retryThrottling`` becomes a new `Throttle`. gRPC has one for
            all methods of a server; to share it, use ``.replace(budget=first.budget)``.
        method: ``package.Service/Method``. Its own entry applies, or else that of its
            service, or else the default entry. None if there is only one retryPolicy.
        jitter: ``"proportional"``, as in all clients since 2024, and earlier in C++
            and Python; or ``"full"``, as in the other clients before 2024.

    Returns:
        A policy, without `max_elapsed` if the config has no timeout. More than five
        attempts count as five, as in gRPC. Decreasing delays, from a multiplier below
        1, become a sequence.

    Raises:
        ConfigError: *config* is not valid in gRPC, does not retry *method*, or hedges
            it.
    """
    check_choice("jitter", jitter, get_args(Jitter))
    loaded = _load(config)
    entry = entry_for(loaded, method)
    if entry.get("hedgingPolicy") is not None:
        suggestion = "retrykit does not hedge requests"
        raise invalid_setting(
            "hedgingPolicy", "left out", entry["hedgingPolicy"], suggestion
        )
    retry_policy, timeout = entry.get("retryPolicy"), entry.get("timeout")
    if not isinstance(retry_policy, Mapping) or set(retry_policy) != set(_KEYS):
        rule = f"a dict with the keys {', '.join(_KEYS)}"
        suggestion = "a whole service config has the key methodConfig"
        raise invalid_setting("retryPolicy", rule, retry_policy, suggestion)
    codes = names_of_codes("retryableStatusCodes", retry_policy["retryableStatusCodes"])
    attempts = check_integer("maxAttempts", retry_policy["maxAttempts"], at_least=2)
    return Policy(
        schedule=_add_jitter(_parse_delays(retry_policy), jitter),
        max_attempts=min(attempts, _MAX_ATTEMPTS),
        max_elapsed=None if timeout is None else _parse_duration("timeout", timeout),
        on=StatusCodes(codes),
        hint=grpc_pushback(),
        hint_cap=None,
        budget=_parse_throttle(loaded.get("retryThrottling")),
    )


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
            jitter, 2 to 5 attempts, `StatusCodes` as its `on`, a `Throttle` or no
            budget, and the default for every other setting. It may have the hint
            `grpc_pushback`, without a cap, which gRPC always follows.
        *methods: ``package.Service/Method``, or ``package.Service`` for all methods
            of a service; by default all methods.
        jitter: As for `from_service_config`.

    Returns:
        A dict for JSON.

    Raises:
        ConfigError: gRPC does not support a setting of *policy*.
    """
    check_choice("jitter", jitter, get_args(Jitter))
    check_instance("policy", policy, Policy)
    _check_other_settings(policy)
    names = [parts_of_name(method) for method in methods] or [{}]
    entry = {"name": names, "retryPolicy": _retry_policy(policy, jitter)}
    if policy.max_elapsed is not None:
        entry["timeout"] = _format_duration("max_elapsed", policy.max_elapsed)
    return {"methodConfig": [entry]} | _throttling_data(policy.budget)


def _check_other_settings(policy: Policy) -> None:
    if policy.hint not in {None, grpc_pushback()}:
        suggestion = "the only hint that gRPC supports is pushback from its servers"
        rule = "grpc_pushback() or None in a policy for gRPC"
        raise invalid_setting("hint", rule, policy.hint, suggestion)
    for name in VALIDATORS:
        value, expected = getattr(policy, name), getattr(Policy, name)
        # gRPC does not limit the pushback from its servers.
        expected = None if name == "hint_cap" and policy.hint else expected
        if name == "fallback":
            if value is not NO_FALLBACK:
                rule = "left out of a policy for gRPC"
                raise invalid_setting("fallback", rule, value)
        elif name not in _SUPPORTED and value != expected:
            rule = f"{expected!r} in a policy for gRPC"
            suggestion = f"write .replace({name}={expected!r})"
            raise invalid_setting(name, rule, value, suggestion)


def _parse_throttle(config: object) -> Throttle | None:
    if config is None:
        return None
    if not isinstance(config, Mapping) or set(config) != {"maxTokens", "tokenRatio"}:
        rule = "a dict with the keys maxTokens, tokenRatio"
        raise invalid_setting("retryThrottling", rule, config)
    most = check_integer("maxTokens", config["maxTokens"], at_least=1)
    ratio = check_number("tokenRatio", config["tokenRatio"], at_least=0.001)
    return Throttle(_check_tokens("maxTokens", most), ratio)


def _throttling_data(budget: Budget | None) -> dict[str, Any]:
    if budget is None:
        return {}
    if not isinstance(budget, Throttle):
        raise invalid_setting(
            "budget", "a Throttle or None in a policy for gRPC", budget
        )
    most = _check_tokens("max_tokens", budget.max_tokens)
    return {"retryThrottling": {"maxTokens": most, "tokenRatio": budget.token_ratio}}


def _check_tokens(name: str, tokens: int) -> int:
    if tokens > _MAX_TOKENS:
        raise invalid_setting(name, f"an integer <= {_MAX_TOKENS}, for gRPC", tokens)
    return tokens


def _retry_policy(policy: Policy, jitter: Jitter) -> dict[str, Any]:
    codes = check_instance(
        "on", policy.on, StatusCodes, 'write StatusCodes(["UNAVAILABLE"])'
    )
    most = policy.max_attempts
    if most is None or not _MIN_ATTEMPTS <= most <= _MAX_ATTEMPTS:
        rule = f"an integer from {_MIN_ATTEMPTS} to {_MAX_ATTEMPTS}, for gRPC"
        raise invalid_setting("max_attempts", rule, most)
    first, factor, longest = _find_formula(policy.schedule, jitter)
    return {
        "maxAttempts": most,
        "initialBackoff": _format_duration("first", first),
        "maxBackoff": _format_duration("limit", longest),
        "backoffMultiplier": factor,
        "retryableStatusCodes": [*codes.codes],
    }


def _find_formula(schedule: Schedule, jitter: Jitter) -> tuple[float, float, float]:
    """Return the first delay, the factor and the cap of a schedule."""
    match schedule:
        case Derived(of=Cap(of=Exponential() as formula, limit=limit)) if (
            _add_jitter(formula.cap(limit), jitter) == schedule
        ):
            return formula.first, formula.factor, limit
    example = _add_jitter(exponential(0.1).cap(1), jitter)
    rule = f"a capped exponential with gRPC's jitter, such as {example!r}"
    suggestion = f"jitter={jitter!r} requires this form"
    raise invalid_setting("schedule", rule, schedule, suggestion)


def _add_jitter(schedule: Schedule, jitter: Jitter) -> Schedule:
    return schedule.full_jitter() if jitter == "full" else schedule.jitter(0.2)


def _parse_delays(retry_policy: Mapping[str, Any]) -> Schedule:
    """Return the delays of a retryPolicy, without jitter."""
    first = _parse_duration("initialBackoff", retry_policy["initialBackoff"])
    longest = _parse_duration("maxBackoff", retry_policy["maxBackoff"])
    multiplier = retry_policy["backoffMultiplier"]
    factor = check_number("backoffMultiplier", multiplier)
    if not factor:
        raise invalid_setting("backoffMultiplier", "a number > 0", multiplier)
    if factor >= 1:
        return exponential(first, factor=factor).cap(longest)
    return sequence([min(first * factor**n, longest) for n in range(_MAX_ATTEMPTS - 1)])


def _load(config: object) -> Mapping[str, Any]:
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except (ValueError, RecursionError) as error:
            raise invalid_setting("config", "JSON", config, str(error)) from error
    if not isinstance(config, Mapping):
        rule = "a service config or a retryPolicy, as a dict or as JSON"
        raise invalid_setting("config", rule, config)
    return config


def _parse_duration(name: str, value: object) -> float:
    """Parse a duration in the JSON form of protobuf to seconds."""
    text = value if isinstance(value, str) and _DURATION.fullmatch(value) else "0s"
    if not 0 < float(text[:-1]) <= _MAX_SECONDS:
        rule = 'longer than 0s, such as "0.1s", with at most nine decimals'
        raise invalid_setting(name, rule, value)
    return float(text[:-1])


def _format_duration(name: str, duration: float) -> str:
    text = f"{duration:.9f}".rstrip("0").rstrip(".")
    if not 0 < float(text) <= _MAX_SECONDS:
        rule = "from a nanosecond to 315576000000 seconds, for gRPC"
        raise invalid_setting(name, rule, duration)
    return f"{text}s"


_MIN_ATTEMPTS, _MAX_ATTEMPTS = 2, 5
_MAX_TOKENS = 1000
_MAX_SECONDS = 315_576_000_000  # ten thousand years
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]{1,9})?|\.[0-9]{1,9})s")
_KEYS = ["maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier"]
_KEYS += ["retryableStatusCodes"]
_SUPPORTED = {"schedule", "max_attempts", "max_elapsed", "on", "hint", "budget"}


def entry_for(config: Mapping[str, Any], method: str | None) -> Mapping[str, Any]:
    """Return the entry of a config that applies to a method."""
    if "methodConfig" not in config:
        if method is not None:
            raise invalid_setting(
                "method", "left out with a single retryPolicy", method
            )
        return {"retryPolicy": config}
    entries = list(_iter_entries(config["methodConfig"]))
    found = dict(entries)
    if len(found) < len(entries):
        rule = "a list with unique names"
        raise invalid_setting("methodConfig", rule, [name for name, _ in entries])
    retried = {name: each for name, each in found.items() if _retries(each)}
    rule = f"one that the config retries: {', '.join(retried) or 'none'}"
    if method is None:
        if len({id(each) for each in retried.values()}) != 1:
            raise invalid_setting("method", rule, method)
        return next(iter(retried.values()))
    service, name = _split_name(method)
    keys = (f"{service}/{name}", f"{service}/", "/")
    # The most specific entry applies, even if it retries nothing.
    key = next((key for key in keys if key in found), None)
    if key not in retried:
        suggestion = "without retries, write Policy(max_attempts=1)"
        raise invalid_setting("method", rule, method, suggestion)
    return retried[key]


def _retries(entry: Mapping[str, Any]) -> bool:
    return any(entry.get(key) is not None for key in ("retryPolicy", "hedgingPolicy"))


def _iter_entries(entries: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each entry of a methodConfig with each of its names."""
    for each in _check_list("methodConfig", entries):
        for name in _check_list("name", each.get("name") or []):
            service, method = name.get("service") or "", name.get("method") or ""
            if not isinstance(service, str) or not isinstance(method, str):
                raise invalid_setting("name", "a dict of strings", name)
            if method and not service:
                raise invalid_setting("name", "a method with its service", name)
            yield f"{service}/{method}", each


def _check_list(name: str, value: object) -> list[Mapping[str, Any]]:
    items: list[Mapping[str, Any]] = []
    for each in value if isinstance(value, list | tuple) else [None]:
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
    """Return the ``name`` of a method or a service in a service config."""
    service, name = _split_name(method)
    return {"service": service} | ({"method": name} if name else {})
