"""Loops that try something else in each turn: the next server, or a larger buffer."""

import ast
import re
from collections.abc import Iterator, Sequence

from retrykit.audit._flow import inner_nodes, without_handlers
from retrykit.audit._handlers import OF_NETWORK, is_log_function, last_name
from retrykit.audit._loop_words import (
    EVIDENCE,
    Statement,
    counters,
    has_text,
    names_in,
    texts_in,
)
from retrykit.audit._turns import Turn

__all__ = ["is_enlargement", "is_fallback", "picks_free_port_or_name"]

# A place that is free for this attempt, and the names of such places.
_ANOTHER = re.compile(
    r"(free|unused|random|available|allocate|candidate|pick|find|next)_?\w*_?port"
    r"|mktemp|mkdtemp|^urandom$|(^|_)timestamp$|(^|_)uuid\d?$|token_hex|randint|randrange|^choice$|^next$|^pop(left)?$",
    re.IGNORECASE,
)
# Ports and ranges of addresses.
_PORTS = re.compile(r"port$|(^|_)port|(^|_)(cidr|prefix|subnet)$", re.IGNORECASE)
# The end of attempts to find a name that nobody has.
_NONE_FREE = re.compile(
    r"\b(unique|unused|collisions?|free ports?)\b"
    r"|\bgenerate an? ([\w-]+ )*(id|name)\b",
    re.IGNORECASE,
)
_PLACES = re.compile(r"(^|_)(name|path|file|filename|link|key|dir)$", re.IGNORECASE)
_TAKEN = re.compile(
    r"Exists|Conflict|Duplicat|Integrity|^(OS|IO|Permission)Error$|^error$"
)
_MOVES_ON = re.compile(
    r"(^|_)replace_source$|(^|_)(next|rotate|switch|fail_?over|advance)_\w*"
    r"(host|server|node|endpoint|proxy|mirror|url|address|client|info|account"
    r"|replica|region|model|provider|credential|broker|peer|source|session|key|token)",
    re.IGNORECASE,
)
# What generates random numbers, and errors that are not about these.
_GENERATORS = re.compile(
    r"^_?(prng|randint|random_state|rng|seed|shuffle)$", re.IGNORECASE
)
_SERVICES = re.compile(
    rf"{OF_NETWORK.pattern}|API|HTTP|Client|Limit|Rate|Server|Service"
    r"|^(OS|IO|Runtime)?(Error|Exception)$|^error$"
)
_SERVER = "(endpoint|host|mirror|node|peer|proxy|proxie|replica|server)"
_SERVERS = re.compile(f"(^|_){_SERVER}s$", re.IGNORECASE)
_SERVER_COUNTS = re.compile(
    f"(^|_)(num(ber)?|n|no)_(of_)?{_SERVER}s$|(^|_){_SERVER}s?_(cnt|count|num|number)$",
    re.IGNORECASE,
)
_NUMBERS = frozenset(["count", "range"])
# What is counted for its delays or its attempts.
_OF_RETRIES = re.compile(
    f"{EVIDENCE.pattern}|delay|interval|pause|schedule|sleep|timeout|wait",
    re.IGNORECASE,
)
_NEW_FOLDERS = re.compile(
    r"_*(create|make)_(\w+_)?(numbered|temp(orary)?|unique)_(dir|directory|folder)$"
)
_PROXIES = re.compile(r"_*(choose|draw|get|pick|random|select)_(\w+_)?proxy$")
# The number of a turn, or its delay.
_TURNS = re.compile(
    r"^_*(attempts?|retr(y|ies)|try|tries)\d?$"
    r"|count|delay|idx|index|(^|_)(i|n|no)(_|$)|num|sleep|timeout|wait",
    re.IGNORECASE,
)
_EXCLUDES = re.compile("_*(avoid|exclude|skip)", re.IGNORECASE)
_CHANGES = frozenset(["add", "discard", "extend", "pop", "remove", "update"])
_COUNTS = re.compile(
    f"{EVIDENCE.pattern}|count|err|exc|fail|last|message(?!s)|msg(?!s)|reason",
    re.IGNORECASE,
)


