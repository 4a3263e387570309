"""Retry rules of Exim, read from the text of its configuration file.

Source: "Retry configuration", specification of Exim 4.99; ``readconf_retries`` and
``retry_update``, code of Exim 4.99.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

from retrykit._conditions import Condition
from retrykit._core.policy import Policy
from retrykit._internal.validation import invalid_setting
from retrykit.config._foreign._conditions import conditions_named
from retrykit.config._foreign._document import Document, Place
from retrykit.config._foreign._format import Format
from retrykit.config._foreign._section import Remarks, Section
from retrykit.config._foreign._values import text
from retrykit.schedules import Schedule, constant, sequence

__all__ = ["FORMAT"]


def _find(root: Section) -> Iterator[tuple[str, Section]]:
    """Yield the lines of the section ``retry``, or a table whose ``retry`` has rules.

    A line is named by its pattern, and by its error as well if the pattern is repeated.
    """
    written = root.data.get("retry")
    if isinstance(written, str) and re.match(r"\s*[FGHfgh]\s*,", written):
        yield "", root
    if not isinstance(root.document.data, str):
        return
    tables = _lines_as_tables(root).sections("retry")
    patterns = [each.data["pattern"] for each in tables]
    for table in tables:
        pattern, error = table.data["pattern"], table.data["error"]
        yield f"{pattern} {error}" if patterns.count(pattern) > 1 else pattern, table


_LINE = re.compile(
    r'(?P<pattern>"(?:\\.|[^"\\])*"|\S+)\s+(?P<error>\S+)\s*'
    r'(?:senders\s*=\s*(?P<senders>"(?:\\.|[^"\\])*"|\S+))?\s*(?P<rules>.*)'
)


class _Line(NamedTuple):
    """A line with its continuation lines, and whether it is in a conditional part."""

    number: int
    text: str
    conditional: bool


def _logical_lines(text: str) -> Iterator[_Line]:
    """Yield the lines of a configuration, without comments and directives."""
    begun, first, depth = "", 0, 0
    for number, physical in enumerate(text.split("\n"), 1):
        line = physical.strip()
        if line.startswith("."):
            word = line[1:].split(maxsplit=1)[:1]
            depth += word in (["ifdef"], ["ifndef"])
            depth -= word == ["endif"]
        if line.startswith(("#", ".")):
            continue
        first = first if begun else number
        begun += line
        if begun.endswith("\\"):
            begun = begun[:-1]
        elif begun:
            yield _Line(first, begun, depth > 0)
            begun = ""
    if begun:
        yield _Line(first, begun, depth > 0)


def _lines_of_section(text: str, name: str) -> Iterator[_Line]:
    """Yield the lines of a section; the part before the first section is named main."""
    current = "main"
    for line in _logical_lines(text):
        begin = re.fullmatch(r"begin\s+(\w+)", line.text, re.IGNORECASE)
        if begin:
            current = begin[1].lower()
        elif current == name:
            yield line


def _lines_as_tables(root: Section) -> Section:
    """Return the lines of the section ``retry`` as tables, with their line numbers."""
    longest = ""
    for line in _lines_of_section(root.document.data, "main"):
        option = re.fullmatch(r"retry_interval_max\s*=\s*(.*)", line.text)
        longest = option[1] if option else longest
    tables: list[dict[str, Any]] = []
    lines: dict[Place, int] = {}
    for index, line in enumerate(_lines_of_section(root.document.data, "retry")):
        match = _LINE.fullmatch(line.text)
        groups = match.groupdict() if match else {"pattern": line.text, "error": ""}
        table = groups | {"conditional": line.conditional}
        tables.append(table | ({"retry_interval_max": longest} if longest else {}))
        lines[*root.place, "retry", index] = line.number
    document = Document(root.document.name, root.document.data, lines)
    remarks = Remarks(document, root.remarks.errors)
    return Section(remarks, root.place, {"retry": tables})


class _Rule(NamedTuple):
    """A rule for delays.

    Attributes:
        letter: ``"F"``, ``"G"`` or ``"H"``: fixed, growing or random delays.
        cutoff: When the rule ends, in seconds since the first failure.
        interval: The shortest delay of the rule, in seconds; for F, every delay.
        thousandths: The factor by which the delays grow, times 1000.
    """

    letter: str
    cutoff: int
    interval: int
    thousandths: int

    def gap(self, last: int) -> int:
        """Return the delay after a delay of *last*, in seconds; for H, the longest."""
        grown = last * self.thousandths // _ONE
        if self.letter == "G" and last >= self.interval:
            return grown
        return max(grown, self.interval) if self.letter == "H" else self.interval


def _read(section: Section) -> Policy:
    longest = section.get("retry_interval_max", _time, _DAY)
    if "error" not in section:
        rules = section.require("retry", text)
        return _policy(section, "retry", rules, Exception, longest)
    error = section.data["error"]
    if not _ERRORS.fullmatch(error):
        rule = "an error of Exim after the pattern, such as * or refused"
        raise invalid_setting("error", rule, error)
    if section.data["senders"]:
        section.note("senders", f"for messages of {section.data['senders']} alone")
    if section.data["conditional"]:
        section.note("rules", "only where its .ifdef or .ifndef holds")
    on = conditions_named(section, "error", [error.lower()], _KNOWN, "Exim")
    return _policy(section, "rules", section.data["rules"], on or Exception, longest)


_DAY = 86_400
_ERRORS = re.compile(
    r"\*|quota(_\w+)?|refused(_(MX|A))?|timeout(_(A|MX|connect(_A|_MX)?|DNS))?|lookup"
    r"|(mail|rcpt|data)_4([0-9][0-9x]|xx)|auth_failed|lost_connection|tls_required",
    re.IGNORECASE,
)
_KNOWN: dict[str, Condition] = {
    "*": Exception,
    "refused": ConnectionRefusedError,
    "timeout": TimeoutError,
}


def _policy(
    section: Section, key: str, written: str, on: Condition, longest: int
) -> Policy:
    rules = _parse_rules(key, written)
    if not rules:
        section.note(key, "empty, and so nothing is retried")
        return Policy(max_attempts=1, on=on)
    told = "temporary errors alone are retried, when the next queue runner comes"
    section.differs(key, f"{told}; the policy retries every error, at that time")
    if any(rule.letter == "H" for rule in rules):
        told = "the delays of H are random; the policy waits the longest of them"
        section.differs(key, told)
    # An attempt after the last cutoff is the last one.
    cutoff = max(rule.cutoff for rule in rules)
    schedule = _schedule([*_runs(rules, min(longest, _DAY))])
    return Policy(schedule=schedule, on=on, max_elapsed=cutoff, deadline="overshoot")


def _parse_rules(key: str, written: str) -> list[_Rule]:
    rules: list[_Rule] = []
    rest = written.strip()
    while rest:
        match = _RULE.match(rest)
        macro = re.match(r"[A-Z_]*[A-Z][A-Z0-9_]+", rest)
        if macro or not match:
            rule = "written as in F,2h,15m; G,16h,1h,1.5"
            suggestion = f"write out the macro {macro[0]}" if macro else ""
            raise invalid_setting(key, rule, rest, suggestion)
        letter, cutoff, interval, factor = (x for x in match.groups() if x is not None)
        times = _time("cutoff", cutoff), _time("interval", interval)
        rules.append(_Rule(letter.upper(), *times, _thousandths(factor or "1")))
        rest = rest[match.end() :]
    return rules


_RULE = re.compile(
    r"(?:([Ff]),\s*(\w+),\s*(\w+)()|([GHgh]),\s*(\w+),\s*(\w+),\s*([0-9.]+))\s*(?:;\s*|$)"
)


def _time(name: str, value: Any) -> int:
    parts = (
        re.findall(r"([0-9]{1,9})([wdhms])", value) if isinstance(value, str) else []
    )
    found = sum(int(number) * _UNITS[unit] for number, unit in parts)
    if not 0 < found < 2**31 or "".join(map("".join, parts)) != value:
        raise invalid_setting(
            name, "a time > 0 such as 1h30m (w, d, h, m, s)", value, code="out-of-range"
        )
    return found


_UNITS = {"w": 7 * _DAY, "d": _DAY, "h": 3600, "m": 60, "s": 1}


def _thousandths(written: str) -> int:
    found = re.fullmatch(r"([0-9]{1,6})(?:\.([0-9]*))?", written)
    value = int(found[1] + f"{found[2] or ''}000"[:3]) if found else 0
    if value < _ONE:
        raise invalid_setting(
            "factor", "a number >= 1 such as 1.5", written, code="out-of-range"
        )
    return value


_ONE = 1000


def _runs(rules: list[_Rule], longest: int) -> Iterator[tuple[int, int]]:
    """Yield each delay in seconds, and how many times in a row it is used."""
    elapsed = last = 0
    for rule in rules:
        while elapsed <= rule.cutoff:
            last = min(rule.gap(last), longest)
            steady = min(rule.gap(last), longest) == last
            times = (rule.cutoff - elapsed) // last + 1 if steady else 1
            yield last, times
            elapsed += last * times


def _schedule(runs: list[tuple[int, int]]) -> Schedule:
    """Return the delays; the last one repeats until the policy ends."""
    *before, (last, _) = runs
    parts: list[Schedule] = []
    for single, group in groupby(before, lambda run: run[1] == 1):
        if single:
            parts.append(sequence([gap for gap, _ in group]))
        else:
            parts += [constant(gap).take(times) for gap, times in group]
    schedule: Schedule = constant(last)
    for part in reversed(parts):
        schedule = part.then(schedule)
    return schedule


FORMAT: Final = Format("retry rules of Exim", _find, _read)
"""Lines of the section ``begin retry``, or the rules of one."""
