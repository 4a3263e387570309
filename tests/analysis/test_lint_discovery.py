"""Discovery of policies: each under its name, once."""

import pytest

from retrykit.analysis.lint import discover
from retrykit.analysis.lint._discovery import iter_references
from tests._support import source_folders
from tests._support.source_folders import HEAD, found_names, on_import_path

no_imports_left = source_folders.no_imports_left
write, package = source_folders.write, source_folders.package


def attempts(target):
    return {found.name: found.policy.max_attempts for found in discover(target).found}


KINDS = """\
import functools

POLITE = Policy(max_attempts=2)

@retry(max_attempts=3)
def fetch(): ...

@aretry(max_attempts=4)
async def afetch(): ...

slow = with_policy(fetch, max_attempts=5)

@functools.lru_cache
@retry(max_attempts=6)
def cached(): ...

part = functools.partial(retry(max_attempts=7)(print), "hello")

def logged(fn):
    @functools.wraps(fn)
    def call(*args):
        return fn(*args)
    return call

@logged
@retry(max_attempts=8)
def covered(): ...

class Client:
    PATIENT = Policy(max_attempts=9)

    @retry(max_attempts=10)
    def method(self): ...

    @classmethod
    @retry(max_attempts=11)
    def below(cls): ...

    @retry(max_attempts=12)
    @staticmethod
    def above(): ...

    @property
    @retry(max_attempts=13)
    def size(self): ...

    @size.setter
    @retry(max_attempts=14)
    def size(self, value): ...

    @functools.cached_property
    @retry(max_attempts=15)
    def length(self): ...

    first = functools.partialmethod(method, 1)
    alone = functools.partialmethod(retry(max_attempts=16)(print), 1)

    class Inner:
        @retry(max_attempts=17)
        def method(self): ...

        class Innermost:
            again = retry(max_attempts=18)(print)

CALLS = [retry(max_attempts=19)(len), fetch, (retry,)]
TABLE = {"a": Policy(max_attempts=20), 7: retry(max_attempts=21)(repr)}
PAIR = (Policy(max_attempts=22), POLITE)

class Service:
    def __call__(self): ...

service = retry(max_attempts=23)(Service())
if True:
    LATE, other = Policy(max_attempts=24), [x for x in [Policy()]][0]
"""
ATTEMPTS_BY_NAME = {
    "POLITE": 2,
    "fetch": 3,
    "afetch": 4,
    "slow": 5,
    "cached": 6,
    "part": 7,
    "covered": 8,
    "Client.PATIENT": 9,
    "Client.method": 10,
    "Client.below": 11,
    "Client.above": 12,
    "Client.size": 13,
    "Client.size.setter": 14,
    "Client.length": 15,
    "Client.alone": 16,
    "Client.Inner.method": 17,
    "Client.Inner.Innermost.again": 18,
    "CALLS[0]": 19,
    "TABLE['a']": 20,
    "TABLE[7]": 21,
    "PAIR[0]": 22,
    "service": 23,
    "LATE": 24,
    "other": 5,
}


def test_finds_every_kind_of_object_with_a_policy_once(write):
    assert attempts(str(write(jobs=KINDS) / "jobs.py")) == ATTEMPTS_BY_NAME


def test_has_the_file_and_line_of_each_policy(write):
    file = write(jobs=KINDS) / "jobs.py"
    lines = file.read_text().splitlines()
    found = {each.name: each for each in discover(str(file)).found}
    assert {each.file for each in found.values()} == {file}
    sources = {name: lines[each.line - 1].strip() for name, each in found.items()}
    assert sources["POLITE"] == "POLITE = Policy(max_attempts=2)"
    assert sources["afetch"] == "async def afetch(): ..."
    assert sources["slow"] == "slow = with_policy(fetch, max_attempts=5)"
    assert (
        sources["Client.size"]
        == sources["Client.size.setter"]
        == "def size(self, value): ..."
    )
    assert sources["Client.Inner.method"] == "def method(self): ..."
    assert sources["TABLE[7]"].startswith("TABLE = {")


