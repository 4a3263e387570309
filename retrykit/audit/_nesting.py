"""Retries within retries: numbers of calls that multiply.

A retried function may call another one that retries, and a client may retry by itself
within each attempt. The calls of a project are followed from each site, as far as names
can be resolved. The longest chain is reported; among equally long chains, the one with
the largest product.
"""

import builtins
import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from retrykit._internal.durations import duration_in_words
from retrykit.audit._findings import Finding
from retrykit.audit._libraries import RETRIERS
from retrykit.audit._libraries.clients import OFF
from retrykit.audit._module import Called
from retrykit.audit._repeated import Repeated
from retrykit.audit._sites import Behavior, Site
from retrykit.audit._values import UNKNOWN, Call, Operation, Reference, Value, part_of

__all__ = ["check_nesting"]

_DEEPEST = 40
_COPIES = frozenset(["with_options", "copy"])
# Methods of clients that send no request.
_QUIET = frozenset(
    [
        "close",
        "aclose",
        "mount",
        "with_options",
        "copy",
        "register_script",
        "pubsub",
        "pipeline",
        "lock",
        "get_paginator",
        "get_waiter",
        "generate_presigned_url",
        "get_database",
        "get_collection",
    ]
)
_WITH_FUNCTIONS = frozenset(["litellm", "stripe"])
_EVERYTHING = frozenset(["Exception", "BaseException"])
_ERRORS_THAT_ARE_OSERRORS = frozenset(["requests", "urllib3"])


class Layer(NamedTuple):
    """A layer of retries.

    Attributes:
        behavior: The behavior of the layer.
        name: The name of the client, or of the library.
        library: The library that retries.
        site: The site; None for the default retries of a client.
        is_client: Whether it is a client that retries within a call.
        function: The function that it retries as a whole, or "".
    """

    behavior: Behavior
    name: str
    library: str
    site: Site | None
    is_client: bool
    function: str = ""


Chain = tuple[Layer, ...]
"""Layers of retries, the outermost first."""


def check_nesting(repeated: Repeated) -> Iterator[Finding]:
    """Yield a finding for each outermost site that multiplies the retries beneath it.

    Args:
        repeated: The repeated functions and calls of a project.
    """
    graph = _Graph(repeated)
    graph.visit_all()
    chains = [each for each in graph.longest.values() if len(each) > 1]
    chains.sort(key=_weight, reverse=True)
    told: set[Site] = set()
    for chain in chains:
        [outermost, *others] = chain
        if outermost.site is not None and outermost.site not in told:
            told.update(each.site for each in others if each.site is not None)
            yield _finding(outermost.site, chain)


