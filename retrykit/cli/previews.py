"""What a command looks at: previews, and the part of them that is shown."""

from retrykit.cli.terminal import progress
from retrykit.policy import Policy
from retrykit.preview import Preview, Row, preview

__all__ = ["drawn", "shown"]

_MOST = 1_000
# Of an endless policy, as many as fit on a screen.
_ENDLESS = 20
# Of delays to be drawn: what takes less than a moment needs no bar.
_LONG = 100_000


def drawn(
    policy: Policy, *, attempt: float, retries: int | None, samples: int = 0
) -> Preview:
    """Return the preview of a policy, its calls drawn where there is no formula.

    Args:
        policy: The policy.
        attempt: How long each attempt takes, in seconds.
        retries: How many retries will be shown; None if `shown` decides.
        samples: How many calls are drawn at most. Count, >= 0.
    """
    most = max(retries or 0, _MOST)
    quick = preview(policy, attempt=attempt, retries=most, samples=0)
    if not samples:
        return quick
    with progress(enabled=len(quick.rows) * samples >= _LONG) as bar:
        task = bar.add_task("drawing calls", total=samples)
        return preview(
            policy,
            attempt=attempt,
            retries=most,
            samples=samples,
            progress=lambda: bar.advance(task),
        )


def shown(seen: Preview, retries: int | None) -> tuple[Row, ...]:
    """Return the rows to show: as many as asked for, or as make sense."""
    if retries is None and seen.end is None:
        return seen.rows[:_ENDLESS]
    return seen.rows[:retries]
