"""Routes of Envoy, in the YAML or JSON of its API v3.

Two things are not read: the headers of requests, which may change the retries of a
route, and the limit on the retries to a cluster, by default 3 at a time.

Source:
    Envoy 1.37, ``api/envoy/config/route/v3/route_components.proto`` and
    ``source/common/router/retry_policy_impl.cc``.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from retrykit._core.policy import Policy
from retrykit._internal.validation import did_you_mean, invalid_setting
from retrykit.config._foreign._envoy_retries import (
    WORDS,
    back_off,
    build_policy,
    conditions,
)
from retrykit.config._foreign._format import Format
from retrykit.config._foreign._section import Section, camel
from retrykit.config._foreign._values import flag, protobuf_duration, text, whole
from retrykit.hints import Hint, first_of, reset_at, retry_after
from retrykit.schedules._base import Schedule

__all__ = ["FORMAT"]


def _find(root: Section) -> Iterator[tuple[str, Section]]:
    """Yield the routes that retry, with their names or what they match."""
    for key, table in (("", root), *root.tables()):
        action = table.data.get("route")
        host = table.parent.data if table.parent and key == "routes" else {}
        if isinstance(action, Mapping) and (_retries(action) or _retries(host)):
            yield _name(table, host), table


def _retries(data: Mapping[str, Any]) -> bool:
    """Return whether a table of Envoy has a retry policy."""
    policy = data.get("retry_policy", data.get("retryPolicy"))
    keys = map(str, policy) if isinstance(policy, Mapping) else ()
    return not _OWN.isdisjoint(map(camel, keys))


# The retryPolicy of gRPC, Temporal or Pub/Sub has none of these.
_OWN = {"retryOn", "numRetries", "perTryTimeout", "retryBackOff"}
_OWN |= {"retriableStatusCodes", "rateLimitedRetryBackOff"}


def _name(route: Section, host: Mapping[str, Any]) -> str:
    match = route.data.get("match")
    matched = match.values() if isinstance(match, Mapping) else ()
    numbered = f"{host.get('name', '')}[{route.place[-1]}]" if host else ""
    names = [route.data.get("name"), *matched, numbered]
    return next((each for each in names if isinstance(each, str) and each), "")


def _read(section: Section) -> Policy:
    """Return the policy of a route: its own, or its virtual host's."""
    route = section.respelled(camel)
    [action] = route.sections("route")
    if section.parent is not None and "operation" in section.parent.data:
        # An EnvoyFilter of Istio.
        route.differs("route", "a patch, whose other settings are those of the route")
    tables = [action]
    if section.parent is not None and _retries(section.parent.data):
        outer = section.parent
        args = (section.remarks, outer.place, outer.data, camel)
        tables.append(Section(*args))
    applying, policy = next(
        (each, found) for each in tables if (found := each.section("retry_policy"))
    )
    if applying is not action:
        text_ = "that of the virtual host applies, since the route has none"
        applying.note("retry_policy", text_)
    elif len(tables) > 1:
        action.note("retry_policy", "applies, not that of the virtual host")
    for each in tables:
        if "retry_policy_typed_config" in each:
            each.differs("retry_policy_typed_config", "an extension decides otherwise")
    hedged = next((found for x in tables if (found := x.section("hedge_policy"))), None)
    if hedged and hedged.get("hedge_on_per_try_timeout", flag):
        text = "no request is sent beside one that is late"
        hedged.differs("hedge_on_per_try_timeout", text)
    return _read_retries(action, policy)


def _timeout(action: Section) -> float:
    """Return the time limit of all attempts together, in seconds; 0 means no limit."""
    timeout = action.get("timeout", _duration)
    if timeout is None:
        action.note("timeout", "15 s for all attempts together, by default")
        timeout = 15.0
    return timeout


def _duration(name: str, value: Any) -> float:
    """Parse a duration to seconds, truncated to whole milliseconds as in Envoy."""
    return int(protobuf_duration(name, value) * 1000 + 1e-6) / 1000


def _read_retries(action: Section, policy: Section) -> Policy:
    retries = policy.get("num_retries", whole(0, 2**32 - 1), 1)
    words = _known(policy, policy.get("retry_on", _words, []))
    statuses = _selected(policy, words)
    failures = conditions(policy, "retry_on", words, statuses) if retries else {}
    for key, consequence in _UNREAD.items():
        if key in policy:
            policy.differs(key, consequence)
    timeouts = (policy.get("per_try_timeout", _duration, 0.0), _timeout(action))
    settings = _limited_back_off(policy) | {"schedule": _back_off(policy)}
    policy.ignore(*_OF_HOSTS, "retriable_headers")
    policy.finish()
    return build_policy(action, policy, retries, failures, timeouts, **settings)