class _Graph:
    """The chains of layers beneath the functions of a project.

    Attributes:
        longest: The longest chain that begins with each site.
    """

    def __init__(self, repeated: Repeated) -> None:
        self._project, self._repeated = repeated.project, repeated
        self._chains: dict[str, Chain] = {}
        self._under_way: set[str] = set()
        self.longest: dict[Site, Chain] = {}

    def visit_all(self) -> None:
        """Find the chains of all functions that may retry."""
        for name, definition in [*self._project.definitions.items()]:
            if name in self._repeated.around:
                self._chain_of_function(name)
                continue
            # What it does not repeat is read only if something else repeats it.
            self._under_way.add(name)
            for call in definition.calls:
                if self._is_repeated(name, call):
                    self._chain_of_call(name, call)
            self._under_way.discard(name)

    def _is_repeated(self, function: str, call: Called) -> bool:
        """Return whether a call is in a retried block, or may repeat its arguments."""
        if call.passed and self._is_retrier(call.function):
            return True
        return any(self._repeated.blocks(function, call.line))

    def _is_retrier(self, function: Value) -> bool:
        """Return whether a called function may repeat the functions passed to it."""
        value = self._project.resolve(function)
        if type(value) is Reference:
            return value.name in self._repeated.inside
        while type(value) is Operation and value.sign == ".":
            value = value.left
        return type(value) is Call and (
            _library_of(value) in RETRIERS or self._project.site_of(value) is not None
        )

    def _chain_of_function(self, name: str) -> Chain:
        """Return the longest chain of retries beneath a function."""
        if name in self._chains:
            return self._chains[name]
        if name in self._under_way or len(self._under_way) > _DEEPEST:
            return ()
        self._under_way.add(name)
        chains = [
            self._chain_of_call(name, each)
            for each in self._project.definitions[name].calls
        ]
        chain = max(chains, key=_weight, default=())
        for site in reversed(self._repeated.around.get(name, ())):
            chain = self._repeat(site, chain, name)
        self._under_way.discard(name)
        self._chains[name] = chain
        return chain

    def _chain_of_call(self, function: str, call: Called) -> Chain:
        chain = max(self._chains_beneath(function, call), key=_weight, default=())
        for site in self._repeated.blocks(function, call.line):
            chain = self._repeat(site, chain)
        return chain

    def _repeat(self, site: Site, chain: Chain, function: str = "") -> Chain:
        """Return the chain of a site that repeats the layers in *chain*, and note it.

        A site that never ends, or does not retry, adds no layer. If the site does not
        retry the errors of *chain*, the result is *chain*, or the site alone if *chain*
        is one layer with no more calls.
        """
        library = site.library
        layer = Layer(site.behavior, library, library, site, False, function)  # noqa: FBT003  a field
        if not site.behavior.retries or _is_endless(site.behavior):
            # What never ends is not multiplied, and nothing around it is repeated.
            return chain
        if chain and not _retries_errors_of(layer, chain[0]):
            return max((layer,), chain, key=_weight)
        found = (layer, *chain)
        known = self.longest.get(site, ())
        self.longest[site] = max(known, found, key=_weight)
        return found

    def _chains_beneath(
        self, function: str, call: Called, depth: int = 0
    ) -> Iterator[Chain]:
        """Yield the chains that a call in a function leads to."""
        value = self._project.resolve(call.function)
        if type(value) is Reference:
            yield from self._chains_of_name(value, function, call)
        elif type(value) is Operation and value.sign == ".":
            yield from self._chains_of_method(value, function, call, depth)
        elif type(value) is Call:
            yield from self._chains_of_retrier(value, function, call)

    def _chains_of_name(
        self, value: Reference, function: str, call: Called
    ) -> Iterator[Chain]:
        name = value.name
        if name in self._project.definitions:
            yield self._chain_of_function(name)
            inside = self._repeated.inside.get(name, ())
            for chain in self._chains_of_passed(function, call) if inside else ():
                for site in inside:
                    chain = self._repeat(site, chain)  # noqa: PLW2901  around it
                yield chain
            return
        constructor = f"{name}.__init__"
        if constructor in self._project.definitions:
            yield self._chain_of_function(constructor)
        elif value.library in _WITH_FUNCTIONS:
            unknown = tuple((each, UNKNOWN) for each in call.named)
            yield from self._chains_of_client(Call(value, (), unknown))

    def _chains_of_method(
        self, value: Operation, function: str, call: Called, depth: int
    ) -> Iterator[Chain]:
        path: list[str] = []
        base: Value = value
        while type(base) is Operation and base.sign == ".":
            path.insert(0, base.right)
            base = base.left
        if type(base) is not Call or path[-1] in _QUIET:
            return
        if _library_of(base) in RETRIERS:
            yield from self._chains_of_retrier(base, function, call)
            return
        made, maker = self._made_object(base)
        if type(made) is Reference:
            member: Value = made
            for each in path:
                member = part_of(member, each)
            if depth < _DEEPEST:
                found = call._replace(function=member)
                yield from self._chains_beneath(function, found, depth + 1)
        elif type(made) is Call:
            if _is_session(made):
                yield from self._chains_of_session(maker or function)
            else:
                yield from self._chains_of_client(made)

    def _made_object(self, call: Call, depth: int = 0) -> tuple[Value, str]:
        """Return the object that a call makes, and the function that makes it.

        Returns:
            The call that makes it, a reference to a class of the project, or None if it
            is unknown; and the name of the project's function that makes it, or "".
        """
        function = call.function
        if type(function) is Operation and function.right in _COPIES:
            return self._copied(function.left, call, depth)
        if type(function) is not Reference or depth > _DEEPEST:
            return call, ""
        definition = self._project.definitions.get(function.name)
        if definition is not None:
            result = self._project.resolve(definition.result)
            made, _ = (
                self._made_object(result, depth + 1)
                if type(result) is Call
                else (None, "")
            )
            return made, function.name
        if self._project.is_class(function.name) and not self._project.read_call(call):
            return function, ""
        return call, ""

    def _copied(self, value: Value, call: Call, depth: int) -> tuple[Value, str]:
        """Return a client changed by ``with_options(...)``, or None; and its maker."""
        if type(value) is Call:
            made, maker = self._made_object(value, depth + 1)
            if type(made) is Call:
                named = (*made.named, *call.named)
                return Call(made.function, made.positional, named), maker
        return None, ""

    def _chains_of_client(self, call: Call) -> Iterator[Chain]:
        """Yield the chain of a client's layers that are known to retry.

        A transport, a configuration or another client that it is made with may also
        retry.
        """
        name = call.function.name if type(call.function) is Reference else ""
        chain: Chain = ()
        for used in (call, *_calls_in(call)):
            found = self._project.read_call(used)
            if found is None:
                continue
            library, behavior = found
            known = library in [each.library for each in chain]
            if known or library in RETRIERS or behavior.calls is None:
                continue
            if behavior.retries and not _is_endless(behavior):
                site = self._project.site_of(used)
                label = name if not chain else library
                chain += (
                    Layer(behavior, label or library, library, site, is_client=True),
                )
        yield chain

    def _chains_of_session(self, function: str) -> Iterator[Chain]:
        """Yield the chain of a requests session that a function or its class makes.

        Args:
            function: The function that made it, or the one that uses it.
        """
        mounted = self._mounted(function)
        if not mounted:
            # In another method of the class.
            owner = function.rpartition(".")[0]
            if self._project.is_class(owner):
                names = self._repeated.inside
                methods = [x for x in names if x.rpartition(".")[0] == owner]
                mounted = [site for each in methods for site in self._mounted(each)]
        for site in mounted[:1]:
            name = "requests.Session"
            yield (Layer(site.behavior, name, "requests", site, is_client=True),)

    def _mounted(self, function: str) -> list[Site]:
        """Return a function's sites of HTTP adapters with a known number of calls."""
        return [
            each
            for each in self._repeated.inside.get(function, ())
            if each.library in ("requests", "urllib3") and each.behavior.calls
        ]

    def _chains_of_retrier(
        self, value: Call, function: str, call: Called
    ) -> Iterator[Chain]:
        """Yield the chains of the functions that are passed to a retrying object."""
        site = self._project.site_of(value)
        if site is None:
            return
        for chain in self._chains_of_passed(function, call):
            yield self._repeat(site, chain)

    def _chains_of_passed(self, function: str, call: Called) -> Iterator[Chain]:
        """Yield the chains of the functions that are passed to a call."""
        for each in call.passed:
            value = self._project.resolve(each)
            if type(value) is Reference and value.name in self._project.definitions:
                yield self._chain_of_function(value.name)
        if True in call.passed:
            # What stands in a lambda expression.
            for other in self._project.definitions[function].calls:
                is_within = call.line <= other.line <= call.end_line
                if is_within and True not in other.passed:
                    yield from self._chains_beneath(function, other)


