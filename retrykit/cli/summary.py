"""What a preview says in a few lines: its ends, totals and calls."""

from collections.abc import Iterator

from retrykit._internal.durations import format_duration
from retrykit.analysis.preview import Preview, Quantile, TotalWait
from retrykit.analysis.preview.caveats import caveats, has_other_delays
from retrykit.policy.timeouts import timeout_seconds

__all__ = ["summary"]


def summary(seen: Preview) -> Iterator[tuple[str, ...]]:
    """Give what there is to say: a name, and the lines that belong to it."""
    yield "policy", repr(seen.policy)
    yield "ends", *_ends(seen)
    if seen.soonest is not None:
        yield "calls", f"{_calls(seen)} for a request that fails every time"
    if seen.total_wait:
        yield "waits", _window(seen.total_wait)
    if seen.worst is not None:
        known = ", by the common schedule" if has_other_delays(seen.policy) else ""
        yield "at worst", f"{format_duration(seen.worst)} in all{_took(seen)}{known}"
    besides = "; ".join(caveats(seen.policy))
    if besides:
        yield "besides", besides


def _took(seen: Preview) -> str:
    took = seen.attempt or timeout_seconds(seen.policy.attempt_timeout)
    return f" with attempts of {format_duration(took)}" if took else ""


def _ends(seen: Preview) -> Iterator[str]:
    if seen.end:
        yield str(seen.end)
    elif seen.soonest is not None:
        yield f"stops after retry {seen.soonest} or later: delays may be near zero"
    elif seen.limits or seen.policy.max_attempts or seen.policy.max_elapsed:
        yield f"not within the first {len(seen.rows)} retries"
    else:
        yield "never: no setting ends it"
    for name, end in seen.limits.items():
        if seen.end is None or name not in seen.end.reasons:
            yield f"{name} alone: {str(end).rpartition(':')[0]}"


def _calls(seen: Preview) -> str:
    fewest = (seen.soonest or 0) + 1
    most = seen.calls and seen.calls[1]
    if fewest == most:
        return f"{most}"
    mean = seen.total_wait and f", {seen.total_wait.calls:.1f} on average"
    return f"{fewest} {f'to {most}' if most else 'or more'}{mean or ''}"


def _window(window: TotalWait) -> str:
    values = {each.value for each in window.quantiles}
    if len(values) == 1 and not window.error:
        return f"{format_duration(window.mean)} in all"
    median, most = (_quantile(window, share) for share in (0.5, 0.95))
    told = f"{format_duration(window.mean)} on average; half of the calls up to "
    told += f"{format_duration(median.value)}, 95% up to {format_duration(most.value)}"
    if not window.samples:
        return f"{told} (exact)"
    error = max(median.error, most.error)
    return f"{told} ({window.samples:,} calls drawn, ± {format_duration(error)})"


def _quantile(window: TotalWait, share: float) -> Quantile:
    return next(each for each in window.quantiles if each.share == share)
