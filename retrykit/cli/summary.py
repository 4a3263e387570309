"""What a preview says in a few lines: its ends, totals and calls."""

from collections.abc import Iterator

from retrykit.conditions import shown
from retrykit.durations import readable
from retrykit.policy import Policy
from retrykit.preview import Preview, Quantile, Window
from retrykit.timeouts import AsArgument

__all__ = ["summary"]


def summary(seen: Preview) -> Iterator[tuple[str, str]]:
    """Give what there is to say, each with its name."""
    yield "policy", repr(seen.policy)
    yield "ends", "\n".join(_ends(seen))
    if seen.soonest is not None:
        yield "calls", f"{_calls(seen)} for a request that fails every time"
    if seen.window:
        yield "waits", _window(seen.window)
    if seen.worst is not None:
        longer = any(rule.schedule is not None for rule in seen.policy.rules)
        known = ", by the common schedule" if longer or seen.policy.hint else ""
        yield "at worst", f"{readable(seen.worst)} in all{_took(seen)}{known}"
    besides = "; ".join(_besides(seen.policy))
    if besides:
        yield "besides", besides


def _took(seen: Preview) -> str:
    limit = seen.policy.attempt_timeout
    if seen.attempt:
        return f" with attempts of {readable(seen.attempt)}"
    return "" if limit is None else f" with attempts of {readable(_length(limit))}"


def _length(limit: float | AsArgument) -> float:
    return limit.seconds if isinstance(limit, AsArgument) else limit


def _besides(policy: Policy) -> Iterator[str]:
    """Give what may make a call another one than the figures tell."""
    own = [shown(rule.on) for rule in policy.rules if rule.schedule is not None]
    few = [shown(rule.on) for rule in policy.rules if rule.schedule is None]
    if own:
        yield f"delays of their own for {', '.join(own)}"
    if few:
        yield f"attempts of their own for {', '.join(few)}"
    if policy.hint is not None:
        cap = policy.hint_cap
        most = "" if cap is None else f", up to {readable(cap)}"
        yield f"a hint may ask for other delays{most}"
    if policy.budget is not None:
        yield "a budget must pay for each retry"
    if policy.attempt_timeout is not None:
        yield f"each attempt takes {readable(_length(policy.attempt_timeout))} at most"
    if policy.outer != "respect":
        does = "retried" if policy.outer == "retry" else "a NestedRetryError"
        yield f"a call inside of it that has given up is {does}"


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
    mean = seen.window and f", {seen.window.calls:.1f} on average"
    return f"{fewest} {f'to {most}' if most else 'or more'}{mean or ''}"


def _window(window: Window) -> str:
    values = {each.value for each in window.quantiles}
    if len(values) == 1 and not window.error:
        return f"{readable(window.mean)} in all"
    median, most = (_quantile(window, share) for share in (0.5, 0.95))
    told = f"{readable(window.mean)} on average; half of the calls up to "
    told += f"{readable(median.value)}, 95% up to {readable(most.value)}"
    if not window.samples:
        return f"{told} (exact)"
    error = max(median.error, most.error)
    return f"{told} ({window.samples:,} calls drawn, ± {readable(error)})"


def _quantile(window: Window, share: float) -> Quantile:
    return next(each for each in window.quantiles if each.share == share)