def _library_of(call: Call) -> str:
    return call.function.library if type(call.function) is Reference else ""


def _is_session(call: Call) -> bool:
    function = call.function
    return (
        type(function) is Reference
        and function.library == "requests"
        and function.last in ("Session", "session")
    )


def _calls_in(call: Call, depth: int = 0) -> Iterator[Call]:
    """Yield the calls among the arguments of a call, up to three levels deep."""
    for each in (*call.positional, *(value for _, value in call.named)):
        if type(each) is Call and depth < 3:  # noqa: PLR2004  a client, its transport
            yield each
            yield from _calls_in(each, depth + 1)


def _is_endless(behavior: Behavior) -> bool:
    return behavior.calls == math.inf and behavior.elapsed == math.inf


def _weight(chain: Chain) -> tuple[int, float]:
    """Return the sort key of a chain: its length, and its number of calls."""
    return len(chain), _product(chain)


def _product(chain: Chain) -> float:
    """Return the product of the known and finite numbers of calls."""
    numbers = (each.behavior.calls for each in chain)
    return math.prod(x for x in numbers if x is not None and x != math.inf)


# What SDKs raise in the end, beside what they retry.
_RAISED: Final = {
    "openai": "OpenAIError APIError APIStatusError",
    "anthropic": "AnthropicError APIError APIStatusError",
    "groq": "GroqError APIError APIStatusError",
    "together": "TogetherError APIError APIStatusError",
    "litellm": "OpenAIError APIError APIStatusError Timeout ServiceUnavailableError",
    "requests": "RequestException ConnectionError RetryError Timeout ReadTimeout "
    "ConnectTimeout HTTPError",
    "redis": "RedisError",
    "botocore": "BotoCoreError",
    "boto3": "BotoCoreError",
    "httpx": "HTTPError RequestError TransportError NetworkError TimeoutException",
}

