"""HTML page of a report: a summary, and each site with a chart of its delays."""

import math
from collections.abc import Iterator
from html import escape
from typing import Final

from retrykit.audit._delays import describe_duration
from retrykit.audit._findings import Finding, Report
from retrykit.audit._formats import by_site
from retrykit.audit._sites import Behavior, Site

__all__ = ["as_page", "summary"]

_SHOWN: Final = 10
"""The most retries that a chart shows."""
_WIDTH: Final = 260
_HEIGHT: Final = 56
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --bar: #3b7dd8; --bad: #c2410c }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem;
  padding: 0 1rem }
h1 { font-size: 1.4rem } h1 + p { color: GrayText }
article { border-top: 1px solid var(--line); display: grid; gap: 0 1.5rem;
  grid-template-columns: 1fr 260px; padding: .9rem 0 }
h2 { font: 600 .95rem ui-monospace, monospace; margin: 0; overflow-wrap: anywhere }
h2 span { color: GrayText; font-weight: 400 }
article > * { grid-column: 1 } article p { margin: .2rem 0 }
article ul { margin: .3rem 0 0; padding-left: 1.1rem }
li b { color: var(--bad); font-family: ui-monospace, monospace; font-weight: 600 }
article svg { grid-column: 2; grid-row: 1 / span 3; height: 74px; width: 260px }
rect { fill: var(--bar) } rect.random { opacity: .4 }
text { fill: GrayText; font: 11px system-ui, sans-serif }
@media (max-width: 40rem) { article { grid-template-columns: 1fr }
  article svg { grid-column: 1; grid-row: auto; margin-top: .5rem } }
"""


def as_page(report: Report) -> str:
    """Return a report as an HTML page, which needs no other files."""
    return "".join(_page(report))


def _page(report: Report) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width">\n'
    yield f"<title>Retries</title>\n<style>{_STYLE}</style>\n<h1>Retries</h1>\n"
    yield f"<p>{escape(summary(report))}</p>\n"
    for site, findings in by_site(report):
        yield from _article(site, findings)
    if report.problems:
        yield "<h1>Not read</h1>\n<ul>\n"
        yield from (f"<li>{escape(str(each))}</li>\n" for each in report.problems)
        yield "</ul>\n"


def _article(site: Site, findings: list[Finding]) -> Iterator[str]:
    name = site.function.rpartition(".")[2]
    of = f" {name} · {site.library}" if name else f" {site.library}"
    yield f"<article>\n<h2>{escape(site.path)}:{site.line}"
    yield f"<span>{escape(of)}</span></h2>\n<p>{escape(str(site.behavior))}</p>\n"
    if findings:
        yield "<ul>\n"
        for each in findings:
            text = escape(f"{each.message}; {each.fix}")
            yield f"<li><b>{escape(each.rule)}</b> {text}</li>\n"
        yield "</ul>\n"
    yield from _chart(site.behavior)
    yield "</article>\n"


def _chart(behavior: Behavior) -> Iterator[str]:
    """Yield a chart of the first delays, unless they are unknown, infinite or all 0."""
    bars = _bars(behavior)
    top = max((high for _, high in bars), default=0.0)
    if not top:
        return
    step = _WIDTH / _SHOWN
    yield f'<svg viewBox="0 0 {_WIDTH} 74" role="img" aria-label="delays">\n'
    for index, (low, high) in enumerate(bars):
        x = round(index * step, 1)
        sure, most = (round(each / top * _HEIGHT, 1) for each in (low, high))
        width = round(step - 4, 1)
        if most > sure:
            yield _rect(x, width, most, ' class="random"')
        yield _rect(x, width, sure, "")
    first, last = (describe_duration(high) for _, high in (bars[0], bars[-1]))
    end = "…" if _exceeds_chart(behavior) else ""
    text = first if first == last else f"{first} to {last}{end}"
    count = f"{len(bars)}{end and '+'}"
    noun = "retry" if count == "1" else "retries"
    yield f'<text x="0" y="71">{text}, {count} {noun}</text>\n</svg>\n'


def _rect(x: float, width: float, height: float, more: str) -> str:
    y = round(_HEIGHT - height, 1)
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}"{more}/>\n'


def _exceeds_chart(behavior: Behavior) -> bool:
    return behavior.calls is None or behavior.calls - 1 > _SHOWN


def _bars(behavior: Behavior) -> list[tuple[float, float]]:
    """Return the shortest and longest delay before each of the first retries.

    The list is empty if a delay is unknown or infinite.
    """
    calls = _SHOWN + 1 if behavior.calls is None else behavior.calls
    delays = behavior.delays
    found = []
    for retry in range(1, int(min(calls - 1, _SHOWN)) + 1):
        high = delays.longest(retry)
        if high is None or not math.isfinite(high):
            return []
        low = 0.0 if delays.jitter is None else (high - delays.added) * delays.low
        found.append((min(max(low, 0.0), high), high))
    return found


def summary(report: Report) -> str:
    """Return the numbers of a report in one line."""
    if not report.files and not report.problems:
        return "no Python files found"
    sites = len(report.sites)
    wrong = len({each.site for each in report.findings})
    text = f"{_count(len(report.findings), 'finding')}"
    if report.findings:
        text += f" at {wrong} of {_count(sites, 'site')}"
    else:
        text += f" at {_count(sites, 'site')}"
    text += f", in {_count(report.files, 'file')} with {_count(report.lines, 'line')}"
    if report.ignored:
        text += f"; {report.ignored:,} ignored"
    if report.problems:
        text += f"; {_count(len(report.problems), 'problem')}"
    return text


def _count(number: int, noun: str) -> str:
    if not number:
        return f"no {noun}s"
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
