"""The retry policies of gRPC: read from service configs, and written to them.

They are dicts or JSON. gRPC itself is not known here: an error is asked for its
status code, and whoever raises it may be any client.

Source:
    gRFC A6, "gRPC Retry Design", with its validation rules; its jitter is that
    of the revision of 2024 (pull request 452 of the proposals). How a method
    finds its part of a config: `service_config.proto` of gRPC.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
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
from retrykit.policy.grpc_status import StatusCodes, names_of_codes
from retrykit.policy.policy import Policy
from retrykit.schedules import exponential, sequence
from retrykit.schedules.base import Schedule

__all__ = ["Jitter", "StatusCodes", "entry_for"]
__all__ += ["from_service_config", "parts_of_name", "to_service_config"]

Jitter = Literal["proportional", "full"]
"""What clients do with a delay: 0.8 to 1.2 times as long, or anything up to it."""


def from_service_config(
    config: Mapping[str, Any] | str,
    *,
    method: str | None = None,
    jitter: Jitter = "proportional",
) -> Policy:
    """Return the policy by which gRPC would retry a method.

    Switch the retries of gRPC itself off where you use it (the channel option
    ``grpc.enable_retries``), or each attempt is many. A timeout bounds the
    retries and not an attempt under way: give it to the stub, too. What
    servers ask for, to wait or not to come back, is followed, as gRPC does.

    >>> policy = from_service_config('''{
    ...     "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s",
    ...     "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}''')
    >>> policy.schedule, policy.max_attempts
    (exponential(0.1, factor=2.0).cap(1.0).jitter(0.2), 4)

    Args:
        config: A service config, with its ``methodConfig``, or one retryPolicy;
            a dict, or JSON. A ``retryThrottling`` becomes a new `Throttle`; gRPC
            has one for all methods of a server: ``.replace(budget=first.budget)``.
        method: As ``package.Service/Method``: its own part of the config holds,
            else that of its service, else the one for all. None where there is
            one retryPolicy alone.
        jitter: What the clients do: ``"proportional"``, as gRPC since 2024, or
            ``"full"``, as most did before. C++ and Python did so all along.

    Returns:
        A policy without max_elapsed where the config has no timeout. More than
        five attempts count as five, as for gRPC. Delays that shrink, by a
        multiplier below 1, are listed.

    Raises:
        ConfigError: *config* is none that gRPC accepts, retries nothing of
            *method*, or hedges.
    """
    check_choice("jitter", jitter, get_args(Jitter), "gRPC has changed it in 2024")
    loaded = _loaded(config)
    entry = entry_for(loaded, method)
    if entry.get("hedgingPolicy") is not None:
        suggestion = "no policy sends a request that may still succeed again"
        raise invalid_setting(
            "hedgingPolicy", "left out", entry["hedgingPolicy"], suggestion
        )
    policy, timeout = entry.get("retryPolicy"), entry.get("timeout")
    if not isinstance(policy, Mapping) or set(policy) != set(_KEYS):
        rule = f"a dict with the keys {', '.join(_KEYS)}"
        suggestion = "a whole service config has methodConfig"
        raise invalid_setting("retryPolicy", rule, policy, suggestion)
    codes = names_of_codes("retryableStatusCodes", policy["retryableStatusCodes"])
    attempts = check_integer("maxAttempts", policy["maxAttempts"], at_least=2)
    return Policy(
        schedule=_spread(_delays(policy), jitter),
        max_attempts=min(attempts, _MOST),
        max_elapsed=None if timeout is None else _seconds("timeout", timeout),
        on=StatusCodes(codes),
        hint=grpc_pushback(),
        hint_cap=None,
        budget=_throttle(loaded.get("retryThrottling")),
    )


def to_service_config(
    policy: Policy, *methods: str, jitter: Jitter = "proportional"
) -> dict[str, Any]:
    """Return a service config by which gRPC retries as a policy does.

    >>> from retrykit.schedules import exponential
    >>> schedule = exponential("100ms", factor=2).cap("1s").jitter(0.2)
    >>> policy = Policy(schedule=schedule, on=StatusCodes(["UNAVAILABLE"]))
    >>> policy = policy.replace(hint=grpc_pushback(), hint_cap=None)
    >>> config = to_service_config(policy, "shop.Cart/Add")
    >>> config["methodConfig"][0]["name"], config["methodConfig"][0]["timeout"]
    ([{'service': 'shop.Cart', 'method': 'Add'}], '60s')
    >>> from_service_config(config) == policy
    True

    Args:
        policy: One that gRPC can follow: a capped exponential schedule with the
            jitter of gRPC, 2 to 5 attempts, on `StatusCodes`, a `Throttle` or no
            budget, and every other setting as it is by default. The hint
            `grpc_pushback`, without a cap, may be there: gRPC always follows it.
        *methods: What it is for, each as ``package.Service/Method``, or as
            ``package.Service`` for all of a service; every method by default.
        jitter: What the clients do, as for `from_service_config`.

    Returns:
        A dict for JSON. Durations are rounded to nanoseconds, as gRPC has them.

    Raises:
        ConfigError: A setting of *policy* has no form there.
    """
    check_choice("jitter", jitter, get_args(Jitter), "gRPC has changed it in 2024")
    check_instance("policy", policy, Policy)
    _check_rest(policy)
    names = [parts_of_name(method) for method in methods] or [{}]
    written = {"name": names, "retryPolicy": _retry_policy(policy, jitter)}
    if policy.max_elapsed is not None:
        written["timeout"] = _text("max_elapsed", policy.max_elapsed)
    return {"methodConfig": [written]} | _throttling(policy.budget)


def _check_rest(policy: Policy) -> None:
    """Check that there is nothing in a policy that gRPC has not."""
    if policy.hint not in {None, grpc_pushback()}:
        suggestion = "gRPC follows what its servers ask for, and nothing else"
        rule = "grpc_pushback() or None in a policy for gRPC"
        raise invalid_setting("hint", rule, policy.hint, suggestion)
    for field in fields(Policy):
        value, usual = getattr(policy, field.name), field.default
        # gRPC has no bound on what its servers ask for.
        usual = None if field.name == "hint_cap" and policy.hint else usual
        if field.name not in _WRITTEN and value != usual:
            rule = f"{usual!r} in a policy for gRPC"
            suggestion = f"write .replace({field.name}={usual!r})"
            raise invalid_setting(field.name, rule, value, suggestion)


def _throttle(config: object) -> Throttle | None:
    if config is None:
        return None
    if not isinstance(config, Mapping) or set(config) != {"maxTokens", "tokenRatio"}:
        rule = "a dict with the keys maxTokens, tokenRatio"
        raise invalid_setting("retryThrottling", rule, config)
    most = check_integer("maxTokens", config["maxTokens"], at_least=1)
    ratio = check_number("tokenRatio", config["tokenRatio"], at_least=0.001)
    return Throttle(_few("maxTokens", most), ratio)


def _throttling(budget: Budget | None) -> dict[str, Any]:
    if budget is None:
        return {}
    if not isinstance(budget, Throttle):
        raise invalid_setting(
            "budget", "a Throttle or None in a policy for gRPC", budget
        )
    most = _few("max_tokens", budget.max_tokens)
    return {"retryThrottling": {"maxTokens": most, "tokenRatio": budget.token_ratio}}


def _few(name: str, tokens: int) -> int:
    if tokens > _TOKENS:
        raise invalid_setting(name, f"an integer <= {_TOKENS}, for gRPC", tokens)
    return tokens


def _retry_policy(policy: Policy, jitter: Jitter) -> dict[str, Any]:
    codes = check_instance(
        "on", policy.on, StatusCodes, 'write StatusCodes(["UNAVAILABLE"])'
    )
    most = policy.max_attempts
    if most is None or not _FEWEST <= most <= _MOST:
        rule = f"an integer from {_FEWEST} to {_MOST}, for gRPC"
        raise invalid_setting(
            "max_attempts", rule, most, "it makes no more than five attempts"
        )
    first, factor, longest = _formula(policy.schedule, jitter)
    return {
        "maxAttempts": most,
        "initialBackoff": _text("first", first),
        "maxBackoff": _text("limit", longest),
        "backoffMultiplier": factor,
        "retryableStatusCodes": [*codes.codes],
    }


def _formula(schedule: Schedule, jitter: Jitter) -> tuple[float, float, float]:
    """Return first delay, factor and longest delay of a schedule of gRPC."""
    match schedule.to_dict():
        case {"of": {"of": {"first": first, "factor": factor}, "limit": longest}} if (
            _spread(exponential(first, factor=factor).cap(longest), jitter) == schedule
        ):
            return first, factor, longest
    rule = _spread(exponential(0.1).cap(1), jitter)
    suggestion = f"jitter is {jitter!r} here, and other numbers may stand in it"
    raise invalid_setting("schedule", f"as {rule!r}, for gRPC", schedule, suggestion)


def _spread(schedule: Schedule, jitter: Jitter) -> Schedule:
    return schedule.full_jitter() if jitter == "full" else schedule.jitter(0.2)


def _delays(policy: Mapping[str, Any]) -> Schedule:
    """Return the delays of a retryPolicy, before chance is applied."""
    first = _seconds("initialBackoff", policy["initialBackoff"])
    longest = _seconds("maxBackoff", policy["maxBackoff"])
    factor = check_number("backoffMultiplier", policy["backoffMultiplier"])
    if not factor:
        raise invalid_setting(
            "backoffMultiplier", "a number > 0", policy["backoffMultiplier"]
        )
    if factor >= 1:
        return exponential(first, factor=factor).cap(longest)
    return sequence([min(first * factor**n, longest) for n in range(_MOST - 1)])


def _loaded(config: object) -> Mapping[str, Any]:
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except (ValueError, RecursionError) as error:
            raise invalid_setting("config", "JSON", config, str(error)) from error
    if not isinstance(config, Mapping):
        rule = "a service config or a retryPolicy, as a dict or as JSON"
        raise invalid_setting("config", rule, config)
    return config


def _seconds(name: str, value: object) -> float:
    """Return a duration as JSON of protobuf has it, in seconds."""
    text = value if isinstance(value, str) and _DURATION.fullmatch(value) else "0s"
    if not 0 < float(text[:-1]) <= _LONGEST:
        rule = 'longer than 0s, such as "0.1s", with nine digits of a second at most'
        raise invalid_setting(name, rule, value)
    return float(text[:-1])


def _text(name: str, duration: float) -> str:
    text = f"{duration:.9f}".rstrip("0").rstrip(".")
    if not 0 < float(text) <= _LONGEST:
        rule = "from a nanosecond to 315576000000 seconds, for gRPC"
        raise invalid_setting(name, rule, duration)
    return f"{text}s"


_FEWEST, _MOST = 2, 5
_TOKENS = 1000
_LONGEST = 315_576_000_000  # ten thousand years
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]{1,9})?|\.[0-9]{1,9})s")
_KEYS = ["maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier"]
_KEYS += ["retryableStatusCodes"]
_WRITTEN = {"schedule", "max_attempts", "max_elapsed", "on", "hint", "budget"}


def entry_for(config: Mapping[str, Any], method: str | None) -> Mapping[str, Any]:
    """Return the part of a config that holds for a method.

    Raises:
        ConfigError: There is none that is retried, or the names are wrong.
    """
    if "methodConfig" not in config:
        if method is not None:
            raise invalid_setting("method", "left out beside one retryPolicy", method)
        return {"retryPolicy": config}
    named = list(_entries(config["methodConfig"]))
    found = dict(named)
    if len(found) < len(named):
        rule = "a list where each name comes once"
        raise invalid_setting("methodConfig", rule, [name for name, _ in named])
    retried = {name: each for name, each in found.items() if _retries(each)}
    known = f"one that the config retries: {', '.join(retried) or 'there is none'}"
    if method is None:
        if len({id(each) for each in retried.values()}) != 1:
            raise invalid_setting("method", known, method)
        return next(iter(retried.values()))
    service, name = _split(method)
    for key in (f"{service}/{name}", f"{service}/", "/"):
        # The nearest part holds as a whole, also where it retries nothing.
        if key in found:
            if key in retried:
                return found[key]
            break
    raise invalid_setting(
        "method", known, method, "write Policy(max_attempts=1) to go without"
    )


def _retries(entry: Mapping[str, Any]) -> bool:
    return any(entry.get(f"{way}Policy") is not None for way in ("retry", "hedging"))


def _entries(entries: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each part of a methodConfig by each of its names."""
    for each in _listed("methodConfig", entries):
        for name in _listed("name", each.get("name") or []):
            service, method = name.get("service") or "", name.get("method") or ""
            if not isinstance(service, str) or not isinstance(method, str):
                raise invalid_setting("name", "a dict of texts", name)
            if method and not service:
                raise invalid_setting("name", "of a method and its service", name)
            yield f"{service}/{method}", each


def _listed(name: str, value: object) -> list[Mapping[str, Any]]:
    listed: list[Mapping[str, Any]] = []
    for each in value if isinstance(value, list | tuple) else [None]:
        if not isinstance(each, Mapping):
            raise invalid_setting(name, "a list of dicts", value)
        listed.append(each)
    return listed


def _split(method: object) -> tuple[str, str]:
    text = method.removeprefix("/") if isinstance(method, str) else ""
    service, _, name = text.partition("/")
    if not service or "/" in name:
        raise invalid_setting("method", 'as "package.Service/Method"', method)
    return service, name


def parts_of_name(method: str) -> dict[str, str]:
    """Return the name of a method, or of a service, as a config has it."""
    service, name = _split(method)
    return {"service": service} | ({"method": name} if name else {})
