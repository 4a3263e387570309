"""Which files an audit finds, and the names by which they are imported."""

import os
import shutil

import pytest

from retrykit.audit import audit
from retrykit.audit._files import (
    SourceFile,
    _Walk,
    find_files,
    nearest_path,
    relative_path,
)
from retrykit.errors import ConfigError


def make(folder, *paths):
    for each in paths:
        file = folder / each
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")


def found(folder, *paths, **options):
    files, problems = find_files(paths or [folder], **options)
    assert not problems
    return [os.path.relpath(each.path, folder) for each in files]


def test_finds_python_and_notebooks_in_order(tmp_path):
    make(tmp_path, "b.py", "a.pyw", "c.ipynb", "d.pyi", "e.txt", "p/f.py", "o/g.py")
    files = ["a.pyw", "b.py", "c.ipynb", "o/g.py", "p/f.py"]
    assert found(tmp_path) == files


@pytest.mark.parametrize(
    "folder",
    [
        ".git",
        ".tox/x",
        "__pycache__",
        "node_modules/x",
        "site-packages",
        "env",
        "conda",
    ],
)
def test_skips_what_is_not_the_projects_own(tmp_path, folder):
    make(tmp_path, "a.py", f"{folder}/b.py", "env/pyvenv.cfg", "conda/conda-meta/x")
    assert found(tmp_path) == ["a.py"]


def test_skips_a_build_but_no_package_of_that_name(tmp_path):
    make(tmp_path, "build/lib/a.py", "src/build/__init__.py")
    assert found(tmp_path) == ["src/build/__init__.py"]


def test_reads_what_is_named_whatever_its_name_is(tmp_path):
    make(tmp_path, ".hidden/a.py", "script")
    hidden, script = tmp_path / ".hidden", tmp_path / "script"
    assert found(tmp_path, hidden, script) == [".hidden/a.py", "script"]


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("tests", ["a_pb2.py", "b.py"]),
        ("*_pb2.py", ["b.py", "tests/c.py"]),
        ("./b.py", ["a_pb2.py", "tests/c.py"]),
        ("tests/*", ["a_pb2.py", "b.py"]),
        ("test", ["a_pb2.py", "b.py", "tests/c.py"]),
    ],
)
def test_excludes_names_and_paths(tmp_path, pattern, left):
    make(tmp_path, "a_pb2.py", "b.py", "tests/c.py")
    assert found(tmp_path, exclude=[pattern], root=tmp_path) == left


@pytest.mark.needs("symbolic links")
def test_finds_each_file_once(tmp_path):
    make(tmp_path, "p/a.py", "p/b.py")
    (tmp_path / "p" / "again").symlink_to(tmp_path / "p")
    (tmp_path / "p" / "c.py").symlink_to(tmp_path / "p" / "a.py")
    paths = [tmp_path / "p" / "a.py", tmp_path / "p", tmp_path]
    assert found(tmp_path, *paths, tmp_path / "p" / "b.py") == ["p/a.py", "p/b.py"]


@pytest.mark.needs("symbolic links")
def test_follows_a_link_to_another_folder(tmp_path):
    make(tmp_path, "p/a.py", "other/b.py")
    (tmp_path / "p" / "link").symlink_to(tmp_path / "other")
    assert found(tmp_path, tmp_path / "p") == ["p/a.py", "p/link/b.py"]


@pytest.mark.needs("symbolic links")
def test_tells_links_that_lead_nowhere(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "gone.py").symlink_to("nothing")
    (tmp_path / "gone").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe.py")
    make(tmp_path, "a.py")
    files, problems = find_files([tmp_path])
    assert [each.path for each in files] == [f"{tmp_path}/a.py"]
    assert [(each.path, each.reason) for each in problems] == [
        (f"{tmp_path}/gone.py", "a link to nothing"),
        (f"{tmp_path}/loop", "Too many levels of symbolic links"),
    ]


@pytest.fixture
def without_privileges(tmp_path, monkeypatch):
    """Enter the folder as a user who may not read everything, as root may."""
    if not hasattr(os, "geteuid"):
        pytest.skip("needs users")
    # Paths are relative, since another user may not enter the folders above.
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)

    def enter():
        if os.geteuid() == 0:
            os.seteuid(65534)

    yield enter
    os.seteuid(os.getuid())
    for each in ("closed", "closed.py"):
        (tmp_path / each).chmod(0o700)


def test_what_may_not_be_read_is_told_and_the_rest_is_read(
    tmp_path, without_privileges
):
    make(tmp_path, "closed/a.py", "closed.py", "open/b.py")
    for each in ("closed", "closed.py"):
        (tmp_path / each).chmod(0)
    without_privileges()
    report = audit(["."])
    assert report.files == 2
    assert [str(each) for each in report.problems] == [
        "./closed: Permission denied",
        "./closed.py: Permission denied",
    ]


@pytest.mark.needs("symbolic links")
def test_links_in_a_circle_are_followed_once(tmp_path):
    make(tmp_path, "a/b/c.py")
    (tmp_path / "a/b/up").symlink_to(tmp_path / "a")
    (tmp_path / "a/self").symlink_to(".")
    assert found(tmp_path) == ["a/b/c.py"]


def test_tells_a_folder_that_is_gone(tmp_path):
    make(tmp_path, "a.py", "p/b.py")
    walk = _Walk((), None)
    files = walk.files_in(str(tmp_path))
    assert next(files) == f"{tmp_path}/a.py"
    shutil.rmtree(tmp_path / "p")
    assert not [*files]
    assert [str(each) for each in walk.problems] == [
        f"{tmp_path}/p: No such file or directory"
    ]


def test_a_path_that_does_not_exist_is_an_error():
    with pytest.raises(ConfigError) as caught:
        find_files(["x"])
    assert (
        caught.value.message == "path must be a file or a folder that exists, got 'x'"
    )


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("src/shop/price.py", "prices.py"),
        ("src/shp/", "shop"),
        ("scr/shop/prices.py", "src"),
        ("./src/shop/prices.pyy", "prices.py"),
        ("src/shop/prices.py/x", ""),
        ("src/shop/a\0", ""),
        ("src/shop", ""),
        ("", ""),
    ],
)
def test_the_nearest_name_is_suggested(tmp_path, monkeypatch, path, nearest):
    monkeypatch.chdir(tmp_path)
    make(tmp_path, "src/shop/prices.py")
    suggestion = f"did you mean {nearest}?" if nearest else ""
    assert nearest_path(path) == suggestion


def test_stops_at_a_depth(tmp_path):
    deep = tmp_path.joinpath(*"x" * 102)
    make(deep, "a.py")
    files, problems = find_files([tmp_path])
    assert not files
    assert [each.reason for each in problems] == [
        "more than 100 folders deep; not read"
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/p/__init__.py", ("p", "p", "")),
        ("src/p/q/a.py", ("p.q.a", "p.q", "")),
        ("tools/run.py", ("tools.run", "tools", "run")),
        ("src/one.py", ("one", "", "")),
        ("top.py", ("top", "", "")),
        ("bare/__init__.pyw", ("bare", "bare", "")),
    ],
)
def test_names_modules_as_they_are_imported(tmp_path, path, expected):
    make(tmp_path, "src/p/__init__.py", "src/p/q/__init__.py", path)
    files, _ = find_files([tmp_path])
    full = f"{tmp_path}/{path}"
    assert SourceFile(full, *expected) in files


def test_a_path_is_relative_if_it_can_be():
    assert relative_path("a/../b", ".") == "b"
    assert relative_path("", ".") == os.path.realpath(os.curdir)
