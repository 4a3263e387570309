"""Errors in the format of TOML and JSON files."""

import pytest

from retrykit import ConfigError
from retrykit.config._files import read_document


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file, and returns its path."""

    def write(name, text):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def error_of(path):
    with pytest.raises(ConfigError) as caught:
        read_document(path)
    return caught.value.message.replace(f"{path}", path.name)


WRONG = {
    "a slip into YAML": (
        "[policies.fetch]\nmax_attempts: 5\n",
        (
            "policies.toml must be TOML, got a "
            "syntax error at line 2, column 13; expected "
            "'=' after a key in a key/value pair"
        ),
    ),
    "a slip after Windows lines": (
        "[policies.fetch]\r\nmax_attempts = \r\n",
        (
            "policies.toml must be TOML, got a syntax error at line 2, column 16; "
            "invalid value"
        ),
    ),
    "a table written twice": (
        "[policies.fetch]\n[policies.fetch]\n",
        (
            "policies.toml must be TOML, got a "
            "syntax error at line 2, column 16; cannot "
            "declare ('policies', 'fetch') twice"
        ),
    ),
    "an end in the middle": (
        "[policies.fetch]\nname = 'fe",
        (
            "policies.toml must be TOML, got a syntax error at line 2, column 11; "
            'expected "\'"'
        ),
    ),
    "a number beyond use": (
        f"x = {'9' * 5000}",
        (
            "policies.toml must be TOML, got a "
            "syntax error; exceeds the limit (4300 digits) "
            "for integer string conversion"
        ),
    ),
    "lists beyond use": (
        f"x = {'[' * 5000}{']' * 5000}",
        (
            "policies.toml must be less deeply nested, got more levels than Python can "
            "read"
        ),
    ),
    "bytes that are no text": (
        b"[policies.fetch]\nname = '\xff'",
        "policies.toml, line 2, must be text in UTF-8, got b'\\xff'",
    ),
    "two bytes for each character": (
        "[policies.fetch]".encode("utf-16"),
        "policies.toml, line 1, must be text in UTF-8, got b'\\xff'",
    ),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_an_error_in_toml_is_shown_with_its_position(write, text, message):
    error = error_of(write("policies.toml", text))
    assert error.partition(": value has")[0] == message


WRONG_JSON = {
    "a colon too few": (
        '{\n  "policies" {}\n}',
        " at line 2, column 14; expecting ':' delimiter",
    ),
    "nothing": ("", " at line 1, column 1; expecting value"),
    "a policy written twice": (
        '{"policies": {"fetch": {}, "fetch": {}}}',
        "; cannot overwrite 'fetch'",
    ),
    "a number beyond use": ("9" * 5000, "; exceeds the limit (4300 digits)"),
}


@pytest.mark.parametrize(("text", "message"), WRONG_JSON.values(), ids=WRONG_JSON)
def test_an_error_in_json_is_shown_with_its_position(write, text, message):
    error = error_of(write("some.json", text))
    assert error.startswith(f"some.json must be JSON, got a syntax error{message}")


def test_json_must_be_an_object(write):
    message = error_of(write("some.json", "[]"))
    assert message == "some.json must be a JSON object, got []"


def test_json_may_have_its_ending_in_upper_case(write):
    assert read_document(write("SOME.JSON", '{"a": 1}')) == {"a": 1}


@pytest.mark.needs("deep recursion")
def test_json_nested_too_deeply_is_rejected(write):
    message = error_of(write("some.json", "[" * 100_000))
    assert message.startswith("some.json must be less deeply nested")


def test_a_missing_file_is_rejected_with_those_that_exist(tmp_path):
    path = tmp_path / "polices.toml"
    missing = "polices.toml must be a readable file, got 'No such file or "
    assert error_of(path) == f"{missing}directory'"
    for n in range(11):
        (tmp_path / f"p{n:02}.toml").touch()
    (tmp_path / "notes.txt").touch()
    names = ", ".join(f"p{n:02}.toml" for n in range(9))
    assert error_of(path) == f"{missing}directory'; the folder has {names}, ..."


@pytest.mark.needs("symbolic links")
def test_unreadable_files_are_not_suggested(tmp_path):
    path = tmp_path / "policies.toml"
    path.symlink_to(path)
    (tmp_path / "others.toml").touch()
    assert error_of(path).endswith("symbolic links'; the folder has others.toml")


def test_a_folder_is_rejected_with_its_files(tmp_path):
    (tmp_path / "policies.json").touch()
    assert error_of(tmp_path) == (
        f"{tmp_path.name} must be a readable file, got 'Is a directory'; the "
        "folder has policies.json"
    )


def test_a_missing_folder_and_an_invalid_file_name_are_rejected(tmp_path):
    assert "No such file" in error_of(tmp_path / "conf" / "policies.toml")
    assert "null byte" in error_of(tmp_path / "a\0b" / "c.toml")


@pytest.mark.parametrize("path", [5, None, b"policies.toml"], ids=repr)
def test_other_types_of_paths_are_rejected(path):
    with pytest.raises(ConfigError, match=r"^path must be the path of a file, got "):
        read_document(path)
