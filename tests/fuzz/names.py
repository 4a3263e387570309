"""Targets: names of presets, exception types and hints."""

import inspect

from retrykit._internal.error_texts import type_from_name, type_to_name
from retrykit.config._preset_names import BUILT_IN, parse_preset
from retrykit.hints import hint_to_text, parse_hint
from tests.fuzz.schedules import check_schedule
from tests.fuzz.target import Target
from tests.fuzz.values import anything, maybe, mutated, number, text

__all__ = ["TARGETS", "exception_type", "hint", "preset"]

_TYPES = (
    *("OSError", "TimeoutError", "ConnectionError", "Exception", "EOFError"),
    *("json.decoder:JSONDecodeError", "retrykit.errors:ConfigError", "LookupError"),
)
_WRONG_TYPES = (
    *("BaseException", "KeyboardInterrupt", "int", "os:system", "subprocess:Popen"),
    *("builtins:OSError", "sys:modules", ":OSError", "OSError:", "a:b:c", "a..b", "."),
    *("email:message", "os:environ", "retrykit:Policy", "json:JSONDecodeError.mro"),
    *("antigravity:x", "OSError.__init__", "type", "object", "print", "__debug__"),
)
_HINTS = (
    *("retry_after", "grpc_pushback", "milliseconds:retry-after-ms", "reset_at"),
    *("attribute:retry_after", "attribute:response.wait:ms", "reset_at:x-reset"),
    "rate_limit",
)


def exception_type(random):
    """Return the name of an exception type; some are invalid."""
    kind = random.random()
    if kind < 0.85:
        return random.choice(_TYPES)
    string = random.choice(_TYPES + _WRONG_TYPES)
    return string if kind < 0.95 else mutated(random, string)


def hint(random):
    """Return the names of one or several hints; some are invalid."""
    string = ", ".join(random.choices(_HINTS, k=random.choice([1, 1, 2, 3])))
    string *= 10**4 if maybe(random, 0.0002) else 1
    return mutated(random, string) if maybe(random, 0.1) else string


def preset(random):
    """Return the name of a preset with parameters; some are invalid."""
    name = random.choice([*BUILT_IN])
    known = [*inspect.signature(BUILT_IN[name]).parameters]
    chosen = random.sample(known, random.randint(0, min(3, len(known))))
    given = ",".join(f"{each}={_value(random)}" for each in chosen)
    string = f"{name}:{given}" if given else name
    return mutated(random, string) if maybe(random, 0.15) else string


def _value(random):
    kind = random.random()
    if kind < 0.4:
        return random.choice(["0", "1", "3", "10", "2.5", "1e300", "0.5"])
    if kind < 0.7:
        return random.choice(["1s", "5m", "100ms", "7d", "0s", "full", "OSError"])
    if kind < 0.85:
        return "1" * 4301 if maybe(random, 0.05) else f"{float(_small(random))}"
    return text(random)


def _small(random):
    value = number(random)
    return value if abs(value) < 1e308 or value != value else 1e308  # noqa: PLR0124


def _type_name(random):
    kind = random.random()
    if kind < 0.9:
        string = random.choice(_TYPES + _WRONG_TYPES)
        return mutated(random, string) if maybe(random, 0.6) else string
    return anything(random)


def _read_type(string):
    return type_from_name("on", string)


def _check_type(found, _random):
    assert isinstance(found, type)
    assert type_from_name("on", type_to_name("on", found)) is found


def _hint_text(random):
    if maybe(random, 0.95):
        string = hint(random)
        return mutated(random, string) if maybe(random, 0.5) else string
    return anything(random)


def _check_hint(found, _random):
    assert repr(parse_hint(hint_to_text(found))) == repr(found)
    found(OSError("busy"))


def _preset_text(random):
    string = preset(random)
    return mutated(random, string) if maybe(random, 0.3) else string


def _check_settings(settings, random):
    assert repr(settings)
    check_schedule(settings.schedule, random)


TARGETS = (
    Target("presets", 60, _preset_text, parse_preset, _check_settings),
    Target("type-names", 50, _type_name, _read_type, _check_type),
    Target("hint-texts", 40, _hint_text, parse_hint, _check_hint),
)
