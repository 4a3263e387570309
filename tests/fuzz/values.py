"""Values on which parsers often fail, and mutations of valid ones."""

import json
import math

__all__ = ["altered", "anything", "as_json", "literal", "maybe", "mutated", "nested"]
__all__ += ["number", "scalar", "text"]

_NUMBERS = (
    *(0, 1, 2, 3, 5, 10, 0.5, 1.5, 60, -1, -0.0, 1e-9, 0.1, 100, 1000, True, False),
    *(math.nan, math.inf, -math.inf, 5e-324, 1e308, 1.7976931348623157e308, -1e308),
    *(2**31 - 1, 2**31, 2**53, 2**63, 2**64, 10**6, 10**12, 10**15, 253402300800),
    *(10**308, 10**309, 10**400, -(10**400), 10**5000),
)
_TEXTS = (
    *("", " ", "a", "fetch", "unlimited", "None", "null", "true", "nan", "inf", "-inf"),
    *("1e999", "0x10", "1_000", "1s", "5m", "1h30m", "\u0663", "\xb2", "\xbd", "a\0b"),
    *("\0", "\ud800", "\udcff", "a\udc80b", "\x1b[31m", "\x1b]0;title\x07", "\x9b31m"),
    *("\x7f", "\n", "a\nb", "\r\n", "\t", "\u2028", "\u202e", "\u2066", "\ufeff"),
    *("\u0301", "\U0001f4a5", "$x^{$", "[red]", "[/]", "%s", "{0}", "'", '"', "\\"),
    *("\\N{DIGIT ONE}", "#", "//", "__class__", "__proto__", "constructor", "a.b"),
    *("os:system", "OSError", "../x", "1if 2else 3", "'\\d'", "3.cap(1)", "0xff"),
    *("1979-05-27", "07:32:00", "lambda: 0", "</script><img src=x onerror=alert(1)>"),
    *("a" * 300, "." * 90, "(" * 200, "-" * 500),
)
_LETTERS = "abexyzABZ019_.,:;=+-*/|&()[]{}'\"\\ \n\t#@!?<>%$~^`"
_MEGABYTE = 2**20
_LONGEST = 10**400


def maybe(random, chance):
    """Return True with a probability from 0 to 1."""
    return random.random() < chance


def number(random):
    """Return a number, often one at a limit."""
    if maybe(random, 0.7):
        return random.choice(_NUMBERS)
    if maybe(random, 0.5):
        return random.randint(-10, 10 ** random.randint(1, 25))
    return random.uniform(-1, 1) * 10 ** random.randint(-320, 300)


def text(random):
    """Return a string of a few unusual characters; rarely a very long one."""
    kind = random.random()
    if kind < 0.75:
        return random.choice(_TEXTS)
    if kind < 0.9:
        return "".join(random.choices(_LETTERS, k=random.randint(1, 12)))
    if kind < 0.9995:
        return "".join(random.choices(_TEXTS, k=random.randint(2, 4)))
    return (random.choice(_TEXTS) or "x") * random.choice([1000, 10_000, 50_000])


def scalar(random):
    """Return a string, a number or None."""
    return random.choice([text, number, text, number, lambda _: None])(random)


def literal(random):
    """Return a string or a number as a Python literal."""
    value = scalar(random)
    # Python parses hexadecimal integers of any length, but does not print long ones.
    return hex(value) if isinstance(value, int) and value > _LONGEST else repr(value)


def nested(random, levels=600):
    """Return nested lists and dicts.

    Args:
        random: The random generator.
        levels: The maximum depth. Count, >= 1.
    """
    value = scalar(random)
    keys = ("of", "a", "policies", "inner", text(random))
    for _ in range(random.choice([1, 2, 3, random.randint(1, levels)])):
        value = [value] if maybe(random, 0.4) else {random.choice(keys): value}
    return value


def anything(random):
    """Return any plain data."""
    kind = random.random()
    if kind < 0.75:
        return scalar(random)
    if kind < 0.85:
        return [scalar(random) for _ in range(random.randint(0, 4))]
    if kind < 0.95:
        return {text(random): scalar(random) for _ in range(random.randint(0, 3))}
    return nested(random)


def mutated(random, string):
    """Return a string with some characters changed, moved or repeated."""
    for _ in range(random.choice([1, 1, 1, 2, 3, 6])):
        start = random.randint(0, len(string))
        end = min(len(string), start + random.choice([0, 1, 1, 2, 5, 20]))
        part, kind = string[start:end], random.random()
        if kind < 0.3:
            part = ""
        elif kind < 0.6:
            part = random.choice(_LETTERS)
        elif kind < 0.85:
            part = random.choice(_TEXTS)
        elif kind < 0.95:
            part *= random.choice([2, 3, 10, 101])
        else:
            part = string[-start:]
        string = string[:start] + part + string[end:]
    if maybe(random, 0.001):
        string *= (
            min(_MEGABYTE, random.choice([10**4, 10**6])) // (len(string) or 1) + 1
        )
    return string


def altered(random, data):
    """Return plain data with one part replaced, added or removed.

    Unchanged parts are shared with the given data.
    """
    if isinstance(data, dict) and data and maybe(random, 0.8):
        key = random.choice([*data])
        kind = random.random()
        if kind < 0.06:
            return {name: part for name, part in data.items() if name != key}
        if kind < 0.12:
            return data | {text(random): anything(random)}
        return data | {key: altered(random, data[key])}
    if isinstance(data, list | tuple) and data and maybe(random, 0.8):
        place = random.randrange(len(data))
        parts = [*data]
        kind = random.random()
        if kind < 0.1:
            del parts[place]
        elif kind < 0.2:
            parts *= random.choice([2, 3, 50])
        else:
            parts[place] = altered(random, parts[place])
        return parts
    if isinstance(data, str) and maybe(random, 0.5):
        return mutated(random, data)
    return anything(random)


def as_json(data):
    """Return data as JSON, with NaN and the infinities as Python writes them."""
    try:
        return json.dumps(data)
    except (RecursionError, ValueError):
        return json.dumps(str(type(data)))
