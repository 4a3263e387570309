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


class Free(Frozen):
    pass


class Loose(Frozen):
    __slots__ = "kept"  # noqa: PLC0205  one may write it so

    def __init__(self, kept):
        self.kept = kept


class Looser(Loose):
    __slots__ = ("more",)


def by_pickle(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301


def test_has_the_parts_of_its_classes_in_the_order_of_their_types():
    assert Named.field_names == ("x", "y", "name")
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
def test_takes_each_part_once_and_nothing_else(values, named):
    with pytest.raises(TypeError, match=r"^Point takes x, y$"):
        Point(*values, **named)


def test_prints_as_what_builds_it():
    point = Named(1, y=2.5, name="p")
    assert repr(point) == "Named(x=1, y=2.5, name='p')"
    assert eval(repr(point)) == point  # noqa: S307


def test_prints_as_any_object_where_it_has_no_parts():
    assert repr(Free()).startswith(f"<{__name__}.Free object at ")


def test_matches_by_its_parts_in_order():
    match Named(1, 2, "p"):
        case Named(x, y, name):
            assert (x, y, name) == (1, 2, "p")


def test_compares_and_hashes_by_its_parts_and_its_kind():
    assert Point(1, 2) == Point(1, 2) != Point(1, 3)
    assert hash(Point(1, 2)) == hash(Point(1, 2))
    assert Point(1, 2) != Named(1, 2, "p")
    assert Point(1, 2) != (1, 2)


def test_a_part_cannot_be_set_or_deleted():
    point = Point(1, 2)
    with pytest.raises(AttributeError, match="Point is frozen: x cannot be set"):
        point.x = 5
    with pytest.raises(AttributeError, match="Point is frozen: x cannot be deleted"):
        del point.x
    with pytest.raises(AttributeError):
        point.other = 5
    assert point == Point(1, 2)


def test_a_class_without_slots_may_keepmore():
    one, other = Free(), Free()
    one.kept = 1
    assert one != other
    other.kept = 1
    assert one == other


def test_slots_without_a_type_are_compared_copied_and_pickled_as_they_are():
    one = Looser([1])
    one.more = 2
    for same in (copy.copy(one), pickle.loads(pickle.dumps(one))):  # noqa: S301
        assert same == one
        assert (same.kept, same.more) == ([1], 2)
    assert one != Looser([1])
    assert Loose(1) != Loose(2)
    assert (Loose.field_names, Looser.untyped_slots) == ((), ("kept", "more"))


class Mixed(Frozen):
    __slots__ = ("__weakref__", "cache", "step")
    step: float


class Open(Mixed):
    """Without slots, so it may keep more."""


@pytest.mark.parametrize("kind", [Mixed, Open])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, by_pickle])
def test_parts_and_other_slots_are_copied_together(kind, again):
    one = kind(2.0)
    one.cache = [1]
    kept = weakref.ref(one)
    same = again(one)
    assert (same.step, same.cache) == (2.0, [1])
    assert same == one == kept()
    assert kind(2.0) != one


class Chosen(Frozen):
    __slots__ = ("x", "y")
    __match_args__ = ("y",)
    x: float
    y: float


def test_a_class_may_say_itself_how_it_is_matched():
    match Chosen(1, 2):
        case Chosen(y):
            assert y == 2


def test_a_class_without_slots_may_have_attributes_of_any_name():
    one, other = Free(), Free()
    one.field_names = one.untyped_slots = other.field_names = other.untyped_slots = 5
    assert repr(one).startswith("<")
    assert one == other


def test_a_changed_copy_leaves_the_original():
    point = Point(1, 2)
    assert point.replace(y=5) == Point(1, 5)
    assert point == Point(1, 2)
