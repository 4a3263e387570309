"""Verdicts on presets after outages: ``python -m benchmarks.preset_verdicts``.

Prints the table of docs/presets.md, or the rows of some presets, which are named as
arguments; ``--write`` renews the page. 100 processes make the load of a server of 100
requests per second, which fails for 10 s. All rows take about three minutes on one
processor with numpy.
"""

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from itertools import chain, islice, product
from math import fsum
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from retrykit import Policy, presets
from retrykit.simulate import Clients, Outage, Simulation, simulate

__all__ = ["KINDS", "LOADS", "NOT_RETRIED", "NOT_SIMULATED", "PAGE", "Verdict"]
__all__ += [
    "cell",
    "cell_of",
    "groups",
    "header",
    "main",
    "row",
    "rows_of",
    "verdict_of",
]

LOADS: Final = ("50%", "70%", "90%")
KINDS: Final = ("hang", "refuse", "error")
SEEDS: Final = (1, 2, 3)
PAGE: Final = Path(__file__).parent.parent / "docs" / "presets.md"
BEGIN: Final = "<!-- verdicts -->\n\n"
END: Final = "\n<!-- end of verdicts -->"

NOT_SIMULATED: Final = {
    "client_go": "retries conflicts alone",
    "hostname_verification": "polls, and retries no request",
    "kubernetes": "restarts a container",
    "systemd": "restarts a service",
}
"""The presets that are not about requests to a server that fails."""

NOT_RETRIED: Final = {("pymongo", "hang"), ("pymongo", "refuse")}
"""What a preset is not about: PyMongo's is for commands that a server rejects."""

_TITLES: Final = {"hang": "hang", "refuse": "refused", "error": "503"}
_OUTAGE, _HORIZON = 10.0, 300.0
_WINDOW, _UP = 10, 0.9
_COMPARED = 40


Group = tuple[list[str], Policy]
"""The names of presets with equal decisions, and their policy."""


class Verdict(NamedTuple):
    """What follows an outage, in seconds after it.

    Attributes:
        kind: ``"up"`` if the server recovers, ``"again"`` if it then fails again and
            recovers for good, ``"relapse"`` if it fails again and does not, ``"late"``
            if it recovers in the last quarter of the horizon, ``"down"`` if it never
            does.
        recovery: When it recovers first; None if it does not.
        last: When it has recovered for good, if it fails again; else None.
    """

    kind: str
    recovery: float | None = None
    last: float | None = None


def groups() -> list[Group]:
    """Return the simulated presets, those with equal decisions together."""
    found: dict[Any, Group] = {}
    for name in presets.__all__:
        if name not in NOT_SIMULATED:
            policy = getattr(presets, name)()
            own = [kind for kind in KINDS if (name, kind) in NOT_RETRIED]
            found.setdefault((*_decisions(policy), *own), ([], policy))[0].append(name)
    return [*found.values()]


def _decisions(policy: Policy) -> tuple[Any, ...]:
    """Return what the decisions follow from; no answer has a hint."""
    if policy.max_attempts == 1:
        return (1,)
    retries = min((policy.max_attempts or _COMPARED) - 1, _COMPARED)
    bounds = [policy.schedule.bounds(n) for n in range(1, retries + 1)]
    fixed = all(each is not None and each[0] == each[1] for each in bounds)
    return (
        policy.max_attempts,
        str(bounds) if fixed else repr(policy.schedule),
        policy.max_elapsed,
        policy.deadline,
        repr(policy.budget),
        repr(policy.admission),
        repr(policy.rules),
    )


def verdict_of(result: Simulation) -> Verdict:
    """Return the verdict on a simulation.

    A server that has recovered fails again if less than 90 % of the attempts of ten
    seconds in a row succeed: calls whose delays are long return late.
    """
    first = result.recovery
    if first is None:
        return Verdict("down")
    if result.outcome == "not decided":
        return Verdict("late", first)
    ended = int(cast("tuple[float, float]", result.outage)[1])
    begin = ended + int(first) + 5
    seconds = len(result.load)
    failing = [
        at + _WINDOW
        for at in range(begin, seconds - _WINDOW + 1)
        if sum(result.goodput[at : at + _WINDOW])
        < _UP * sum(result.load[at : at + _WINDOW])
    ]
    if not failing:
        return Verdict("up", first)
    if failing[-1] == seconds:
        return Verdict("relapse", first)
    return Verdict("again", first, float(failing[-1] - ended))


