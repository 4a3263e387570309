"""What a preview says in a few lines: its ends, totals and calls."""

from collections.abc import Iterator

from retrykit.durations import readable
from retrykit.preview import Preview, Window

__all__ = ["summary"]

_SHOWN = (0.05, 0.5, 0.95)


def summary(seen: Preview) -> Iterator[tuple[str, str]]:
    """Give what there is to say, each with its name."""
    yield "policy", repr(seen.policy)
    yield "ends", "\n".join(_ends(seen))
    if seen.calls:
        yield "calls", f"{_calls(seen)} for a request that fails every time"
    if seen.window:
        yield "waits", _window(seen.window)
    if seen.worst is not None:
        took = f" with attempts of {readable(seen.attempt)}" if seen.attempt else ""
        yield "at worst", f"{readable(seen.worst)} in all{took}"


def _ends(seen: Preview) -> Iterator[str]:
    if seen.end:
        yield str(seen.end)
    elif seen.limits or seen.policy.max_attempts or seen.policy.max_elapsed:
        yield f"not within the first {len(seen.rows)} retries"
    else:
        yield "never: no setting ends it"
    for name, end in seen.limits.items():
        if seen.end is None or name not in seen.end.reasons:
            yield f"{name} alone: {str(end).rpartition(':')[0]}"


def _calls(seen: Preview) -> str:
    fewest, most = seen.calls or (0, 0)
    if fewest == most:
        return f"{most}"
    mean = seen.window and f", {seen.window.calls:.1f} on average"
    return f"{fewest} to {most}{mean or ''}"


def _window(window: Window) -> str:
    mean = f"{readable(window.mean)} on average"
    known = {each.share: each for each in window.quantiles}
    if len({each.value for each in window.quantiles}) == 1 and not window.samples:
        return f"{readable(window.mean)} in all"
    shares = ", ".join(
        f"{share:.0%} of calls up to {readable(known[share].value)}" for share in _SHOWN
    )
    error = max(known[share].error for share in _SHOWN)
    source = "exact"
    if window.samples:
        source = f"{window.samples:,} calls drawn, ± {readable(error)}"
    return f"{mean}; {shares} ({source})"
