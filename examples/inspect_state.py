"""Read the history of a call, in the function and in the handler of its error.

`current_state()` is for the retried function, `state_of(error)` for the ``except``
clause around the call. With ``raises="group"`` the call raises all its errors as an
``ExceptionGroup``, for ``except*``.

Prints, where ``...`` is a duration::

    attempt 1 of read
    attempt 2 of read, after ConnectionResetError('hung up')
    attempt 3 of read, after TimeoutError('slow')
    in the handler of PermissionError()
      status       dead
      stop_reason  not_retryable
      total_delay  0.03
      errors       ConnectionResetError, TimeoutError, PermissionError
      describe()   gave up after 3 attempts in ...: the error is not retryable

    attempt 1 of read
    attempt 2 of read, after ConnectionResetError('hung up')
    except* ConnectionError: hung up
    except* TimeoutError: slow
"""

from retrykit import current_state, retry, state_of, with_policy


@retry(on=(ConnectionError, TimeoutError), schedule=["10ms", "20ms"])
def read() -> str:
    """Fail with a different error each time."""
    state = current_state()
    after = f", after {state.errors[-1]!r}" if state.errors else ""
    print(f"attempt {state.attempt} of {state.name}{after}")
    errors = ConnectionResetError("hung up"), TimeoutError("slow"), PermissionError()
    raise errors[state.attempt - 1]


def main() -> None:
    """Handle the last error of a call, or all of them."""
    try:
        read()
    except PermissionError as error:
        print(f"in the handler of {error!r}")
        if (state := state_of(error)) is not None:
            print(f"  status       {state.status}")
            print(f"  stop_reason  {state.stop_reason}")
            print(f"  total_delay  {state.total_delay}")
            print(f"  errors       {', '.join(type(e).__name__ for e in state.errors)}")
            print(f"  describe()   {state.describe()}\n")

    try:
        with_policy(read, max_attempts=2, raises="group")()
    except* ConnectionError as group:
        print("except* ConnectionError:", *group.exceptions)
    except* TimeoutError as group:
        print("except* TimeoutError:", *group.exceptions)


if __name__ == "__main__":
    main()
