"""Hooks that were written for tenacity, as settings of a policy.

A hook gets an object with the attributes of tenacity's `RetryCallState`. The object is
made for each call of the hook, and describes that moment. tenacity itself is not
imported; a hook that tenacity has made, such as ``before_sleep_log``, ``wait_fixed`` or
a subclass of ``stop_base``, is called in the same way as a function of your own.
`policy` takes all arguments of a ``Retrying`` at once.

Under `aretry`, a hook may be async, as in tenacity, but the functions of `wait` and
`stop`, and their ``after``, may not. An error that a hook raises ends the call, as in
tenacity.
"""

from retrykit.integrations.tenacity._call_states import (
    Future,
    RetryAction,
    RetryCallState,
    RetryObject,
)
from retrykit.integrations.tenacity._hooks import (
    after,
    before,
    before_sleep,
    retry_error_callback,
    retry_error_cls,
)
from retrykit.integrations.tenacity._policy import last_attempt, policy
from retrykit.integrations.tenacity._strategies import (
    retry_on_error,
    retry_on_result,
    stop,
    wait,
)
from retrykit.integrations.tenacity._time_limits import (
    stop_after_delay,
    stop_before_delay,
)

__all__ = ["Future", "RetryAction", "RetryCallState", "RetryObject", "after", "before"]
__all__ += ["before_sleep", "last_attempt", "policy", "retry_error_callback"]
__all__ += ["retry_error_cls", "retry_on_error", "retry_on_result", "stop"]
__all__ += ["stop_after_delay", "stop_before_delay", "wait"]
