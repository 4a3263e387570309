"""Messages of errors about streams and chains, and what raises them."""

from retrykit import Policy, RetryState, aretry, chain, resume, retry, retrying, streams
from retrykit._core.stream_modes import STREAM_MODES
from retrykit.streams import Position

__all__ = ["CALL_ERRORS", "ERRORS"]


def plain(): ...


def pages(start=0):
    yield start
    raise OSError


async def apages():
    yield 1


async def later(_last, _state): ...


def few(tenant):
    return Policy()


RESUMED = retry(stream="restart")(pages)
RESTART = streams.restart(item_timeout=3)
NOT_CALLED = "a function without parameters where no call has arguments for them"
FUNCTION = "a function of the last item and the state"


def judged(result):
    return bool(result)


def of_one(last):
    return last


def read(answer):
    mode = streams.resume(lambda _last, _state: answer)
    policy = Policy(schedule=[0, 0], on=OSError)
    return lambda: [*retry(policy, stream=mode)(pages)()]


ENDED = retry(stream="restart")(lambda: (yield))()
assert list(ENDED) == [None]
ROWS = iter([1])


def once(stream="once"):
    return lambda: retry(stream=stream)


ERRORS = {
    f"stream must be {STREAM_MODES}, got 'once'": once(),
    f"stream must be {STREAM_MODES}, got {judged!r}; write streams.resume(judged)": (
        once(judged)
    ),
    f"stream must be {STREAM_MODES}, got 'resume'; write streams.resume(function), "
    "which tells where to continue": once("resume"),
    "stream must be None for what is not a generator function, got "
    "streams.restart(); leave it out, or yield the items": (
        lambda: retry(stream="restart")(plain)
    ),
    f"fn must be an async generator function under aretry, got {pages!r}; decorate it "
    "with retry": lambda: aretry(stream="restart")(pages),
    "item_timeout must be None for a sync generator, which cannot be cut off, got 3.0; "
    "give the client a timeout, or use an async generator": (
        lambda: retry(stream=RESTART)(pages)
    ),
    "continue_from must be a sync function for a sync generator, got "
    f"{later!r}": lambda: retry(stream=streams.resume(later))(pages),
    f"continue_from must be {FUNCTION}, got 5": lambda: streams.resume(5),
    f"continue_from must be {FUNCTION}, got {of_one!r}; write lambda last_item, state: "
    "{...}": lambda: streams.resume(of_one),
    "fn must be a function without a stream, which is retried where it is iterated, "
    f"got {RESUMED!r}; change its policy by with_policy, or decorate what iterates "
    "it": (lambda: retry(RESUMED)),
    "failures must be 'in_a_row' or 'in_all', got 'all'": (
        lambda: streams.restart(failures="all")
    ),
    "failures must be 'in_all' without skip_seen, since items that come again are not "
    "progress, got 'in_a_row'; write skip_seen=True": (
        lambda: streams.restart(failures="in_a_row")
    ),
    "skip_seen must be True or False, got 1": lambda: streams.restart(skip_seen=1),
    "arguments must be a dict of arguments keyed by parameter name, got 3": (
        lambda: Position(3)
    ),
    "attempt_timeout must be None for a stream, which may last as long as its consumer "
    "likes, got 5.0; write stream=streams.resume(..., item_timeout=...), for example": (
        lambda: retry(stream="restart", attempt_timeout=5)(apages)
    ),
    f"on_result must be None for a stream, which has no result, got {judged!r}; raise "
    "an error in the generator function": (
        lambda: retry(stream="restart", on_result=judged)(pages)
    ),
    f"fn must be a function that returns a result, not a stream, got {RESUMED!r}; call "
    "it with the arguments with which it continues": (
        lambda: resume(RESUMED, RetryState("pages", seed=7, epoch=0.0))
    ),
    "chain must be functions, got 5": lambda: chain(plain, 5),
    f"chain must be functions of one kind: plain is a sync function, got {pages!r}; it "
    "is a generator function": lambda: chain(plain, pages),
    "default must be left out for generators, got []; add a generator function that "
    "yields it": lambda: chain(pages, pages, default=[]),
    f"policy must be {NOT_CALLED}, got {few!r}; call it yourself, with tenant, for the "
    "policy of one call": lambda: retrying(few),
    f"policy must be a function whose parameters plain also has, got {few!r}; it has "
    "no 'tenant'": lambda: retry(policy=few)(plain),
}

CALL_ERRORS = {
    "argument 1 must be no iterator, which a second attempt would find empty, got "
    f"{ROWS!r}; hand over a list, or a function that returns an iterator": (
        lambda: RESUMED(ROWS)
    ),
    "stream must be iterated once: it has ended, and a second loop would find it "
    f"empty, got {ENDED!r}; call the function again, or keep the items in a list": (
        lambda: iter(ENDED)
    ),
    "resume must be a dict of arguments keyed by name, or a Position, from its "
    "function, got 5": read(5),
    "resume must be another position after new items, or they come again without "
    "end, got {'start': 0}; raise GiveUp where the stream cannot continue": read(
        {"start": 0}
    ),
    "resume must be arguments that pages takes, from its function, got {'offset': 1}; "
    "it has no 'offset'": read({"offset": 1}),
}
