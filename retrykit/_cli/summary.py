"""Previews of policies, and their summaries."""

from collections.abc import Iterator

from retrykit._core.policy import Policy
from retrykit._core.timeouts import timeout_seconds
from retrykit._internal.durations import format_duration
from retrykit._internal.error_texts import safe_str
from retrykit.analysis.preview import Preview, TotalWait, preview
from retrykit.analysis.preview._caveats import caveats, has_other_delays
from retrykit.analysis.preview._rule_policies import rule_policies
from retrykit.analysis.preview._stages import describe_order, has_stages
from retrykit.errors import ConfigError

__all__ = ["name_rules", "preview_policy", "summarize"]


def name_rules(name: str, policy: Policy) -> list[tuple[str, Policy]]:
    """Return the policy that each rule of a policy amounts to, with a name to show."""
    rules = rule_policies(policy)
    return [(f"{name}, rule {number}", each) for number, each in enumerate(rules, 1)]


def preview_policy(
    name: str,
    policy: Policy,
    *,
    attempt: float,
    retries: int | None = None,
    samples: int = 0,
) -> Preview:
    """Return the preview of a policy for the options of a command.

    Raises:
        ConfigError: A setting is invalid, or the schedule raised an error.
    """
    most = max(retries or 0, 1_000)
    try:
        return preview(policy, attempt=attempt, retries=most, samples=samples)
    except ConfigError:
        raise
    except Exception as error:
        msg = f"{name}: its schedule raised {type(error).__name__}: {safe_str(error)}"
        raise ConfigError(msg) from error


def summarize(result: Preview) -> Iterator[tuple[str, ...]]:
    """Yield the parts of a summary, each a label and the lines beside it."""
    yield "policy", repr(result.policy)
    if has_stages(result.policy):
        yield "order", describe_order(result.policy)
    yield "ends", *_ends(result)
    if result.min_retries is not None:
        yield "attempts", f"{_attempts(result)} if every attempt fails"
    if result.total_wait:
        yield "waits", _total_wait(result.total_wait)
    if result.worst_case is not None:
        attempt = result.attempt or timeout_seconds(result.policy.attempt_timeout)
        text = f"{format_duration(result.worst_case)} in total"
        text += f" with attempts of {format_duration(attempt)}" if attempt else ""
        if has_other_delays(result.policy):
            text += ", by the policy's own schedule"
        yield "at worst", text
    notes = "; ".join(caveats(result.policy))
    if notes:
        yield "notes", notes


def _ends(result: Preview) -> Iterator[str]:
    if result.end:
        yield str(result.end)
    elif result.min_retries is not None:
        last = result.min_retries
        yield f"stops after retry {last} or later: delays may be near zero"
    elif result.limits or result.policy.max_attempts or result.policy.max_elapsed:
        yield f"not within the first {len(result.rows)} retries"
    else:
        yield "never: no setting ends it"
    for name, end in result.limits.items():
        if result.end is None or name not in result.end.reasons:
            never = "; never reached" if name in result.never_reached else ""
            yield f"{name} alone: {str(end).rpartition(':')[0]}{never}"
    for name in result.never_reached:
        if name not in result.limits:
            yield f"{name} is never reached"


def _attempts(result: Preview) -> str:
    least = (result.min_retries or 0) + 1
    most = result.attempts and result.attempts[1]
    if least == most:
        return f"{most}"
    mean = result.total_wait and f", {result.total_wait.attempts:.1f} on average"
    return f"{least} {f'to {most}' if most else 'or more'}{mean or ''}"


def _total_wait(wait: TotalWait) -> str:
    values = {each.value for each in wait.quantiles}
    if len(values) == 1 and not wait.error:
        return f"{format_duration(wait.mean)} in total"
    quantiles = {each.probability: each for each in wait.quantiles}
    median, most = quantiles[0.5], quantiles[0.95]
    text = (
        f"mean {format_duration(wait.mean)}, median {format_duration(median.value)}, "
    )
    text += f"95th percentile {format_duration(most.value)}"
    if not wait.samples:
        return f"{text} (exact)"
    error = max(median.error, most.error)
    return f"{text} ({wait.samples:,} calls simulated, ± {format_duration(error)})"