def cell(policy: Policy, kind: str, load: str, seeds: Iterable[int] = SEEDS) -> str:
    """Return the verdict of most seeds, with the means of their times.

    Args:
        policy: The policy.
        kind: The kind of the outage.
        load: A share of the capacity.
        seeds: The seeds.
    """
    every, counts = [*seeds], Counter[str]()
    found: list[Verdict] = []
    for seed in every:
        result = simulate(
            Clients(policy, processes=100),
            load=load,
            outage=Outage(_OUTAGE, cast("Any", kind)),
            horizon=_HORIZON,
            seed=seed,
        )
        found.append(verdict_of(result))
        counts[found[-1].kind] += 1
        if max(counts["down"], counts["late"]) > len(every) / 2:
            # Those of most seeds, which have no times.
            break
    order = ("down", "relapse", "late", "again", "up")
    most = max(order, key=lambda each: counts[each])
    chosen = [each for each in found if each.kind == most]
    first = _mean(each.recovery for each in chosen)
    last = _mean(each.last for each in chosen)
    texts = {"down": "-", "relapse": f"{first} (-)", "late": "?"}
    return texts.get(most, f"{first} ({last})" if most == "again" else first)


def _mean(times: Iterable[float | None]) -> str:
    given = [each for each in times if each is not None]
    return f"{fsum(given) / len(given):.0f}" if given else ""


def row(names: Sequence[str], cells: Sequence[str]) -> str:
    """Return the row of presets with equal decisions."""
    titles = ", ".join(f"`{name}()`" for name in names)
    return f"| {' | '.join([titles, *cells])} |\n"


def header() -> str:
    """Return the first two rows."""
    titles = [f"{_TITLES[kind]}, {load[:-1]} %" for kind in KINDS for load in LOADS]
    heads = ["preset", *titles]
    return f"| {' | '.join(heads)} |\n| {' | '.join(['---'] * len(heads))} |\n"


def cell_of(named: tuple[Group, tuple[str, str]]) -> str:
    """Return the verdict on a group after an outage of a kind, under a load."""
    (names, policy), (kind, load) = named
    if all((name, kind) in NOT_RETRIED for name in names):
        return "not retried"
    return cell(policy, kind, load)


def rows_of(chosen: Iterable[Group], processes: int = 1) -> Iterator[str]:
    """Yield the rows of groups, from simulations in a number of processes."""
    every = [*chosen]
    with ExitStack() as stack:
        pool: Any = None
        if processes > 1:
            pool = stack.enter_context(ProcessPoolExecutor(processes))
        columns = product(every, product(KINDS, LOADS))
        found = (pool.map if pool else map)(cell_of, columns)
        for names, _ in every:
            yield row(names, [*islice(found, len(KINDS) * len(LOADS))])


def main(words: Sequence[str] | None = None) -> int:
    """Print the table, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.preset_verdicts", description=__doc__
    )
    parser.add_argument("presets", nargs="*", help="names of presets; all by default")
    parser.add_argument("--write", action="store_true", help="renew docs/presets.md")
    parser.add_argument("--processes", type=int, default=1, help="run at once (1)")
    given: Any = parser.parse_args(words)
    # Nothing of it takes a minute.
    logging.getLogger("retrykit").addHandler(logging.NullHandler())
    chosen = [
        group
        for group in groups()
        if not given.presets or not set(given.presets).isdisjoint(group[0])
    ]
    table = ""
    for each in chain([header()], rows_of(chosen, given.processes)):
        print(each, end="", flush=True)
        table += each
    if given.presets:
        return 0
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    old, _, after = rest.partition(END)
    if given.write:
        PAGE.write_text(f"{before}{BEGIN}{table}{END}{after}", "utf-8")
    elif old != table:
        print("docs/presets.md has another table: --write renews it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
