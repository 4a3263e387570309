"""Lint targets: modules, files, folders, and failed imports."""

import py_compile
import sys
from contextlib import chdir

import pytest

from retrykit import Policy
from retrykit.analysis.lint import Discovery, LoadFailure, discover
from tests._support import source_folders
from tests._support.source_folders import HEAD, found_names, on_import_path

no_imports_left = source_folders.no_imports_left
write, package = source_folders.write, source_folders.package


BROKEN = {
    "an error": ("\n1 / 0", "ZeroDivisionError: division by zero", 3),
    "an error of several lines": ("raise OSError('one\\ntwo')", "OSError: one", 2),
    "an error without a word": ("raise OSError", "OSError", 2),
    "the end of the process": ("import sys\nsys.exit(3)", "SystemExit: 3", 3),
    "a module that is missing": (
        "import shop_that_is_not_there",
        "ModuleNotFoundError: No module named 'shop_that_is_not_there'",
        2,
    ),
    "no Python": ("def (:", "SyntaxError: invalid syntax (orders.py, line 2)", 2),
    "an error elsewhere": (
        "import shop.zero",
        "ZeroDivisionError: division by zero",
        2,
    ),
}


@pytest.mark.parametrize(("text", "reason", "line"), BROKEN.values(), ids=BROKEN)
def test_a_module_that_cannot_be_imported_is_reported(package, text, reason, line):
    shop = package(orders=text, pay="@retry\ndef pay(): ...\n")
    if "zero" in text:
        (shop / "zero.py").write_text("1 / 0")
    searched = discover(str(shop))
    assert [str(found) for found in searched.found] == ["shop.pay:pay"]
    assert searched.failures[0] == LoadFailure(
        "shop.orders", shop / "orders.py", line, reason
    )


def test_submodules_of_a_broken_package_are_skipped(package):
    shop = package(
        pay="@retry\ndef pay(): ...\n", deep__bad="1 / 0", deep__more="1 / 0"
    )
    (shop / "deep" / "__init__.py").write_text("raise OSError('closed')")
    progress = []
    searched = discover(str(shop), progress=lambda *each: progress.append(each))
    assert [unread.module for unread in searched.failures] == ["shop.deep"]
    assert progress == [("shop", 5), ("shop.deep", 5), ("shop.pay", 5)]


def test_a_named_module_that_cannot_be_imported_is_reported(package):
    shop = package(
        orders="1 / 0", pay="import nowhere_at_all", ship="pass\ndef ship(: ..."
    )
    with on_import_path(shop.parent):
        [unread] = discover("shop.orders").failures
        [missing] = discover("shop.pay").failures
        [mistyped] = discover("shop.ship").failures
    zero = "ZeroDivisionError: division by zero"
    assert unread.reason == zero
    assert (unread.file, unread.line) == (shop / "orders.py", 2)
    assert missing.reason == "ModuleNotFoundError: No module named 'nowhere_at_all'"
    assert missing.place.endswith("pay.py:2")
    assert mistyped.place.endswith("ship.py:3")


def test_ctrl_c_ends_the_search(write):
    with pytest.raises(KeyboardInterrupt):
        discover(str(write(jobs="raise KeyboardInterrupt")))


