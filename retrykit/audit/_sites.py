"""Places in source code where something is retried, and what each does."""

import math
from typing import Any, final

from retrykit._internal.durations import duration_in_words
from retrykit._internal.frozen import Frozen
from retrykit.audit._delays import UNKNOWN_DELAYS, Delays, describe_duration

__all__ = ["Behavior", "Site"]


@final
class Behavior(Frozen):
    """The behavior of a site after failures, as far as the source code tells.

    Attributes:
        calls: The most calls, including the first; infinity without a limit; None if
            the limit is not known.
        elapsed: The longest time after which another call begins, in seconds; infinity
            without a limit; None if the limit is not known.
        delays: The delays between calls.
        retried: The names of the errors that are retried, without their modules, and
            the HTTP statuses; None if that is not known. For retrykit it may also have
            phrases, such as "errors but bugs".
        results: Whether results are retried.
        ending: What happens to the last error: it "raises", is "wrapped" in another
            one, or is "hidden"; "?" if that is not known.
        swallows: Whether cancellation and Ctrl-C are retried.
        hint: Whether ``Retry-After`` is obeyed; None if that is not known, or if no
            responses are retried.
        methods: The HTTP methods that are retried; None if they are not known, or if no
            requests are retried.
        timeout: The longest time of one call, in seconds; None if that is not known.
        some_at_once: Whether the site waits after some errors, and retries at once
            after others.
        usual: The most calls if no caller gives another number; infinity if then they
            have no limit of time either; None if unknown.
        plain: Whether it plainly repeats what failed. Some loops do not: they may poll,
            or try the next of many.
        layer: Whether this is the behavior of a client that is not a site of its own,
            because it retries by default, not at all, or an unknown number of times.
            Such a client multiplies the calls of the sites around it.
    """

    __slots__ = (
        "calls",
        "delays",
        "elapsed",
        "ending",
        "hint",
        "layer",
        "methods",
        "plain",
        "results",
        "retried",
        "some_at_once",
        "swallows",
        "timeout",
        "usual",
    )
    calls: float | None
    elapsed: float | None
    delays: Delays
    retried: tuple[str, ...] | None
    results: bool
    ending: str
    swallows: bool
    hint: bool | None
    methods: frozenset[str] | None
    timeout: float | None
    some_at_once: bool
    usual: float | None
    plain: bool
    layer: bool

    def __init__(  # noqa: PLR0913  a field each
        self,
        calls: float | None = None,
        elapsed: float | None = math.inf,
        delays: Delays = UNKNOWN_DELAYS,
        retried: tuple[str, ...] | None = None,
        *,
        results: bool = False,
        ending: str = "?",
        swallows: bool = False,
        hint: bool | None = None,
        methods: frozenset[str] | None = None,
        timeout: float | None = None,
        some_at_once: bool = False,
        usual: float | None = None,
        plain: bool = True,
        layer: bool = False,
    ) -> None:
        Frozen.__init__(
            self,
            calls=calls,
            elapsed=elapsed,
            delays=delays,
            retried=retried,
            results=results,
            ending=ending,
            swallows=swallows,
            hint=hint,
            methods=methods,
            timeout=timeout,
            some_at_once=some_at_once,
            usual=usual,
            plain=plain,
            layer=layer,
        )

    def replace(self, **changes: Any) -> "Behavior":
        """Return the same behavior with some fields changed."""
        found: Behavior = Frozen.replace(self, **changes)
        return found

    @property
    def retries(self) -> bool:
        """True if anything is retried, or may be."""
        return self.calls is None or self.calls > 1

    @property
    def longest(self) -> float | None:
        """The longest sum of all delays, in seconds; None if it is not known.

        It is at most *elapsed*.
        """
        limits = [x for x in (self.elapsed,) if x not in (None, math.inf)]
        if self.calls is not None:
            total = self.delays.total(self.calls - 1)
            if total is not None:
                return min([total, *limits])
        return limits[0] if limits and self.calls == math.inf else None

    def __str__(self) -> str:
        """Return the behavior in one line."""
        return "; ".join(filter(None, [self._limits(), self._waits(), self._errors()]))

    def _limits(self) -> str:
        parts = []
        if self.calls is None:
            parts.append("? calls")
        elif self.calls == math.inf:
            if self.elapsed == math.inf:
                parts.append("calls without a limit")
        else:
            count = int(self.calls)
            parts.append(f"{count} call{'' if count == 1 else 's'}")
        if self.elapsed is None:
            parts.append("for ? s")
        elif self.elapsed != math.inf:
            parts.append(f"for {duration_in_words(self.elapsed)}")
        return " ".join(parts)

    def _waits(self) -> str:
        if self.calls is not None and self.calls <= 1:
            return ""
        delays = self.delays
        text = delays.describe(None if self.calls is None else self.calls - 1)
        if delays.shape != "none":
            text += self._jitter()
        total = self.longest
        if total and total != math.inf:
            text += f", {describe_duration(total)} in all"
        return text

    def _jitter(self) -> str:
        if self.delays.shape == "unknown":
            # The delays are said to be random, or nothing is known.
            return ", no jitter" if self.delays.jitter is False else ""
        jitter = {True: "with jitter", False: "no jitter", None: "jitter: ?"}
        return f", {jitter[self.delays.jitter]}"

    def _errors(self) -> str:
        if self.retried is None:
            return "retries ?"
        what = [*self.retried, *(["results"] if self.results else [])]
        return f"retries {', '.join(what)}" if what else ""


@final
class Site(Frozen):
    """A place in source code where something is retried.

    Attributes:
        path: The path of the file; in a notebook, the cell follows the path, and lines
            are counted from the start of the cell.
        line: The first line of the decorator, the call or the loop; from 1.
        end_line: Its last line.
        column: Its column; from 1.
        library: The library that retries, or "loop".
        function: The full name of the function that is retried, or that contains the
            site; or "".
        behavior: How it retries.
        functions: The full names of the functions that it retries.
        is_async: Whether *function* is async.
        blocking: In an async function, the line of a ``time.sleep``, or of a call or
            loop that makes one; 0 if there is none.
    """

    __slots__ = (
        "behavior",
        "blocking",
        "column",
        "end_line",
        "function",
        "functions",
        "is_async",
        "library",
        "line",
        "path",
    )
    path: str
    line: int
    end_line: int
    column: int
    library: str
    function: str
    behavior: Behavior
    functions: tuple[str, ...]
    is_async: bool
    blocking: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.library}: {self.behavior}"
