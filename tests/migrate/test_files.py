"""Files and folders are read, and written only where asked and as they were read."""

import pytest

from retrykit.migrate import migrate_paths, write_file

BEFORE = (
    "import backoff\n\n\n@backoff.on_exception(backoff.expo, OSError)\ndef f(): ...\n"
)


def reasons(report):
    return {each.path.name: each.reason for each in report.problems}


def test_a_file_is_written_with_its_encoding_and_its_line_ends(tmp_path):
    path = tmp_path / "a.py"
    text = f"# coding: latin-1\r\n# Überall\r\n{BEFORE}".replace("\n", "\r\n")
    path.write_bytes(text.replace("\r\r", "\r").encode("latin-1"))
    path.chmod(0o755)
    [file] = migrate_paths([tmp_path]).files
    assert write_file(file) is None
    written = path.read_bytes()
    assert "Überall".encode("latin-1") in written
    assert b"from retrykit import retry\r\n" in written
    assert path.stat().st_mode & 0o777 == 0o755
    assert [each.name for each in tmp_path.iterdir()] == ["a.py"]


def test_no_file_causes_a_warning(tmp_path):
    (tmp_path / "a.py").write_text(f"{BEFORE}x = '\\d'\ny = 1if x else 2\n")
    report = migrate_paths([tmp_path])
    assert (len(report.files), report.problems) == (1, ())


def test_a_byte_order_mark_stays(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(b"\xef\xbb\xbf" + BEFORE.encode())
    [file] = migrate_paths([path]).files
    assert write_file(file) is None
    assert path.read_bytes().startswith(b"\xef\xbb\xbffrom retrykit import retry")


def test_a_file_that_has_changed_is_not_written(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(BEFORE)
    [file] = migrate_paths([path]).files
    path.write_text("changed")
    assert "has changed" in write_file(file).reason
    assert path.read_text() == "changed"
    path.unlink()
    assert "cannot be written" in write_file(file).reason


def test_a_file_that_cannot_be_read_ends_nothing(tmp_path):
    (tmp_path / "good.py").write_text(BEFORE)
    (tmp_path / "syntax.py").write_text(f"{BEFORE}def (")
    (tmp_path / "bytes.py").write_bytes(b"import backoff  # \xff")
    (tmp_path / "coding.py").write_bytes(b"# coding: klingon\nimport backoff")
    (tmp_path / "large.py").write_text(f"import backoff\n{'#' * 2_000_001}")
    (tmp_path / "deep.py").write_text(f"{BEFORE}x = {'-' * 20_000}1\n")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nothing.py")
    report = migrate_paths([tmp_path, tmp_path / "none"])
    assert [each.path.name for each in report.files] == ["good.py"]
    found = reasons(report)
    assert "is not Python: line 6" in found["syntax.py"]
    assert "cannot be decoded" in found["bytes.py"]
    assert "cannot be decoded" in found["coding.py"]
    assert found["large.py"] == "is larger than 2 MB"
    assert "deep.py" in found
    assert found["gone.py"] == "No such file or directory"
    assert found["none"] == "does not exist"


def test_hidden_folders_and_installed_packages_are_left_out(tmp_path):
    for name in (".venv", "node_modules", "site-packages", "own"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(BEFORE)
    (tmp_path / "own" / "loop").symlink_to(tmp_path)
    report = migrate_paths([tmp_path, tmp_path / "own"])
    assert [each.path for each in report.files] == [tmp_path / "own" / "a.py"]


SHARED = """\
import tenacity

POLICY = dict(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_fixed(1))


@tenacity.retry(**POLICY)
def fetch(): ...
"""


def test_a_dictionary_that_another_file_uses_stays(tmp_path):
    (tmp_path / "a.py").write_text(SHARED)
    (tmp_path / "b.py").write_text("from a import POLICY\n")
    [file] = migrate_paths([tmp_path]).files
    assert "POLICY = dict(" in file.migration.after
    assert "max_attempts=3" in file.migration.after
    [file] = migrate_paths([tmp_path / "a.py"]).files
    assert "POLICY = Policy(" in file.migration.after


CAUGHT = """\
import tenacity


def main(fetch):
    try:
        fetch()
    except tenacity.RetryError:
        print("gave up")
"""


@pytest.mark.parametrize(
    ("other", "caught"),
    [
        (
            "@tenacity.retry(retry=tenacity.retry_never)",
            "except (tenacity.RetryError, RetryError):",
        ),
        ("@tenacity.retry(reraise=True)", "except RetryError:"),
    ],
)
def test_a_file_that_catches_the_error_catches_that_of_retrykit(
    tmp_path, other, caught
):
    (tmp_path / "a.py").write_text(f"{SHARED}\n\n{other}\ndef find(): ...\n")
    (tmp_path / "b.py").write_text(CAUGHT)
    found = {each.path.name: each for each in migrate_paths([tmp_path]).files}
    assert caught in found["b.py"].migration.after


def test_an_error_that_another_file_reads_stays(tmp_path):
    (tmp_path / "a.py").write_text(SHARED)
    text = CAUGHT.replace('print("gave up")', "print(RetryError.last_attempt)")
    (tmp_path / "b.py").write_text(text)
    [usage] = [usage for _, usage in migrate_paths([tmp_path]).usages]
    assert usage.reason == "another file reads the last_attempt of a RetryError"


def test_a_function_whose_attributes_a_test_sets_stays(tmp_path):
    (tmp_path / "a.py").write_text(SHARED)
    (tmp_path / "test_a.py").write_text(
        "from a import fetch\nfetch.retry.sleep = print"
    )
    [usage] = [usage for _, usage in migrate_paths([tmp_path]).usages]
    assert usage.reason == "another file reads fetch.retry"


def test_a_function_is_known_by_the_name_that_another_file_gives_it(tmp_path):
    (tmp_path / "a.py").write_text(SHARED)
    (tmp_path / "b.py").write_text("from a import fetch as get\nget.retry_with()\n")
    [usage] = [usage for _, usage in migrate_paths([tmp_path]).usages]
    assert usage.reason == "another file reads fetch.retry_with"


def test_a_decorator_for_other_files_stays_if_one_reads_statistics(tmp_path):
    (tmp_path / "a.py").write_text(
        "import tenacity\n\npatient = tenacity.retry(reraise=True)\n"
    )
    (tmp_path / "b.py").write_text("from a import patient\nprint(get.statistics)\n")
    [usage] = [usage for _, usage in migrate_paths([tmp_path]).usages]
    assert usage.reason == "another file uses patient, and one reads statistics"


def test_a_try_again_for_functions_of_another_file_stays_as_they_do(tmp_path):
    (tmp_path / "a.py").write_text(SHARED)
    (tmp_path / "b.py").write_text(
        "import tenacity\n\n\ndef check():\n    raise tenacity.TryAgain\n"
    )
    report = migrate_paths([tmp_path])
    [usage] = [usage for _, usage in report.usages]
    assert usage.reason == "another file raises TryAgain for its callers"
    assert "RetryAfter" not in "".join(x.migration.after for x in report.files)