def is_fallback(turn: Turn) -> bool:
    """Return whether each turn uses something else, such as the next server."""
    return (
        _uses_items(turn)
        or _takes_next(turn.loop)
        or _calls_next(turn)
        or picks_free_port_or_name(turn.loop, turn.caught, turn.attempt.body)
        or has_text(turn.end, _NONE_FREE)
        or _switches_target(turn)
        or _excludes_failed(turn)
        or _draws(turn)
        or _counts_alternatives(turn)
        or _takes_proxy(turn)
        or _makes_folder(turn)
    )


def _makes_folder(turn: Turn) -> bool:
    """Return whether an attempt begins with a folder that is not there yet."""
    match turn.attempt.body[0]:
        case ast.Expr(value=ast.Call(func=function)) if not turn.pauses:
            return last_name(function) == "mkdir"
        case ast.Assign(value=ast.Call(func=function)) if not turn.pauses:
            return bool(_NEW_FOLDERS.match(last_name(function)))
    return False


def _counts_alternatives(turn: Turn) -> bool:
    """Return whether a loop has as many turns as there are items of something."""
    loop = turn.loop
    bound = loop.test if isinstance(loop, ast.While) else loop.iter
    names = names_in(bound)
    if isinstance(loop, ast.While) and not names & counters(loop):
        return False
    values = [turn.before[x] for x in names & turn.before.keys()]
    return any(
        isinstance(each, ast.Call)
        and last_name(each.func) == "len"
        and not any(map(_OF_RETRIES.search, names_in(each)))
        for node in [bound, *values]
        for each in ast.walk(node)
    )


def _takes_proxy(turn: Turn) -> bool:
    """Return whether each turn gets a proxy for its attempt."""
    taken = {
        name
        for each in turn.loop.body
        if isinstance(each, ast.Assign) and _gets_proxy(each.value)
        for target in each.targets
        for name in names_in(target)
    }
    return any(
        isinstance(each, ast.Call) and names_in(each) & taken
        for each in inner_nodes(turn.attempt.body)
    )


def _gets_proxy(node: ast.expr) -> bool:
    return any(
        isinstance(each, ast.Call) and _PROXIES.match(last_name(each.func))
        for each in ast.walk(node)
    )


def _takes_next(loop: Statement) -> bool:
    """Return whether a loop takes items from what its condition or its range counts."""
    left = names_in(loop.test if isinstance(loop, ast.While) else loop.iter)
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in {"pop", "popleft"}
        and names_in(each.func.value) & left
        for each in without_handlers(loop.body)
    )


