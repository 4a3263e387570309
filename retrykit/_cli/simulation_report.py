"""Results of simulations as text, JSON and CSV."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console

from retrykit._cli.terminal import build_figures, build_pairs, print_uncut
from retrykit._cli.time_chart import build_time_chart
from retrykit._internal.durations import duration_in_words, format_duration
from retrykit.simulate._changes import Change
from retrykit.simulate._results import Simulation

__all__ = ["as_csv", "as_data", "count_verdicts", "print_change", "print_report"]


def count_verdicts(results: Sequence[Simulation]) -> str:
    """Return the verdict on the simulations of one or more seeds."""
    if len(results) == 1:
        return results[0].verdict
    if results[0].outage is None:
        calls = sum(each.calls for each in results)
        share = sum(each.succeeded for each in results) / max(calls, 1)
        return f"no outage: {share:.1%} of the calls succeed"
    times = [each.recovery for each in results if each.outcome == "recovers"]
    text = f"recovers in {len(times)} of {len(results)}"
    known = [time for time in times if time is not None]
    if known:
        text += f", mean {duration_in_words(sum(known) / len(known))}"
    outcomes = Counter(each.outcome for each in results)
    for other in ("fails again", "not decided", "interrupted"):
        if outcomes[other]:
            text += f"; {other} in {outcomes[other]}"
    return text


def print_report(
    out: Console, names: Sequence[str], results: Sequence[Simulation]
) -> None:
    """Print the verdict, the settings, the figures, and load and goodput over time."""
    first = results[0]
    out.print(f"{', '.join(names)}: {count_verdicts(results)}", style="bold")
    out.print()
    out.print(build_pairs(_settings(first)))
    out.print()
    heads = ["seed", "recovery", "peak", "at the end", "per call", "succeed"]
    rows = [_figures(each) for each in results]
    print_uncut(out, build_figures([*heads, "p50", "p95", "p99"], rows))
    out.print()
    load = [each / first.normal for each in first.load]
    goodput = [each / first.normal for each in first.goodput]
    most = max(1.0, *load, *goodput)
    for title, numbers, color in (
        ("load, as a multiple of normal", load, "red"),
        ("goodput", goodput, "green"),
    ):
        chart = build_time_chart(
            title, numbers, out, color=color, most=most, shaded=first.outage
        )
        print_uncut(out, chart)


def _settings(result: Simulation) -> Iterator[tuple[str, ...]]:
    for name, value in result.settings.items():
        label = name.replace("_", " ")
        if name in {"network", "horizon"}:
            yield label, format_duration(value)
        elif isinstance(value, list):
            # Those of a 503 are alike, unless the outage has a header.
            yield (label, *dict.fromkeys(map(str, value)))
        elif name != "seed":
            yield label, str(value)


def _figures(result: Simulation) -> list[str]:
    recovery = result.recovery
    waits = (result.p50, result.p95, result.p99)
    return [
        str(result.settings["seed"]),
        "-" if recovery is None else format_duration(recovery),
        f"{result.peak:.1f}x",
        f"{result.final_load:.1f}x",
        f"{result.amplification:.2f}",
        f"{result.succeeded / max(result.calls, 1):.1%}",
        *("-" if each is None else format_duration(each) for each in waits),
    ]


def print_change(out: Console, change: Change | None, *, searched: bool) -> None:
    """Print the smallest change that lets the server recover, or that none is known."""
    out.print()
    if not searched:
        out.print("--suggest searches for the smallest change that lets it recover.")
    elif change is None:
        out.print("No small change lets it recover with three seeds.")
    else:
        out.print(f"Smallest change: {change}", style="bold", soft_wrap=True)


def as_data(results: Sequence[Simulation], change: Change | None) -> dict[str, Any]:
    """Return results as plain data, for JSON."""
    found = None
    if change is not None:
        found = {"words": change.words, "simulation": change.simulation.to_dict()}
    return {
        "verdict": count_verdicts(results),
        "change": found,
        "simulations": [each.to_dict() for each in results],
    }


def as_csv(results: Sequence[Simulation]) -> str:
    """Return the numbers of each second as CSV, with the seed if there are several."""
    if len(results) == 1:
        return results[0].to_csv()
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for index, each in enumerate(results):
        head, *body = csv.reader(io.StringIO(each.to_csv()))
        if not index:
            rows.writerow(["seed", *head])
        rows.writerows([each.settings["seed"], *row] for row in body)
    return text.getvalue()
