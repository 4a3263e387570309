"""Edits of objects that retry, such as `Retrying`, and of their uses."""

from collections.abc import Iterator

import libcst as cst
from libcst import matchers

from retrykit.migrate import _stamina
from retrykit.migrate._blocks import Edits, block_edits, loop_head
from retrykit.migrate._expressions import OURS, code, parse
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._settings import Settings
from retrykit.migrate._source import Source

__all__ = ["annotation_edits", "caller_edits", "object_edits", "object_uses"]


def object_uses(
    source: Source, assignment: cst.CSTNode | None
) -> Iterator[cst.BaseExpression]:
    """Yield the uses of the variable, or the attribute, that an object is assigned to.

    For an object that a function returns, these are the uses of the function's results.

    Raises:
        Untranslatable: It is not known where the object is used.
    """
    if isinstance(assignment, cst.Return):
        yield from _returned_uses(source, assignment)
        return
    if not isinstance(assignment, cst.Assign) or len(assignment.targets) != 1:
        raise Untranslatable("it is passed on as an object")
    target = assignment.targets[0].target
    if isinstance(target, cst.Name):
        yield from _variable_uses(source, target, assignment)
    elif isinstance(target, cst.Attribute) and code(target.value) == "self":
        yield from _attribute_uses(source, target)
    else:
        raise Untranslatable("it is passed on as an object")


def _variable_uses(
    source: Source, target: cst.Name, assignment: cst.Assign
) -> Iterator[cst.BaseExpression]:
    name = target.value
    if not _is_always(source, target, assignment.value):
        raise Untranslatable(f"{name} is assigned more than once")
    if source.is_global(target) and source.surroundings.mention(name):
        raise Untranslatable(f"another file uses {name}")
    uses = source.references(target)
    if not uses:
        raise Untranslatable(f"{name} is for other files")
    yield from (each for each in uses if isinstance(each, cst.Name))


def _is_always(source: Source, target: cst.Name, value: cst.BaseExpression) -> bool:
    """Return whether all values of a variable are objects of the same class."""

    def kind(node: cst.CSTNode | None) -> object:
        return source.library_name(node.func) if isinstance(node, cst.Call) else None

    values = [getattr(each, "value", None) for each in source.definitions(target)]
    return value in values and {kind(each) for each in values} == {kind(value)}


def _attribute_uses(
    source: Source, target: cst.Attribute
) -> Iterator[cst.BaseExpression]:
    name = target.attr.value
    if source.surroundings.mention(name):
        raise Untranslatable(f"another file uses {name}")
    for node in source.attributes(name):
        if node is target:
            continue
        if code(node.value) != "self":
            raise Untranslatable(f"it is used as {code(node)}")
        yield node


def _returned_uses(
    source: Source, returned: cst.Return
) -> Iterator[cst.BaseExpression]:
    function = _function_around(source, returned)
    name = function.name.value
    if source.surroundings.mention(name):
        raise Untranslatable(f"another file uses {name}")
    if len(matchers.findall(function, matchers.Return())) != 1:
        raise Untranslatable(f"{name} returns several objects")
    decorators = [code(each.decorator) for each in function.decorators]
    if decorators not in ([], ["property"]) or function.asynchronous is not None:
        raise Untranslatable("it is passed on as an object")
    uses = [*_reads(source, function)]
    if not uses:
        raise Untranslatable(f"{name} is for other files")
    for use in uses:
        made: cst.CSTNode | None = use if decorators else source.parent(use)
        if not (decorators or (isinstance(made, cst.Call) and made.func is use)):
            raise Untranslatable(f"{name} is passed on as an object")
        around = None if made is None else source.parent(made)
        if isinstance(around, cst.Assign):
            yield from object_uses(source, around)
        elif isinstance(made, cst.BaseExpression):
            yield made


def _function_around(source: Source, node: cst.CSTNode) -> cst.FunctionDef:
    for each in source.parents(node):
        if isinstance(each, cst.FunctionDef):
            return each
    raise Untranslatable("it is passed on as an object")


