"""The previews that commands show."""

from retrykit.analysis.preview import Preview, preview
from retrykit.errors import ConfigError
from retrykit.policy.policy import Policy
from retrykit.state.records import safe_str

__all__ = ["previewed"]

_MOST = 1_000


def previewed(
    name: str,
    policy: Policy,
    *,
    attempt: float,
    retries: int | None = None,
    samples: int = 0,
) -> Preview:
    """Return the preview of a policy, its calls drawn where there is no formula.

    Args:
        name: What the policy is called on the command line.
        policy: The policy.
        attempt: How long each attempt takes, in seconds.
        retries: How many retries will be shown at least.
        samples: How many calls are drawn at most. Count, >= 0.

    Raises:
        ConfigError: The user's own schedule raised an error, or gave what is
            no delay.
    """
    most = max(retries or 0, _MOST)
    try:
        return preview(policy, attempt=attempt, retries=most, samples=samples)
    except ConfigError:
        raise
    except Exception as error:
        msg = f"{name}: its schedule raised {type(error).__name__}: {safe_str(error)}"
        raise ConfigError(msg) from error