def _calls_next(turn: Turn) -> bool:
    """Return whether an attempt passes on the result of a call like ``pool.next()``."""
    taken = {
        target.id
        for each in [*turn.loop.body, *turn.attempt.body]
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and isinstance(each.value.func, ast.Attribute)
        and re.match("_*next(_|$)|choice$", each.value.func.attr)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    # Others, such as another header, only vary the same request.
    return any(
        isinstance(each, ast.Call) and each.args and names_in(each.args[0]) & taken
        for each in inner_nodes(turn.attempt.body)
    )


def _uses_items(turn: Turn) -> bool:
    """Return whether each turn uses another item of the loop's iterable."""
    loop = turn.loop
    if isinstance(loop, ast.While):
        return False
    if "as_completed" in names_in(loop.iter):
        return True
    if _calls_item(turn) or _counts_servers(loop.iter):
        return True
    # One of some texts is no number of an attempt.
    listed = isinstance(loop.iter, ast.Tuple | ast.List)
    named = listed and texts_in(loop.iter)
    numbers = EVIDENCE if listed or names_in(loop.iter) & _NUMBERS else _TURNS
    items = {x for x in _items(loop) - {"_", "__"} if named or not numbers.search(x)}
    if not items:
        return False
    for each in inner_nodes(loop.body):
        if isinstance(each, ast.Assign) and names_in(each.value) & items:
            # Such as `port = first + i`.
            items |= {y.id for x in each.targets for y in _names_of(x)}
    # With a step, the numbers are places in the data.
    steps = any(
        isinstance(each, ast.Call) and len(each.args) > 2  # noqa: PLR2004
        for each in ast.walk(loop.iter)
    )
    parts = [*turn.attempt.body, *turn.attempt.orelse]
    parts += [x for x in loop.body if steps and x is not turn.attempt]
    parts += _before_attempt(turn, commands=bool(names_in(loop.iter) & _NUMBERS))
    used: tuple[type[ast.AST], ...] = (ast.Call, ast.Subscript)
    if isinstance(loop.iter, ast.Name | ast.Tuple | ast.List):
        used += (ast.Assign, ast.Compare)
    return any(
        names_in(each) & items
        for each in _nodes_without_logs(parts)
        if isinstance(each, used)
    )


def _counts_servers(node: ast.expr) -> bool:
    """Return whether an expression is like ``range(len(hosts))`` or ``n_nodes``."""
    names = names_in(node)
    lengths = "len" in names and any(map(_SERVERS.search, names))
    return lengths or any(map(_SERVER_COUNTS.search, names))


def _before_attempt(turn: Turn, *, commands: bool) -> list[ast.stmt]:
    """Return the statements before the attempt that do not sleep, such as ``host = x``.

    Args:
        turn: The turn.
        commands: Whether to return only calls whose results are not used.
    """
    pauses = {id(each.node) for each in turn.pauses}
    found: list[ast.stmt] = []
    for each in turn.loop.body:
        inner = {*map(id, ast.walk(each))}
        if id(turn.attempt) in inner:
            break
        if not inner & pauses and (isinstance(each, ast.Expr) or not commands):
            found.append(each)
    return found


def _nodes_without_logs(body: Sequence[ast.stmt]) -> list[ast.AST]:
    """Return the nodes of a block, without handlers and calls that log."""
    told = {
        id(x)
        for each in inner_nodes(body)
        if isinstance(each, ast.Call) and is_log_function(each.func)
        for x in ast.walk(each)
    }
    return [each for each in without_handlers(body) if id(each) not in told]


def _calls_item(turn: Turn) -> bool:
    """Return whether an attempt calls a function that the loop iterates over."""
    names = names_in(turn.loop.target) if not isinstance(turn.loop, ast.While) else ()
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Name)
        and each.func.id in names
        for each in inner_nodes(turn.attempt.body)
    )


def _items(loop: ast.For | ast.AsyncFor) -> set[str]:
    """Return the names in a loop's target, without the index of ``enumerate``."""
    match loop:
        case ast.For(
            target=ast.Tuple(elts=[_, item]),
            iter=ast.Call(func=ast.Name(id="enumerate")),
        ):
            return names_in(item)
    return names_in(loop.target)


def _names_of(target: ast.expr) -> list[ast.Name]:
    return [x for x in ast.walk(target) if isinstance(x, ast.Name)]


def picks_free_port_or_name(
    loop: Statement, caught: set[str], attempt: Sequence[ast.stmt]
) -> bool:
    """Return whether each turn uses another port, or another name for a file.

    Args:
        loop: The loop.
        caught: The names of the errors after which it continues. Another name counts
            only if all of these may mean that a name is taken, or if it is random.
        attempt: The statements that use the port or the name.
    """
    taken = bool(caught) and all(map(_TAKEN.search, caught))
    places: set[str] = set()
    others: set[str] = set()
    for each in inner_nodes(loop.body, loops=False):
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                place = name
            case ast.Assign(
                targets=[ast.Subscript(ast.Name(id=name), ast.Constant(str(place)))],
                value=value,
            ):
                # Such as `settings["port"] = str(port)`.
                pass
            case _:
                continue
        used = names_in(value)
        named = taken or (caught == {"Exception"} and "uuid4" in used)
        fits = _PORTS.search(place) or (named and _PLACES.search(place))
        if used & others or any(map(_ANOTHER.search, used)):
            others.add(name)
            places |= {name} if fits else set()
    return any(
        isinstance(each, ast.Call)
        and (
            any(map(_ANOTHER.search, names_in(each))) or names_in(each) & others
            if last_name(each.func) == "bind"
            else names_in(each) & places
        )
        for each in inner_nodes(attempt)
    )


