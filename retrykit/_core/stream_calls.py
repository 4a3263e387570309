"""The retried call behind a stream: the code that sync and async streams share."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from retrykit._conditions import format_value
from retrykit._core.call import Entry, RetryCall, current_entry, running_call
from retrykit._core.call_record import Arguments, give_ups
from retrykit._core.controller import RetryController
from retrykit._core.retry_state import RetryState
from retrykit._core.stream_facts import StreamFacts
from retrykit._core.stream_modes import Position, StreamMode
from retrykit._internal.late_modules import inspect
from retrykit._internal.validation import invalid_setting
from retrykit.errors import StreamChangedError

__all__ = ["StreamController", "changed_source", "check_arguments", "continue_with"]
__all__ += ["describe_stream", "items_to_skip", "must_continue", "note_failure"]
__all__ += ["note_progress"]
__all__ += ["open_call", "reject_second_use", "state_of_stream"]


class StreamController(RetryController):
    """Controller of the streams of one generator function."""

    __slots__ = ()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # And its limits may count a row of failures, which no usual evaluation does.
        self._wraps = True


def open_call(
    own: StreamController, mode: StreamMode, arguments: Arguments
) -> RetryCall:
    """Return the call of a stream that begins now."""
    now = own.clock.real.now
    entry: Entry = [own, now(), current_entry.get(), give_ups.count]
    call = own.with_overrides().begin(entry, *arguments)
    call.stream = StreamFacts(in_a_row=mode.in_a_row)
    return call


def note_failure(mode: StreamMode, call: RetryCall, facts: StreamFacts) -> None:
    """Note that the running attempt of a stream failed, before the policy judges it."""
    if mode.name == "until-first-item" and facts.items:
        plural = "" if facts.items == 1 else "s"
        facts.ended_because = f"{facts.items} item{plural} had been handed out"
    facts.begin_row(call)


def note_progress() -> None:
    """Begin a new row of failures with the next failure of the running stream.

    A generator that runs as a stream calls it after progress that hands out no item.
    """
    entry = current_entry.get()
    call = None if entry is None else running_call(entry)
    if call is not None and call.stream is not None:
        call.stream.note_progress()


def items_to_skip(mode: StreamMode, facts: StreamFacts) -> int:
    """Return how many items the attempt that begins must skip."""
    return facts.items if mode.skip_seen else 0


def changed_source(facts: StreamFacts, index: int) -> StreamChangedError:
    """Note and return the error of an attempt with fewer items than it must skip."""
    error = StreamChangedError(facts.items, index)
    facts.ended_because = str(error)
    return error


def must_continue(mode: StreamMode, facts: StreamFacts) -> bool:
    """Return whether the attempt that begins needs a new position to continue from."""
    return mode.continue_from is not None and facts.items > facts.items_continued


def state_of_stream(begun: list[RetryState]) -> RetryState:
    """Return the state of a stream; raise a LookupError if it has not begun."""
    if not begun:
        msg = "the stream has no state before its first item is asked for"
        raise LookupError(msg)
    return begun[0]


def describe_stream(stream: object, begun: list[RetryState]) -> str:
    """Return the ``repr`` of a stream."""
    kind = type(stream).__name__
    if not begun:
        return f"<{kind} that has not begun>"
    return f"<{kind} of {begun[0].name}: {begun[0].describe()}>"


def reject_second_use(stream: object) -> NoReturn:
    """Raise a ConfigError about the second iteration over a stream."""
    rule = "iterated once: it has ended, and a second loop would find it empty"
    suggestion = "call the function again, or keep the items in a list"
    raise invalid_setting("stream", rule, stream, suggestion, code="wrong-state")


def check_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise a ConfigError if an argument is an iterator, unless it is like a file."""
    given: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    for name, value in given:
        kind = type(value)
        once = hasattr(kind, "__next__") or hasattr(kind, "__anext__")
        # A file or a connection is more than its lines.
        if once and not hasattr(kind, "read") and not hasattr(kind, "write"):
            shown = f"argument {name + 1}" if isinstance(name, int) else name
            rule = "no iterator, which a second attempt would find empty"
            suggestion = "hand over a list, or a function that returns an iterator"
            raise invalid_setting(shown, rule, value, suggestion)


def continue_with(
    fn: Callable[..., Any],
    facts: StreamFacts,
    arguments: Arguments,
    answer: object,
) -> Arguments:
    """Return the arguments of an attempt that continues a stream.

    Args:
        fn: The generator function.
        facts: The facts of the stream, to which the position is added.
        arguments: The arguments of the call.
        answer: What the function of `streams.resume` has returned.

    Raises:
        ConfigError: *answer* is not a position, has arguments that *fn* does not take,
            or repeats the last position or the arguments of the call.
    """
    gap = None
    if isinstance(answer, Position):
        gap, answer = answer.gap, answer.arguments
    if not isinstance(answer, Mapping):
        rule = "a dict of arguments keyed by name, or a Position, from its function"
        raise invalid_setting("resume", rule, answer)
    position = dict(answer)
    changed = _replace_arguments(fn, arguments, position)
    before = facts.positions[-1] if facts.positions else {}
    if before == position or changed == _replace_arguments(fn, arguments, {}):
        rule = "another position after new items, or they come again without end"
        suggestion = "raise GiveUp where the stream cannot continue"
        raise invalid_setting("resume", rule, position, suggestion)
    facts.positions.append(position)
    facts.items_continued = facts.items
    if gap is not None:
        facts.gaps.append(gap)
    return changed


def _replace_arguments(
    fn: Callable[..., Any],
    arguments: Arguments,
    changes: dict[str, Any],
) -> Arguments:
    args, kwargs = arguments
    signature = inspect.signature(fn)
    parameters, bound = signature.parameters, signature.bind(*args, **kwargs)
    bound.apply_defaults()
    kinds = {each.kind: name for name, each in parameters.items()}
    others = kinds.get(inspect.Parameter.VAR_KEYWORD)
    variadic = {others, kinds.get(inspect.Parameter.VAR_POSITIONAL)}
    for name, value in changes.items():
        if name in parameters and name not in variadic:
            bound.arguments[name] = value
        elif others is not None:
            known = bound.arguments.get(others, {})
            bound.arguments[others] = {**known, name: value}
        else:
            rule = f"arguments that {format_value(fn)} takes, from its function"
            raise invalid_setting(
                "resume", rule, changes, f"it has no {name!r}", code="unknown-name"
            )
    return bound.args, bound.kwargs
