"""Which part of a service config of gRPC is for a method.

What is in a part is not known here.

Source:
    `service_config.proto` of gRPC.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from retrykit._internal.validation import invalid_setting

__all__ = ["entry_for", "parts_of_name"]


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
