"""Previews of policies, and their summary in a few lines."""

from collections.abc import Iterator

from retrykit._internal.durations import format_duration
from retrykit.analysis.preview import Preview, TotalWait, preview
from retrykit.analysis.preview.caveats import caveats, has_other_delays
from retrykit.errors import ConfigError
from retrykit.policy.policy import Policy
from retrykit.policy.timeouts import timeout_seconds
from retrykit.state.records import safe_str

__all__ = ["preview_policy", "summarize"]


def preview_policy(
    name: str,
    policy: Policy,
    *,
    attempt: float,
    retries: int | None = None,
    samples: int = 0,
) -> Preview:
    """Return the preview of a policy, for the values of options."""
    most = max(retries or 0, 1_000)
    try:
        return preview(policy, attempt=attempt, retries=most, samples=samples)
    except ConfigError:
        raise
    except Exception as error:
        msg = f"{name}: its schedule raised {type(error).__name__}: {safe_str(error)}"
        raise ConfigError(msg) from error


def summarize(seen: Preview) -> Iterator[tuple[str, ...]]:
    """Yield the parts of a summary: a label, and the lines beside it."""
    yield "policy", repr(seen.policy)
    yield "ends", *_ends(seen)
    if seen.soonest is not None:
        yield "calls", f"{_calls(seen)} for a request that fails every time"
    if seen.total_wait:
        yield "waits", _total_wait(seen.total_wait)
    if seen.worst is not None:
        took = seen.attempt or timeout_seconds(seen.policy.attempt_timeout)
        attempts = f" with attempts of {format_duration(took)}" if took else ""
        basis = ", by the common schedule" if has_other_delays(seen.policy) else ""
        yield "at worst", f"{format_duration(seen.worst)} in total{attempts}{basis}"
    notes = "; ".join(caveats(seen.policy))
    if notes:
        yield "notes", notes


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


def _total_wait(wait: TotalWait) -> str:
    values = {each.value for each in wait.quantiles}
    if len(values) == 1 and not wait.error:
        return f"{format_duration(wait.mean)} in total"
    quantiles = {each.share: each for each in wait.quantiles}
    median, most = quantiles[0.5], quantiles[0.95]
    text = f"{format_duration(wait.mean)} on average; half of the calls up to "
    text += f"{format_duration(median.value)}, 95% up to {format_duration(most.value)}"
    if not wait.samples:
        return f"{text} (exact)"
    error = max(median.error, most.error)
    return f"{text} ({wait.samples:,} calls simulated, ± {format_duration(error)})"
