"""Rules of an audit, with their checks: what is wrong, and what to change."""

import math
from collections.abc import Callable, Iterator
from typing import Final, final

from retrykit._internal.durations import duration_in_words
from retrykit._internal.frozen import Frozen
from retrykit.audit._delays import GROWING, describe_duration
from retrykit.audit._findings import Finding
from retrykit.audit._sites import Site

__all__ = ["RULES", "RULES_OF_POLICIES", "Rule", "check_site"]

Advice = tuple[str, str]
"""The fault, and what to change."""

_EVERYTHING = frozenset(["Exception", "BaseException"])
_MANY_GROWN = 10
# The calls of a site that retries once.
_ONE_RETRY = 2
_CAP = "cap the delays"
# Seconds.
_LONG = 600.0
_IDEMPOTENT = frozenset(["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"])


@final
class Rule(Frozen):
    """A rule of an audit.

    Attributes:
        code: Its name, in lower case with hyphens.
        summary: What it warns of, in a few words.
        why: Why that is wrong.
        bad: Code that it warns of.
        good: The same code, corrected.
        check: Returns what is wrong with a site and what to change, or None if nothing
            is wrong. For a rule about retries within retries, the check is None.
    """

    __slots__ = ("bad", "check", "code", "good", "summary", "why")
    code: str
    summary: str
    why: str
    bad: str
    good: str
    check: Callable[[Site], Advice | None] | None


def check_site(site: Site, rules: dict[str, Rule]) -> Iterator[Finding]:
    """Yield the findings about a site, from rules about single sites."""
    for code, rule in rules.items():
        if rule.check is None or not site.behavior.plain:
            continue
        advice = rule.check(site)
        if advice is not None:
            line = site.blocking if code == "blocking-sleep" else site.line
            yield Finding(code, site, line, *advice)


def _unbounded(site: Site) -> Advice | None:
    behavior = site.behavior
    if behavior.calls == math.inf and behavior.elapsed == math.inf:
        return (
            "nothing ends a call that fails every time",
            "limit the number of attempts or the time",
        )
    if behavior.usual == math.inf:
        return (
            "nothing ends a call that fails every time, if no caller sets a limit",
            "limit the number of attempts or the time by default",
        )
    return None


def _retries_at_once(site: Site) -> Advice | None:
    behavior = site.behavior
    # Without a retry by default, callers give a number where they want some.
    once = behavior.calls is None and behavior.usual == _ONE_RETRY
    if once or _calls_at_most(site, _ONE_RETRY):
        return None
    if behavior.some_at_once:
        return (
            "after some errors, retries follow each other without a delay",
            "wait after each error, longer each time",
        )
    if behavior.delays.shape != "none":
        return None
    return (
        "retries follow each other without a delay",
        "wait between attempts, longer each time",
    )


def _no_jitter(site: Site) -> Advice | None:
    behavior = site.behavior
    if behavior.delays.jitter is not False or behavior.delays.shape == "none":
        return None
    if not behavior.retries or _calls_at_most(site, 1):
        return None
    return (
        "callers that fail together retry together",
        "make the delays random",
    )


def _growth_without_cap(site: Site) -> Advice | None:
    behavior, delays = site.behavior, site.behavior.delays
    calls, usual = behavior.calls, behavior.usual
    if behavior.elapsed != math.inf or delays.shape not in GROWING:
        return None
    # A step grows too slowly to matter.
    fast = delays.grows and delays.shape != "linear"
    if calls == math.inf or (calls is None and usual == math.inf):
        return ("delays grow without an end", _CAP) if fast else None
    if calls is None:
        if not fast or not usual or usual <= _MANY_GROWN:
            return None
        return ("delays grow without an end if a caller sets many retries", _CAP)
    delay = delays.longest(max(int(calls) - 1, 1))
    if delay is None or delay <= _LONG:
        return None
    return (f"the last delay is {describe_duration(delay)}", _CAP)


def _retries_every_exception(site: Site) -> Advice | None:
    found = _EVERYTHING.intersection(site.behavior.retried or ())
    if not found or not site.behavior.retries:
        return None
    return (
        f"{min(found)} is retried, and with it bugs that no retry fixes",
        "name the errors that may go away",
    )


def _cancellation_swallowed(site: Site) -> Advice | None:
    if not site.behavior.swallows:
        return None
    if site.behavior.retried is None and site.library != "loop":
        return (
            "Ctrl-C and cancellation are retried, as all errors but some are",
            "name the errors that may go away",
        )
    return (
        "Ctrl-C and cancellation are retried",
        "catch Exception instead of BaseException",
    )