_OF_HOSTS = ["retry_priority", "retry_host_predicate", "retry_options_predicates"]
_OF_HOSTS += ["host_selection_retry_max_attempts"]
_UNREAD = {
    "per_try_idle_timeout": "an attempt that receives nothing is not ended",
    "retriable_request_headers": "retries do not depend on headers of the request",
}


def _words(name: str, value: Any) -> list[str]:
    listed = "" if value == "" else text(name, value)
    return [each for word in listed.split(",") if (each := word.strip())]


def _known(policy: Section, words: list[str]) -> list[str]:
    """Return the words that Envoy knows; it ignores all others."""
    for word in words:
        if word not in WORDS:
            parts = [f"Envoy ignores {word!r}", did_you_mean(word, WORDS)]
            policy.note("retry_on", "; ".join(filter(None, parts)))
    return [word for word in words if word in WORDS]


def _selected(policy: Section, words: list[str]) -> list[int]:
    """Return the listed statuses that are retried."""
    listed = policy.get("retriable_status_codes", _statuses, [])
    by_status = "retriable-status-codes" in words
    if listed and not by_status:
        text_ = "has no effect without retriable-status-codes in retry_on"
        policy.note("retriable_status_codes", text_)
    for each in listed:
        if each not in _POSSIBLE:
            policy.note("retriable_status_codes", f"{each} is not an HTTP status")
    return [each for each in listed if by_status and each in _POSSIBLE]


_POSSIBLE = range(100, 600)


def _statuses(name: str, value: Any) -> list[int]:
    listed = value if isinstance(value, list) else [value]
    return [whole(0, 2**32 - 1)(name, each) for each in listed]


def _back_off(policy: Section) -> Schedule:
    table = policy.section("retry_back_off")
    if table is None:
        return back_off(0.025)
    base = table.require("base_interval", _positive)
    longest = table.get("max_interval", _positive)
    table.finish()
    if longest is not None and longest < base:
        with table.located("max_interval"):
            rule = f"at least the base_interval of {base:g} s"
            raise invalid_setting(
                "max_interval", rule, f"{longest:g} s", code="contradiction"
            )
    return back_off(base, longest)


def _positive(name: str, value: Any) -> float:
    """Parse a duration > 0 to seconds; less than a millisecond counts as one."""
    if not protobuf_duration(name, value):
        raise invalid_setting(name, "a duration above 0", value, code="out-of-range")
    return max(_duration(name, value), 0.001)


def _limited_back_off(policy: Section) -> dict[str, Any]:
    """Return the settings for responses that ask for a delay."""
    table = policy.section("rate_limited_retry_back_off")
    if table is None:
        return {}
    headers = table.sections("reset_headers")
    if not headers:
        table.require("reset_headers", text)
    hints = [hint for each in headers if (hint := _reset_header(each))]
    longest = table.get("max_interval", _positive, 300.0)
    table.finish()
    if not hints:
        return {}
    text_ = "waits no shorter than retry_back_off says, nor longer than max_interval"
    policy.differs("rate_limited_retry_back_off", text_)
    return {
        "hint": first_of(*hints),
        "hint_cap": longest,
        "hint_jitter": 0.5,
        "on_long_hint": "ignore",
    }


def _reset_header(header: Section) -> Hint | None:
    name = header.require("name", text)
    unit = header.get("format", _format, "SECONDS")
    header.finish()
    if name.lower() == "retry-after" and unit == "SECONDS":
        header.differs("name", "a date is obeyed, which Envoy ignores")
        return retry_after()
    if "reset" in name.lower():
        remaining = name.lower().replace("reset", "remaining")
        header.differs("name", f"ignored while {remaining} is above 0")
        return reset_at(name)
    header.differs("name", f"{name} is not read")
    return None


def _format(name: str, value: Any) -> str:
    known = {"SECONDS": 0, "UNIX_TIMESTAMP": 1}
    for each, number in known.items():
        if value in (each, number) and not isinstance(value, bool):
            return each
    raise invalid_setting(
        name, f"one of {', '.join(known)}", value, code="unknown-name"
    )


FORMAT: Final = Format("routes of Envoy", _find, _read)
"""Routes of Envoy, with a retry policy of their own or of their virtual host."""