def test_a_package_is_searched_with_its_submodules(package):
    shop = package(
        orders="@retry\ndef fetch(): ...\n",
        deep__more="@retry\ndef fetch(): ...\n",
    )
    (shop / "__init__.py").write_text(f"{HEAD}@retry\ndef pay(): ...\n")
    assert found_names(shop) == [
        "shop:pay",
        "shop.deep.more:fetch",
        "shop.orders:fetch",
    ]
    assert found_names(shop / "orders.py") == ["shop.orders:fetch"]
    assert found_names(shop / "__init__.py") == ["shop:pay"]


def test_a_module_is_found_by_its_name(package):
    shop = package(
        orders="@retry\ndef fetch(): ...\n",
        deep__more="@retry\ndef fetch(): ...\n",
        tests__test_more="@retry\ndef fetch(): ...\n",
    )
    every = ["shop.deep.more:fetch", "shop.orders:fetch"]
    progress = []
    with on_import_path(shop.parent):
        assert (
            found_names("shop", progress=lambda *each: progress.append(each)) == every
        )
        assert found_names("shop.deep") == ["shop.deep.more:fetch"]
        assert found_names("shop.orders") == ["shop.orders:fetch"]
        assert found_names("shop.orders:fetch") == ["shop.orders:fetch"]
        assert found_names("shop.tests") == ["shop.tests.test_more:fetch"]
        # Again, with the modules already imported.
        assert found_names("shop") == every
    assert progress == [("shop", 1), ("shop.deep.more", 3), ("shop.orders", 3)]


NAMED = {
    "a function": ("fetch", ["fetch"]),
    "a policy": ("POLITE", ["POLITE"]),
    "a class": (
        "Client.Inner",
        ["Client.Inner.method", "Client.Inner.Innermost.again"],
    ),
    "a method": ("Client.below", ["Client.below"]),
    "a property": ("Client.size", ["Client.size", "Client.size.setter"]),
    "a list": ("CALLS", ["CALLS[0]", "CALLS[1]"]),
}


@pytest.mark.parametrize(("name", "found"), NAMED.values(), ids=NAMED)
def test_a_single_name_can_be_checked(write, name, found):
    file = write(jobs=KINDS) / "jobs.py"
    assert [each.name for each in discover(f"{file}:{name}").found] == found


def test_a_name_in_the_folder_of_a_package_is_found(package):
    shop = package(orders="@retry\ndef fetch(): ...\n")
    (shop / "__init__.py").write_text("from shop.orders import fetch\n")
    # An imported name is found if it is requested.
    [found] = discover(f"{shop}:fetch").found
    assert str(found) == "shop:fetch"
    assert (found.file, found.line) == (shop / "__init__.py", None)


def test_imported_objects_are_left_out(package):
    shop = package(
        a_user="""
            from functools import wraps
            from shop import policies, orders
            from shop.orders import *
            from shop.orders import fetch, POLITE, Client, plain, slow
            get = orders.fetch
            mine = with_policy(fetch, max_attempts=9)
            own = retry(plain)
            class Better(Client):
                also = orders.fetch
            @retry
            @wraps(plain)
            def like(): ...
            """,
        orders="""
            from shop.policies import POLITE
            def plain(): ...
            @retry(POLITE)
            def fetch(): ...
            slow = with_policy(fetch, max_attempts=8)
            same = fetch
            class Client:
                @retry
                def get(self): ...
                again = get
            """,
        policies="POLITE = Policy(max_attempts=3)\n",
    )
    assert found_names(shop) == [
        "shop.a_user:mine",
        "shop.a_user:own",
        "shop.a_user:like",
        "shop.orders:fetch",
        "shop.orders:slow",
        "shop.orders:Client.get",
        "shop.policies:POLITE",
    ]


def test_objects_whose_attributes_fail_are_ignored():
    class HostileProxy:
        def __getattr__(self, name):
            raise RuntimeError(name)

    assert list(iter_references("far", HostileProxy())) == []