@pytest.fixture
def bytecode():
    """Enable bytecode, however the suite is run."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    yield
    sys.dont_write_bytecode = before


def test_writes_no_bytecode(package, bytecode):
    shop = package(orders="@retry\ndef fetch(): ...\n")
    assert found_names(shop) == ["shop.orders:fetch"]
    assert sorted(each.name for each in shop.iterdir()) == ["__init__.py", "orders.py"]
    assert not sys.dont_write_bytecode


@pytest.mark.usefixtures("bytecode")
def test_modules_that_import_each_other_are_all_checked(package):
    shop = package(
        a="from shop.b import early\n@retry\ndef last(): ...\n",
        b="from shop.a import last\n@retry\ndef early(): ...\n",
    )
    assert [bad.module for bad in discover(str(shop)).failures] == ["shop.a", "shop.b"]
    (shop / "b.py").write_text(
        f"{HEAD}@retry\ndef early(): ...\nfrom shop.a import last\n"
    )
    assert found_names(shop) == ["shop.b:early", "shop.a:last"]


def test_files_of_the_same_name_are_all_checked(write):
    folder = write(
        jobs="@retry\ndef first(): ...\n",
        a__jobs="import near\n@retry\ndef second(): ...\n",
        a__near="@retry\ndef third(): ...\n",
        b__jobs="from near import fourth\n",
        b__near="@retry\ndef fourth(): ...\n",
        c__jobs="import a.near\n@retry\ndef fifth(): ...\n",
    )
    searched = discover(str(folder))
    assert searched.failures == ()
    assert [(found.name, found.file.parent.name) for found in searched.found] == [
        ("first", folder.name),
        ("second", "a"),
        ("third", "a"),
        ("fourth", "b"),
        ("fifth", "c"),
    ]


def test_submodules_are_forgotten_with_their_package(package):
    parts = {f"deep{n}__more": "@retry\ndef fetch(): ...\n" for n in range(20)}
    assert len(found_names(package(**parts))) == 20


def test_a_name_of_another_module_is_reported(write):
    folder = write(json="@retry\ndef fetch(): ...\n", sys="", jobs="")
    [taken, builtin] = discover(str(folder)).failures
    place = sys.modules["json"].__file__
    text = "another module with this name is already imported, from"
    assert taken == LoadFailure("json", folder / "json.py", None, f"{text} {place}")
    assert builtin.reason == f"{text} the interpreter"


def test_skips_hidden_folders_environments_and_scripts(write):
    folder = write(
        shop__main="",
        setup="1 / 0",
        conftest="1 / 0",
        test_shop="1 / 0",
        shop_test="1 / 0",
        tests__more="1 / 0",
        test__more="1 / 0",
        node_modules__more="1 / 0",
        build__lib="1 / 0",
        env__lib__more="1 / 0",
    )
    for hidden in (".venv", "__pycache__", ".git"):
        (folder / hidden).mkdir()
        (folder / hidden / "more.py").write_text("1 / 0")
    (folder / "shop" / "__main__.py").write_text("1 / 0")
    (folder / "env" / "pyvenv.cfg").touch()
    (folder / ".hidden.py").write_text("1 / 0")
    (folder / "notes.txt").touch()
    progress = []
    discover(str(folder), progress=lambda *each: progress.append(each))
    assert progress == [("main", 1)]


def test_a_package_named_like_a_skipped_folder_is_checked(package):
    shop = package(build__more="@retry\ndef fetch(): ...\n")
    (shop / "build" / "__init__.py").touch()
    assert found_names(shop) == ["shop.build.more:fetch"]


def test_tests_are_checked_if_they_are_named(write):
    folder = write(tests__test_shop="@retry\ndef fetch(): ...\n")
    assert found_names(folder) == []
    assert found_names(folder / "tests") == ["test_shop:fetch"]
    assert found_names(folder / "tests" / "test_shop.py") == ["test_shop:fetch"]


def test_a_guarded_script_is_imported_without_running(write):
    jobs = "@retry\ndef fetch(): ...\nif __name__ == '__main__':\n    1 / 0\n"
    assert found_names(write(jobs=jobs)) == ["jobs:fetch"]


def test_output_of_imported_modules_is_suppressed(write, capsys):
    discover(str(write(jobs="print('hello')")))
    assert capsys.readouterr() == ("", "hello\n")


def test_a_module_may_change_the_import_path(write):
    jobs = "import sys\nsys.path.remove(__file__.rpartition('/')[0])\n"
    folder = write(jobs=jobs)
    assert discover(f"{folder / 'jobs.py'}") == Discovery((), ())


def test_modules_imported_before_stay_imported(write):
    folder = write(jobs="@retry\ndef fetch(): ...\n")
    with on_import_path(folder):
        import jobs

        assert found_names(folder) == ["jobs:fetch"]
        assert sys.modules["jobs"] is jobs


def test_a_module_without_source_is_checked(write):
    folder = write(
        jobs="""
        @retry
        def fetch(): ...
        POLITE = Policy()
        again = retry(print)
        """
    )
    file = folder / "jobs.py"
    py_compile.compile(str(file), cfile=str(folder / "jobs.pyc"))
    file.unlink()
    with on_import_path(folder):
        [found] = discover("jobs").found
    assert (found.name, found.file, found.line) == ("fetch", folder / "jobs.pyc", None)


def test_a_built_in_module_has_no_policies():
    assert discover("sys") == Discovery((), ())


def test_found_policies_can_be_used_after_discovery(write):
    folder = write(jobs="@retry(max_attempts=3)\ndef fetch(): ...\n")
    [first], [second] = (discover(str(folder)).found for _ in range(2))
    assert first == second
    assert first.policy == Policy(max_attempts=3)


def test_the_current_folder_is_searched(package):
    with chdir(package(orders="@retry\ndef fetch(): ...\n").parent):
        assert found_names("./shop") == ["shop.orders:fetch"]
        assert found_names("shop") == ["shop.orders:fetch"]
        with on_import_path("nowhere"):
            assert found_names("shop.orders") == ["shop.orders:fetch"]
            # A module found by name is imported as usual.
            assert "shop.orders" in sys.modules