# Errors of one family: the name of each and of its base.
_BASES: Final = {
    "APIError": "OpenAIError",
    "APIConnectionError": "APIError",
    "APITimeoutError": "APIConnectionError",
    "APIStatusError": "APIError",
    "RateLimitError": "APIStatusError",
    "InternalServerError": "APIStatusError",
    "ConflictError": "APIStatusError",
    "BadRequestError": "APIStatusError",
    "TransportError": "HTTPError",
    "TimeoutException": "TransportError",
    "ConnectTimeout": "TimeoutException",
    "ReadTimeout": "TimeoutException",
    "WriteTimeout": "TimeoutException",
    "PoolTimeout": "TimeoutException",
    "NetworkError": "TransportError",
    "ConnectError": "NetworkError",
    "ReadError": "NetworkError",
    "RemoteProtocolError": "TransportError",
    "HTTPStatusError": "HTTPError",
}
_FAMILY: Final = {*_BASES, *_BASES.values()}


def _retries_errors_of(outer: Layer, inner: Layer) -> bool:
    """Return whether a layer retries the errors of an inner layer, as far as known."""
    if outer.library == inner.library == "retrykit":
        # It does not retry the error of a retried call.
        return False
    ending = inner.behavior.ending
    if ending == "hidden":
        return outer.behavior.results
    names = outer.behavior.retried
    if names is None or _EVERYTHING.intersection(names):
        return True
    if not inner.is_client and ending == "wrapped":
        return "RetryError" in names
    raised = inner.behavior.retried
    if raised is None or _EVERYTHING.intersection(raised):
        return bool(names)
    if inner.is_client:
        raised = (*raised, *_RAISED.get(inner.library, "").split())
    return any(_may_be(name, each, inner.library) for name in names for each in raised)


def _may_be(name: str, raised: str, library: str) -> bool:
    """Return whether one error may be of the other's class, judging by their names."""
    if name == raised:
        return True
    one, other = _builtin(name), _builtin(raised)
    if one is not None and other is not None:
        return issubclass(other, one) or issubclass(one, other)
    if one is not None:
        # What a library raises is rarely of a builtin class.
        return one is OSError and library in _ERRORS_THAT_ARE_OSERRORS
    if name in _FAMILY and raised in _FAMILY:
        return name in _ancestors(raised) or raised in _ancestors(name)
    return True


def _builtin(name: str) -> type[BaseException] | None:
    found = getattr(builtins, name, None)
    is_error = isinstance(found, type) and issubclass(found, BaseException)
    return found if is_error else None


def _ancestors(name: str) -> Iterator[str]:
    while name in _BASES:
        name = _BASES[name]
        yield name


def _finding(site: Site, chain: Chain) -> Finding:
    [_, *others] = chain
    factors = [_factor(each) for each in chain]
    places = [f"{factors[0]} here"]
    places += (
        f"{factor} {_place(each, site)}"
        for factor, each in zip(factors[1:], others, strict=True)
    )
    what = "requests" if chain[-1].is_client else "calls"
    numbers = " x ".join(factors)
    if all(each.isdecimal() for each in factors):
        total = f"up to {int(_product(chain))} {what}: {numbers}"
    else:
        total = f"{what} multiply: {numbers}"
    message = f"{total}; {', '.join(places)}"
    if all(each.is_client for each in others):
        off = OFF.get(others[0].library, "the retries of the client off")
        return Finding(
            "library-retries-too", site, site.line, message, f"switch them off: {off}"
        )
    return Finding(
        "nested-retries", site, site.line, message, "retry in one layer alone"
    )


def _factor(layer: Layer) -> str:
    calls, elapsed = layer.behavior.calls, layer.behavior.elapsed
    if calls is None or (calls == math.inf and elapsed is None):
        return "?"
    if calls == math.inf:
        return f"as many as fit in {duration_in_words(elapsed or 0.0)}"
    return str(int(calls))


def _place(layer: Layer, site: Site) -> str:
    by = f"by {layer.name}" if layer.is_client else f"({layer.name})"
    if layer.site == site:
        # One decorator of several functions.
        by += f" of {layer.function.rpartition('.')[2]}"
    if layer.site is None:
        return by
    near = layer.site.path == site.path
    place = (
        f"line {layer.site.line}" if near else f"{layer.site.path}:{layer.site.line}"
    )
    return f"at {place} {by}"
