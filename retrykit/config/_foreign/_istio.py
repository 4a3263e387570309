"""HTTP routes of Istio virtual services.

For a route without retries of its own, the default retries of a mesh are assumed.

Source:
    Istio 1.32, ``pilot/pkg/networking/core/route/retry/retry.go`` and
    ``pkg/config/validation/agent/validation.go``.
"""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
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
from retrykit.config._foreign._values import flag, go_duration, text, whole

__all__ = ["FORMAT"]


def _find(root: Section) -> Iterator[tuple[str, Section]]:
    """Yield the routes of virtual services that forward requests, with names."""
    for key, route in root.tables():
        spec = route.parent
        service = spec.parent if spec and key == "http" else None
        if service and _is_virtual_service(service.data) and "route" in route.data:
            named = (route.data.get("name"), _dict(service, "metadata").get("name"))
            yield next((x for x in named if isinstance(x, str) and x), ""), route


def _is_virtual_service(data: Mapping[str, Any]) -> bool:
    api = str(data.get("apiVersion"))
    is_own = api.startswith("networking.istio.io/")
    return is_own and data.get("kind") == "VirtualService"


def _dict(section: Section, key: str) -> Mapping[str, Any]:
    value = section.data.get(key)
    return value if isinstance(value, Mapping) else {}


def _read(section: Section) -> Policy:
    route = section.respelled(camel)
    timeout = route.get("timeout", _duration, 0.0)
    retries = route.section("retries")
    if retries is None:
        # The retries of the mesh, which are in another file.
        data = {"attempts": 2}
        retries = Section(route.remarks, route.place, data, camel)
        route.note("retries", "none, so those of the mesh apply: 2 by default")
    attempts = retries.get("attempts", whole(0, 2**31 - 1), 0)
    attempt = retries.get("perTryTimeout", _duration, 0.0)
    words, statuses = retries.get("retryOn", _words, None) or (_DEFAULT, ())
    remote = retries.get("retryRemoteLocalities", flag)
    if not attempts and (attempt or words is not _DEFAULT or remote is not None):
        with retries.located("attempts"):
            rule = "at least 1 where other settings of retries are given"
            raise invalid_setting("attempts", rule, attempts, code="contradiction")
    base = retries.get("backoff", _duration, 0.025)
    retries.get("retryIgnorePreviousHosts", flag)
    retries.finish()
    failures = conditions(retries, "retryOn", words, statuses) if attempts else {}
    timeouts = (attempt, timeout)
    settings = {"schedule": back_off(base)}
    return build_policy(route, retries, attempts, failures, timeouts, **settings)


_DEFAULT = ("connect-failure", "refused-stream", "unavailable", "cancelled")


def _words(name: str, value: Any) -> tuple[list[str], list[int]] | None:
    """Return words and statuses; None, for the default, if there are none."""
    words: list[str] = []
    statuses: list[int] = []
    for each in text(name, value).split(",") if value != "" else ():
        # A space before a word is also refused.
        if each in WORDS:
            words.append(each)
        elif each.isascii() and each.isdecimal() and int(each[:4]) in _STATUSES:
            statuses.append(int(each))
        else:
            rule = "words of Envoy and statuses, with commas between them"
            raise invalid_setting(
                name, rule, value, did_you_mean(each, WORDS), code="unknown-name"
            )
    return (words, statuses) if value else None


_STATUSES = frozenset(map(int, HTTPStatus))


def _duration(name: str, value: Any) -> float:
    """Parse a duration of one or more whole milliseconds to seconds."""
    seconds = go_duration(name, value)
    whole_ones = round(seconds * 1000)
    if not whole_ones or abs(seconds * 1000 - whole_ones) > 1e-6:  # noqa: PLR2004
        raise invalid_setting(
            name, "whole milliseconds, at least 1ms", value, code="out-of-range"
        )
    return whole_ones / 1000


FORMAT: Final = Format("routes of Istio", _find, _read)
"""HTTP routes of virtual services, with their own retries or the mesh's."""
