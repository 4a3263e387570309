import copy
import pickle
import weakref

import pytest

from retrykit._internal.frozen import Frozen


class Point(Frozen):
    __slots__ = ("_seen", "x", "y")
    _seen: int
    x: float
    y: float


class Named(Point):
    __slots__ = ("name",)
    name: str


class NoFields(Frozen):
    pass


class Untyped(Frozen):
    __slots__ = "value"  # noqa: PLC0205  a string is allowed, too

    def __init__(self, value):
        self.value = value


class UntypedSubclass(Untyped):
    __slots__ = ("more",)


def pickled(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301


def test_has_the_fields_of_its_base_classes_first():
    assert Named._field_names == ("x", "y", "name")
    assert Named(1, 2, name="p").name == "p"


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((), {}),
        ((1,), {}),
        ((1, 2, 3), {}),
        ((1,), {"z": 2}),
        ((1, 2), {"y": 2}),
        ((1,), {"x": 1}),
        ((1, 2), {"z": 3}),
    ],
)
def test_accepts_each_field_once_and_nothing_else(values, named):
    with pytest.raises(TypeError, match=r"^Point takes x, y$"):
        Point(*values, **named)


def test_repr_is_the_expression_that_builds_it():
    point = Named(1, y=2.5, name="p")
    assert repr(point) == "Named(x=1, y=2.5, name='p')"
    assert eval(repr(point)) == point  # noqa: S307


def test_repr_is_the_default_without_fields():
    assert repr(NoFields()).startswith(f"<{__name__}.NoFields object at ")


def test_matches_patterns_by_its_fields_in_order():
    match Named(1, 2, "p"):
        case Named(x, y, name):
            assert (x, y, name) == (1, 2, "p")


def test_compares_and_hashes_by_fields_and_class():
    assert Point(1, 2) == Point(1, 2) != Point(1, 3)
    assert hash(Point(1, 2)) == hash(Point(1, 2))
    assert Point(1, 2) != Named(1, 2, "p")
    assert Point(1, 2) != (1, 2)


def test_fields_cannot_be_set_or_deleted():
    point = Point(1, 2)
    with pytest.raises(AttributeError, match="Point is frozen: x cannot be set"):
        point.x = 5
    with pytest.raises(AttributeError, match="Point is frozen: x cannot be deleted"):
        del point.x
    with pytest.raises(AttributeError):
        point.other = 5
    assert point == Point(1, 2)


def test_other_attributes_of_a_class_without_slots_are_compared():
    one, other = NoFields(), NoFields()
    one.value = 1
    assert one != other
    other.value = 1
    assert one == other


def test_untyped_slots_are_compared_copied_and_pickled():
    one = UntypedSubclass([1])
    one.more = 2
    for same in (copy.copy(one), pickle.loads(pickle.dumps(one))):  # noqa: S301
        assert same == one
        assert (same.value, same.more) == ([1], 2)
    assert one != UntypedSubclass([1])
    assert Untyped(1) != Untyped(2)
    assert (Untyped._field_names, UntypedSubclass._untyped_slots) == (
        (),
        ("value", "more"),
    )


class Mixed(Frozen):
    __slots__ = ("__weakref__", "cache", "step")
    step: float


class Open(Mixed):
    """Without slots, so it may keep more."""


@pytest.mark.parametrize("kind", [Mixed, Open])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
def test_fields_and_untyped_slots_are_copied(kind, again):
    one = kind(2.0)
    one.cache = [1]
    reference = weakref.ref(one)
    same = again(one)
    assert (same.step, same.cache) == (2.0, [1])
    assert same == one == reference()
    assert kind(2.0) != one


class CustomMatchArgs(Frozen):
    __slots__ = ("x", "y")
    __match_args__ = ("y",)
    x: float
    y: float


def test_a_class_may_define_its_match_args():
    match CustomMatchArgs(1, 2):
        case CustomMatchArgs(y):
            assert y == 2


def test_a_class_without_slots_may_have_attributes_of_any_name():
    one, other = NoFields(), NoFields()
    one._field_names = one._untyped_slots = other._field_names = (
        other._untyped_slots
    ) = 5
    assert repr(one).startswith("<")
    assert one == other


def test_replace_leaves_the_original_unchanged():
    point = Point(1, 2)
    assert point.replace(y=5) == Point(1, 5)
    assert point == Point(1, 2)