def _error_hidden(site: Site) -> Advice | None:
    behavior = site.behavior
    if behavior.ending != "hidden":
        return None
    if behavior.calls == behavior.elapsed == math.inf:
        return None
    return (
        "after the last attempt the error is lost",
        "raise the last error, or another one from it",
    )


def _blocking_sleep(site: Site) -> Advice | None:
    if not site.blocking:
        return None
    if site.library != "loop":
        return ("the sleeps stop the event loop", "use the asynchronous form")
    return ("time.sleep stops the event loop", "await asyncio.sleep(...)")


def _not_idempotent(site: Site) -> Advice | None:
    methods = site.behavior.methods
    if methods is None or methods <= _IDEMPOTENT or not site.behavior.retries:
        return None
    found = ", ".join(sorted(methods - _IDEMPOTENT)) or "every method"
    return (
        f"{found} may take effect twice",
        "retry idempotent methods alone, or send an Idempotency-Key",
    )


def _hint_ignored(site: Site) -> Advice | None:
    if site.behavior.hint is not False or not site.behavior.retries:
        return None
    return (
        "Retry-After of the server is not obeyed",
        "wait for as long as the server asks",
    )


def _timeout_never_retried(site: Site) -> Advice | None:
    behavior = site.behavior
    if behavior.timeout is None or behavior.elapsed in (None, math.inf):
        return None
    if behavior.elapsed > behavior.timeout:
        return None
    return (
        (
            f"one attempt may take {duration_in_words(behavior.timeout)}, and no retry "
            f"begins after {duration_in_words(behavior.elapsed)}"
        ),
        "shorten the timeout of an attempt, or lengthen the time of all",
    )


def _max_attempts_unreachable(site: Site) -> Advice | None:
    behavior = site.behavior
    if behavior.calls in (None, math.inf) or behavior.elapsed in (None, math.inf):
        return None
    delays = behavior.delays
    if delays.jitter is not False:
        return None
    total = delays.total(behavior.calls - 1)
    if total is None or total <= behavior.elapsed:
        return None
    return (
        (
            f"the delays of {int(behavior.calls)} calls add up to "
            f"{duration_in_words(total)}, and no retry begins after "
            f"{duration_in_words(behavior.elapsed)}"
        ),
        "remove one of both limits",
    )


def _calls_at_most(site: Site, calls: int) -> bool:
    return site.behavior.calls is not None and site.behavior.calls <= calls


def _loop(error: str, *lines: str) -> str:
    """Return an example: a loop that retries an error."""
    handler = "".join(f"        {each}\n" for each in lines)
    start = "for attempt in range(3):\n    try:\n        return fetch()\n"
    return f"{start}    except {error}:\n{handler}".rstrip()


def _decorated(settings: str, function: str = "fetch(): ...") -> str:
    """Return an example: a function that is retried."""
    return f"@retry({settings})\ndef {function}".replace("@retry()", "@retry")


def _coroutine(pause: str) -> str:
    """Return an example: a loop in a coroutine function."""
    body = _loop("OSError", pause).replace("\n", "\n    ")
    return f"async def load():\n    {body}".replace("fetch", "await fetch")


_JITTER = "wait=wait_random_exponential(max=30)"
_ASK = "ask():\n    return client.responses.create(model=MODEL)"
_SLEEP = "time.sleep(random.uniform(1, 2))"

