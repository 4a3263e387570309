"""Tables of every setting, in ``docs/settings.md``: ``python -m docs._site.settings``.

Names, defaults, units, bounds and meanings are read from signatures and docstrings,
and what contradicts another setting from the errors of examples.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args, get_origin

import retrykit
from retrykit import ConfigError, Hedge, Policy, Rule, budgets, limits, streams
from retrykit._conditions import format_value
from retrykit._core.settings import SETTINGS
from retrykit._core.timeouts import AsArgument
from retrykit._internal.durations import format_duration
from retrykit.config._environment import MUTUALLY_EXCLUSIVE, VARIABLES
from retrykit.simulate import Clients, Outage, Server, Users, contend, simulate

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = [
    "CONTRADICTIONS",
    "PAGE",
    "check_page",
    "contradiction",
    "parameters",
    "with_tables",
]

PAGE: Final = Path(__file__).parents[1] / "settings.md"
_TABLE: Final = re.compile(
    r"(<!-- table of (\w+):.*?-->\n).*?(<!-- end -->)", re.DOTALL
)

_OWNERS: Final[dict[str, Callable[..., Any]]] = {
    "Policy": Policy,
    **{each.__name__: each for each in (Rule, AsArgument, Hedge)},
    **{
        name: getattr(module, name)
        for module, names in (
            (limits, ("CircuitBreaker", "RateLimit", "Concurrency")),
            (limits, ("AdaptiveRateLimit", "AIMD", "Gradient2", "Vegas", "Registry")),
            (budgets, ("TokenBucket", "RatioBudget", "Throttle", "FleetBudget")),
            (streams, ("until_first_item", "restart", "resume")),
        )
        for name in names
    },
    **{
        each.__name__: each
        for each in (simulate, Clients, Server, Outage, Users, contend)
    },
}

_GUIDES: Final = {
    "schedule": "schedules.md",
    "max_attempts": "policies.md#limits",
    "max_elapsed": "policies.md#limits",
    "limits": "policies.md#limits",
    "on": "policies.md#mistakes-in-the-code",
    "exception_groups": "policies.md#exception-groups",
    "rules": "policies.md#rules",
    "hint": "avoiding_retry_storms.md#hints",
    "budget": "avoiding_retry_storms.md#budgets",
    "admission": "circuit_breakers.md",
    "hedge": "hedging.md",
    "attempt_timeout": "avoiding_retry_storms.md#attempt-timeouts",
    "nested": "avoiding_retry_storms.md#nested-calls",
    "fallback": "policies.md#fallback-values",
    "stop_event": "policies.md#interrupting-the-wait",
    "redact": "state.md#secrets",
    "observers": "state.md#events",
    "max_failures": "state.md#memory",
}
"""Where a guide explains a setting of a policy."""

CONTRADICTIONS: Final[dict[str, tuple[str, ...]]] = {
    "Policy": (
        "Policy(deadline='clip', max_elapsed=None)",
        "Policy(limits='all', max_attempts=5)",
        "Policy(limits='all', max_attempts=9, max_elapsed='1m', schedule=[1, 2])",
        "Policy(max_elapsed='1s', schedule=['5s', '5m'])",
        "Policy(schedule=[])",
        "Policy(on=())",
        "Policy(give_up_on=OSError, on=ConnectionError)",
        "Policy(give_up_on=OSError, rules=[Rule(on=TimeoutError, max_attempts=2)])",
        "Policy(rules=[Rule(on=OSError, max_attempts=2)] * 2)",
        "retry(attempt_timeout='5s')(len)",
        "retry(hedge=Hedge('50ms'))(len)",
        "retrying(hedge=Hedge('50ms'))",
        "retrying(fallback=None)",
    ),
    "Rule": ("Rule(max_attempts=2)", "Rule(on=OSError)"),
    "Hedge": ("Hedge('50ms', quantile=0.95)",),
    "CircuitBreaker": (
        "limits.CircuitBreaker(slow_rate=0.5)",
        "limits.CircuitBreaker(window=10, minimum_calls=20)",
        "limits.CircuitBreaker(probes=2, successes=3)",
    ),
    "Concurrency": (
        "limits.Concurrency(5, max_wait='2s')",
        "limits.Concurrency(5, order='lifo')",
    ),
    "AIMD": (
        "limits.AIMD(max_limit=10)",
        "limits.AIMD(initial_limit=10)",
    ),
    "Gradient2": (
        "limits.Gradient2(max_limit=10)",
        "limits.Gradient2(initial_limit=10)",
    ),
    "Vegas": (
        "limits.Vegas(max_limit=10)",
        "limits.Vegas(alpha=9)",
    ),
    "restart": ("streams.restart(failures='in_a_row')",),
    "simulate": (
        "simulate(Policy(), load=Users(300))",
        "simulate(Policy(sleep=print))",
        "simulate(Policy(on=ValueError))",
    ),
    "Clients": ("Clients(Policy(attempt_timeout='3s'), timeout='2s')",),
    "Server": ("Server(queue_bound='1ms')",),
    "Outage": ("Outage('10s', 'refuse', retry_after='1s')",),
}
"""Calls whose settings contradict each other, for each table."""


class Parameter(NamedTuple):
    """A setting, as its signature and its docstring have it."""

    name: str
    default: object
    kind: object
    text: str


def parameters(owner: Callable[..., Any]) -> Iterator[Parameter]:
    """Yield the settings of a class or a function.

    Raises:
        LookupError: The docstring has no entry for a setting.
    """
    entries = _entries(inspect.getdoc(owner) or "")
    for name, (default, kind) in _signature(owner).items():
        if name not in entries:
            msg = f"{name} of {owner.__qualname__} has no entry in its docstring"
            raise LookupError(msg)
        yield Parameter(name, default, kind, entries[name])


def _signature(owner: Callable[..., Any]) -> dict[str, tuple[object, object]]:
    """Return default and type of each parameter, by its name."""
    if owner is Policy:
        kinds = inspect.get_annotations(Policy)
        return {name: (getattr(Policy, name), kinds[name]) for name in SETTINGS}
    found = inspect.signature(owner).parameters.values()
    return {each.name: (each.default, each.annotation) for each in found}


def _entries(docstring: str) -> dict[str, str]:
    """Return the entries of the section "Args" by their names."""
    section = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", docstring, re.MULTILINE | re.DOTALL)
    if section is None:
        return {}
    parts = re.split(r"^    (?=\w)", section[1], flags=re.MULTILINE)[1:]
    named = (each.partition(": ") for each in parts)
    return {name: " ".join(text.split()) for name, _, text in named}


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.) (?=[^a-z])", text)


def _clauses(text: str) -> list[str]:
    return [each.rstrip(".;") for each in re.split(r"(?<=[.;]) ", text)]


def _meaning(each: Parameter) -> str:
    """Return the first sentence of an entry, or all that say what to choose."""
    sentences = _sentences(each.text)
    said = [any(word in x for word in _options(each)) for x in sentences]
    last = max((index for index, found in enumerate(said) if found), default=0)
    return " ".join(sentences[: last + 1]).rstrip(".")


def _options(each: Parameter) -> list[str]:
    chosen = get_origin(each.kind) is Literal
    return [f'"{word}"' for word in get_args(each.kind)] if chosen else []


_UNIT: Final = re.compile(
    "(?:A duration|Count|Dimensionless|Integer|Factor|Tokens(?=,)|Retries(?=,)).*"
)
_NUMBER: Final = r"(?:2\*\*53 - 1|\d(?:[\d.,]*\d)?)(?: [smhd]\b)?"
_WITHIN: Final = re.compile(
    rf"(?:a duration )?(?:{_NUMBER} <=? \w+ <=? |>=? ?|{_NUMBER} to ){_NUMBER}"
)


def _values(each: Parameter) -> str:
    """Return the unit and the bounds of a setting, or the words to choose from."""
    clauses = _clauses(each.text)
    without = [x for x in clauses if re.match("None.* is unlimited", x)]
    unit = next(filter(_UNIT.fullmatch, clauses), "")
    if options := _options(each):
        shown = options
    elif each.kind is bool:
        shown = ["True", "False"]
    elif unit:
        return "; ".join([unit[0].lower() + unit[1:], *without[:1]])
    else:
        return "; ".join(_WITHIN.findall(each.text))
    return ", ".join(f"`{word}`" for word in shown)


def _default(each: Parameter) -> str:
    """Return the default, in the words of the docstring if these say more."""
    if each.default is inspect.Parameter.empty:
        return "required"
    value = _code(each)
    said = "" if isinstance(each.default, bool | str) else _said(each.text)
    if said in {"", "None", "Empty"}:
        return value
    number = isinstance(each.default, int | float)
    return said if not number or re.search(r"\d", said) else f"{value}, {said}"


def _said(text: str) -> str:
    """Return the default in the words of an entry; empty if there are none."""
    for clause in _clauses(text):
        if found := re.fullmatch(r"[Bb]y default (.*)|(.*?),? by default", clause):
            return found[1] or found[2]
    return ""


def _code(each: Parameter) -> str:
    value = each.default
    if isinstance(value, int | float) and not isinstance(value, bool):
        lasts = "duration" in each.text or each.name == "max_elapsed"
        return format_duration(value) if lasts and value else f"{value:g}"
    return f'`"{value}"`' if isinstance(value, str) else f"`{format_value(value)}`"


def _in_markdown(text: str) -> str:
    """Return a part of a docstring as a cell of a table."""
    text = re.sub(
        r"``(.+?)``|(?<!`)`([^`]+)`(?!`)", lambda x: f"`{x[1] or x[2]}`", text
    )
    text = re.sub(r"(?<!\*)\*(\w+)\*(?!\*)", r"`\1`", text)
    return text.replace("|", "\\|")


_NAMES: Final = {
    **{name: getattr(retrykit, name) for name in retrykit.__all__},
    **_OWNERS,
    "limits": limits,
    "streams": streams,
}


def contradiction(example: str) -> tuple[str, str]:
    """Return which setting an example breaks, and the rule that it breaks.

    Raises:
        LookupError: The example is valid.
    """
    try:
        eval(example, _NAMES)  # noqa: S307  one of ours
    except ConfigError as error:
        name, rule = error.message.split(" must be ", 1)
        return name, rule.split(", got ")[0]
    msg = f"{example} contradicts nothing"
    raise LookupError(msg)


def _settings_of(owner: str) -> Iterator[str]:
    """Yield the lines about the settings of a class or a function."""
    head = ("setting", "default", "values", "meaning")
    rows = []
    for each in parameters(_OWNERS[owner]):
        guide = _GUIDES.get(each.name) if owner == "Policy" else None
        name = f"[`{each.name}`]({guide})" if guide else f"`{each.name}`"
        cells = (_default(each), _values(each), _meaning(each))
        rows.append((name, *map(_in_markdown, cells)))
    yield from _rows(head, rows)
    examples = CONTRADICTIONS.get(owner, ())
    if examples:
        yield "\nThese contradict each other:\n"
        rows = [
            (f"`{example}`", *map(_in_markdown, (f"`{name}`", rule)))
            for example in examples
            for name, rule in [contradiction(example)]
        ]
        yield from _rows(("written", "setting", "must be"), rows)


_AS_DATA: Final = {
    "budget": 'a table with a `kind`, such as `{kind = "token_bucket"}`',
    "choice": "one of the words",
    "count": "an integer",
    "duration": 'a duration, such as `"30s"`',
    "errors": "names of exception types, or `name=`, `http=`, `grpc=`, `not=`",
    "flag": "`true` or `false`",
    "hedge": 'a table of its settings, such as `{delay = "50ms", idempotent = true}`',
    "hint": 'the name of a hint, such as `"retry_after"`',
    "limits": 'a list of tables with a `kind`, such as `{kind = "circuit_breaker"}`',
    "number": "a number",
    "results": '`"http=503"`, `"http=5xx"`, or a list of them',
    "rules": "a list of tables of the settings of a `Rule`",
    "schedule": "an expression, or a list of durations",
    "text": "text",
    "timeout": 'a duration, or a table such as `{argument = "timeout", seconds = 5}`',
}


def _files(_: str) -> Iterator[str]:
    """Yield the lines about keys of files and variables of the environment."""
    rows = [
        (
            "`extends`",
            "another policy of the file, or a preset",
            "`PREFIX_EXTENDS`, a preset",
        )
    ]
    for name, each in SETTINGS.items():
        data = "-" if each.form == "code" else _AS_DATA[each.form]
        if each.none in {"unlimited", "absent"}:
            data += '; `"unlimited"`'
        variable = f"`PREFIX_{name.upper()}`" if name.upper() in VARIABLES else "-"
        rows.append((f"`{name}`", data, variable))
    written = {key for key, *_ in rows}
    rows += [
        ("-", "-", f"`PREFIX_{name}`")
        for name in VARIABLES
        if f"`{name.lower()}`" not in written
    ]
    yield from _rows(("key", "in a file", "variable"), rows)
    pairs = (f"`PREFIX_{a}` and `PREFIX_{b}`" for a, b in MUTUALLY_EXCLUSIVE)
    yield f"\nThese contradict each other: {'; '.join(pairs)}."


def _rows(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    for row in [head, ("---",) * len(head), *rows]:
        yield f"| {' | '.join(row)} |"


def with_tables(text: str) -> str:
    """Return the text of the page with the tables as they are now."""

    def renew(found: re.Match[str]) -> str:
        name = found[2]
        lines = _files(name) if name == "files" else _settings_of(name)
        return found[1] + "\n" + "\n".join(lines) + "\n\n" + found[3]

    return _TABLE.sub(renew, text)


def outdated_rows(text: str) -> list[str]:
    """Return the rows that the tables of the page should have, and have not."""
    present = text.splitlines()
    return [row for row in with_tables(text).splitlines() if row not in present]


def check_page(*_: object) -> None:
    """Raise a LookupError if the page lacks a row, as of a new setting."""
    rows = outdated_rows(PAGE.read_text("utf-8"))
    if rows:
        msg = f"run python -m docs._site.settings, since this is new: {rows[0]}"
        raise LookupError(msg)


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register the check with Sphinx."""
    app.connect("builder-inited", check_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), "utf-8")