def _draws(turn: Turn) -> bool:
    """Return whether each attempt, without sleeps, uses other random numbers."""
    if turn.pauses or any(map(_SERVICES.search, turn.caught)):
        return False
    values = {**turn.before}
    for each in inner_nodes(turn.loop.body):
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = value
    used = {x for each in turn.attempt.body for x in names_in(each)}
    used |= {y for x in used & values.keys() for y in names_in(values[x])}
    return any(map(_GENERATORS.search, used))


def _switches_target(turn: Turn) -> bool:
    """Return whether a handler chooses the next server, or something similar."""
    handled = [x for each in turn.handlers for x in inner_nodes(each.body)]
    if any(
        isinstance(each, ast.Call) and _MOVES_ON.search(last_name(each.func))
        for each in handled
    ):
        return True
    # After a sleep, it is the same request, with another header.
    if not turn.pauses and any(map(_is_next_index, handled)):
        return True
    taken: set[str] = set()
    for each in handled:
        match each:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id="next")),
            ):
                taken.add(name)
    return any(
        names_in(each) & taken
        for each in _used_values([*inner_nodes(turn.attempt.body)])
    )


def _is_next_index(node: ast.AST) -> bool:
    """Return whether an expression is like ``(index + 1) % len(servers)``."""
    match node:
        case ast.BinOp(left=ast.BinOp(), op=ast.Mod(), right=size):
            return "len" in names_in(size) or _counts_servers(size)
    return False


def _excludes_failed(turn: Turn) -> bool:
    """Return whether each turn excludes what has failed in earlier turns."""
    failed = {
        name
        for handler in turn.handlers
        for each in inner_nodes(handler.body)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in {"add", "append"}
        for name in names_in(each.func.value)
    }
    for each in without_handlers(turn.loop.body):
        match each:
            case (
                ast.BinOp(op=ast.Sub(), right=excluded)
                | ast.Compare(ops=[ast.NotIn()], comparators=[excluded])
            ) if names_in(excluded) & failed:
                return True
            case ast.keyword(arg=str(name), value=excluded) if (
                _EXCLUDES.match(name) and names_in(excluded) & failed
            ):
                return True
    return False


def is_enlargement(turn: Turn) -> bool:
    """Return whether a loop without sleeps changes a value that its next turn uses.

    For example, the size of a buffer.
    """
    if turn.pauses:
        return False
    changed = {
        name
        for handler in turn.handlers
        for name in _changed_by(handler)
        if not _COUNTS.search(name)
    }
    # What an attempt returns is not part of the next one.
    changed -= {
        each.id
        for each in inner_nodes(turn.attempt.body)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    body = without_handlers(turn.loop.body)
    for each in body:
        if isinstance(each, ast.Assign) and names_in(each.value) & changed:
            changed |= {y.id for x in each.targets for y in _names_of(x)}
    return any(names_in(each) & changed for each in _used_values(body))


def _changed_by(handler: ast.ExceptHandler) -> Iterator[str]:
    """Yield the names that a handler changes, empties, or computes from its error."""
    for each in inner_nodes(handler.body):
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                told = {name, handler.name or name}
                if names_in(value) & told or _is_empty_literal(value):
                    yield name
            case ast.Assign(
                targets=[ast.Name(id=name) | ast.Attribute(attr=name)],
                value=ast.Constant(value=bool()),
            ):
                # Another form of the request.
                yield name
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))]):
                yield name
            case ast.AugAssign(
                target=ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name))
            ):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if (
                method in _CHANGES
            ):
                yield name
            case ast.AugAssign(target=ast.Attribute() as target):
                # Such as `self.options.size *= 2`.
                yield from names_in(target) - {"self", "cls"}


def _is_empty_literal(node: ast.expr) -> bool:
    """Return whether an expression is ``[]`` or ``()``."""
    return isinstance(node, ast.List | ast.Tuple) and not node.elts


def _used_values(body: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """Yield the arguments of calls that do not log, indexes, and products."""
    for each in body:
        match each:
            case ast.Call() if not is_log_function(each.func):
                yield from each.args
                yield from (keyword.value for keyword in each.keywords)
            case ast.Subscript(slice=index):
                yield index
            case ast.BinOp(op=ast.Mult()):
                # Such as `b" " * size`.
                yield each