RULES: Final = {
    each.code: each
    for each in (
        Rule(
            "unbounded",
            "nothing ends a call that fails every time",
            "A server that does not come back is called without an end, and "
            "whoever waits for the result waits as long.",
            _decorated(""),
            _decorated("stop=stop_after_attempt(5)"),
            _unbounded,
        ),
        Rule(
            "retries-at-once",
            "several retries have no delay",
            "What fails now fails a millisecond later, and a server that is overloaded "
            "gets several times its load.",
            _decorated("stop=stop_after_attempt(5)"),
            _decorated(f"stop=stop_after_attempt(5), {_JITTER}"),
            _retries_at_once,
        ),
        Rule(
            "no-jitter",
            "callers that fail together retry together",
            "Clients that an outage has stopped at the same moment come back at the "
            "same moments.",
            _decorated("stop=stop_after_attempt(5), wait=wait_exponential(max=30)"),
            _decorated(f"stop=stop_after_attempt(5), {_JITTER}"),
            _no_jitter,
        ),
        Rule(
            "growth-without-cap",
            "delays grow without an end",
            "Doubled twenty times, a second is twelve days.",
            "@backoff.on_exception(backoff.expo, OSError)\ndef fetch(): ...",
            "@backoff.on_exception(backoff.expo, OSError, max_value=60, max_tries=9)\n"
            "def fetch(): ...",
            _growth_without_cap,
        ),
        Rule(
            "retries-every-exception",
            "bugs in the code are retried many times",
            "A TypeError stays, however often it is retried: it comes late, and the "
            "log is full of it.",
            _loop("Exception", _SLEEP),
            _loop("(ConnectionError, TimeoutError)", _SLEEP),
            _retries_every_exception,
        ),
        Rule(
            "cancellation-swallowed",
            "Ctrl-C and cancellation are retried",
            "The program cannot be stopped, and a task that is cancelled goes on.",
            _loop("BaseException", _SLEEP),
            _loop("OSError", _SLEEP),
            _cancellation_swallowed,
        ),
        Rule(
            "error-hidden",
            "after the last attempt the error is lost",
            "The caller cannot tell a failure from a result, and nobody learns why.",
            _loop("OSError", _SLEEP) + "\nreturn None",
            _loop("OSError", "if attempt == 2:", "    raise", _SLEEP),
            _error_hidden,
        ),
        Rule(
            "blocking-sleep",
            "a coroutine sleeps and stops all others",
            "While time.sleep sleeps, no other task of the event loop runs.",
            _coroutine("time.sleep(1)"),
            _coroutine("await asyncio.sleep(1)"),
            _blocking_sleep,
        ),
        Rule(
            "not-idempotent",
            "a request that may take effect twice is retried",
            "When the answer is lost, the order has been placed; the retry places a "
            "second one.",
            "Retry(3, allowed_methods=None, status_forcelist=[503])",
            "Retry(3, status_forcelist=[503])",
            _not_idempotent,
        ),
        Rule(
            "hint-ignored",
            "Retry-After is not obeyed",
            "A server that says when it can be called again is called before, and may "
            "lock the client out.",
            "Retry(3, status_forcelist=[503], respect_retry_after_header=False)",
            "Retry(3, status_forcelist=[503])",
            _hint_ignored,
        ),
        Rule(
            "timeout-never-retried",
            "an attempt that times out leaves no time for another",
            "One attempt uses up the time of all, so what hangs is never retried.",
            "Policy(on=OSError, max_elapsed=60, attempt_timeout=60)",
            "Policy(on=OSError, max_elapsed=60, attempt_timeout=10)",
            _timeout_never_retried,
        ),
        Rule(
            "max-attempts-unreachable",
            "a limit of time ends every call before the number of attempts",
            "Whoever reads the number believes it.",
            _decorated(
                "stop=stop_after_attempt(10) | stop_after_delay(5), wait=wait_fixed(1)"
            ),
            _decorated("stop=stop_after_delay(5), wait=wait_fixed(1)"),
            _max_attempts_unreachable,
        ),
        Rule(
            "nested-retries",
            "a retried function calls another one that retries",
            "The numbers of attempts multiply: three times four are twelve requests "
            "for each call, when the server is down.",
            _decorated("stop=stop_after_attempt(3)", "order():\n    pay()\n\n")
            + _decorated("stop=stop_after_attempt(4)", "pay(): ..."),
            "def order():\n    pay()\n\n"
            + _decorated("stop=stop_after_attempt(4)", "pay(): ..."),
            None,
        ),
        Rule(
            "library-retries-too",
            "a client retries within each attempt",
            "The client of the library makes requests of its own for each attempt, "
            "which no log shows.",
            "client = OpenAI()\n\n" + _decorated("stop=stop_after_attempt(3)", _ASK),
            "client = OpenAI(max_retries=0)\n\n"
            + _decorated("stop=stop_after_attempt(3)", _ASK),
            None,
        ),
    )
}
"""The rules, keyed by code."""

RULES_OF_POLICIES: Final = frozenset(
    [
        "breaker-without-timeout",
        "call-outlives-process",
        "cap-never-reached",
        "capped-jitter",
        "deadline-before-first-delay",
        "delays-never-used",
        "fixed-seed",
        "hedge-after-timeout",
        "max-elapsed-unreachable",
        "never-retries",
        "probe-timeout-too-short",
        "recent-after-timeout",
        "reserve-of-each-process",
        "retry-storm",
        "too-many-attempts",
        "wait-too-short",
        "waits-forever",
    ]
)
"""The codes of the rules of ``retrykit lint``, which comments may ignore as well."""