def _reads(source: Source, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    """Yield the reads of a function, or of a method through ``self``."""
    around = next(
        (
            each
            for each in source.parents(function)
            if isinstance(each, cst.FunctionDef | cst.ClassDef)
        ),
        None,
    )
    if not isinstance(around, cst.ClassDef):
        for node in source.references(function.name):
            yield cst.ensure_type(node, cst.Name)
        return
    for attribute in source.attributes(function.name.value):
        if code(attribute.value) != "self":
            raise Untranslatable(f"it is used as {code(attribute)}")
        yield attribute


def annotation_edits(source: Source, assignment: cst.CSTNode | None) -> Edits:
    """Return the edit of a function's return annotation, if it returns an object.

    Raises:
        Untranslatable: The annotation is not a name of a library.
    """
    if not isinstance(assignment, cst.Return):
        return {}
    returns = _function_around(source, assignment).returns
    if returns is None:
        return {}
    annotation = returns.annotation
    if source.library_name(annotation) is None:
        raise Untranslatable(f"it is returned as {code(annotation)}")
    return {annotation: lambda _node: parse(f"{OURS}.Policy")}


def object_edits(
    source: Source, use: cst.BaseExpression, settings: Settings, method: str
) -> Edits:
    """Return the edits of a use of an object, which becomes a policy.

    Args:
        source: The file.
        use: The use.
        settings: The settings of the policy.
        method: The policy's method in place of a call of the object; empty if the
            object is called through its own method ``call``.

    Raises:
        Untranslatable: A policy has no such use.
    """
    text = code(use)
    around = source.parent(use)
    if isinstance(around, cst.Call) and around.func is use and method:
        return {use: lambda _node: parse(f"{text}.{method}")}
    if isinstance(around, cst.Attribute) and around.attr.value == "call" and not method:
        return {}
    if isinstance(around, cst.Attribute) and around.attr.value == "wraps" and method:
        decorator = "aretry" if method == "acall" else "retry"
        wrapping = source.parent(around)
        if isinstance(wrapping, cst.Call) and wrapping.func is around:
            return {around: lambda _node: parse(f"{OURS}.{decorator}({text})")}
    if isinstance(around, cst.For) and around.iter is use and method:
        if "fallback" in settings:
            raise Untranslatable("a block has no retry_error_callback")
        edits = block_edits(source, around, judges="on_result" in settings)
        edits[use] = lambda _node: parse(f"{loop_head(around)}({text})")
        return edits
    raise Untranslatable("it is passed on as an object")


def caller_edits(
    source: Source, node: cst.BaseExpression, around: cst.CSTNode | None, method: str
) -> Edits:
    """Return the edits of the calls through a stamina caller.

    Args:
        source: The file.
        node: The caller.
        around: The node around it.
        method: The policy's method in place of a call of the caller.

    Raises:
        Untranslatable: A use of the caller is not known, or cannot be translated.
    """
    if isinstance(around, cst.Call | cst.Attribute):
        return _caller_use(source, node, method)
    edits = annotation_edits(source, around)
    for use in object_uses(source, around):
        edits |= _caller_use(source, use, method)
    return edits


def _caller_use(source: Source, use: cst.BaseExpression, method: str) -> Edits:
    around = source.parent(use)
    if isinstance(around, cst.Call) and around.func is use and around.args:
        on = _stamina.condition_text(source, around.args[0].value)

        def call(node: cst.CSTNode) -> cst.CSTNode:
            made = cst.ensure_type(node, cst.Call)
            return made.with_changes(
                func=_member(_replaced(made.func, on), method), args=made.args[1:]
            )

        return {around: call}
    bound = None if around is None else source.parent(around)
    named = isinstance(around, cst.Attribute) and around.attr.value == "on"
    if not named or not isinstance(bound, cst.Call) or len(bound.args) != 1:
        raise Untranslatable("it is passed on as an object")
    on = _stamina.condition_text(source, bound.args[0].value)

    def bind(node: cst.CSTNode) -> cst.CSTNode:
        made = cst.ensure_type(cst.ensure_type(node, cst.Call).func, cst.Attribute)
        return _replaced(made.value, on)

    edits: Edits = {bound: bind}
    outer = source.parent(bound)
    if isinstance(outer, cst.Call) and outer.func is bound:
        edits[bound] = lambda node: _member(
            cst.ensure_type(bind(node), cst.Call), method
        )
        return edits
    for each in object_uses(source, outer):
        edits |= object_edits(source, each, {}, method)
    return edits


def _replaced(policy: cst.BaseExpression, on: str) -> cst.Call:
    argument = cst.Arg(
        keyword=cst.Name("on"),
        value=parse(on),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    return cst.Call(_member(policy, "replace"), [argument])


def _member(node: cst.BaseExpression, name: str) -> cst.Attribute:
    return cst.Attribute(node, cst.Name(name))
