"""What is wrong with a TOML or JSON file is told with its place."""

import pytest

from retrykit import ConfigError
from retrykit.config.files import read_document


@pytest.fixture
def written(tmp_path):
    """Write a file, and return its path."""

    def write(name, text):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def refused(path):
    with pytest.raises(ConfigError) as caught:
        read_document(path)
    return str(caught.value).replace(f"{path}", path.name)


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
def test_what_is_wrong_with_toml_is_told_with_its_place(written, text, message):
    told = refused(written("policies.toml", text))
    assert told.partition(": value has")[0] == message


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
def test_what_is_wrong_with_json_is_told_with_its_place(written, text, message):
    told = refused(written("some.json", text))
    assert told.startswith(f"some.json must be JSON, got a syntax error{message}")


def test_json_is_an_object(written):
    told = refused(written("some.json", "[]"))
    assert told == "some.json must be a JSON object, got []"


def test_json_may_have_its_ending_in_upper_case(written):
    assert read_document(written("SOME.JSON", '{"a": 1}')) == {"a": 1}


def test_json_nested_beyond_use_is_refused(written):
    told = refused(written("some.json", "[" * 100_000))
    assert told.startswith("some.json must be less deeply nested")


def test_a_file_that_is_missing_is_told_with_those_that_exist(tmp_path):
    path = tmp_path / "polices.toml"
    missing = "polices.toml must be a readable file, got 'No such file or "
    assert refused(path) == f"{missing}directory'"
    for n in range(11):
        (tmp_path / f"p{n:02}.toml").touch()
    (tmp_path / "notes.txt").touch()
    told = ", ".join(f"p{n:02}.toml" for n in range(9))
    assert refused(path) == f"{missing}directory'; there are {told}, ..."


def test_a_file_that_cannot_be_read_is_not_among_those_to_be_read_instead(tmp_path):
    path = tmp_path / "policies.toml"
    path.symlink_to(path)
    (tmp_path / "others.toml").touch()
    assert refused(path).endswith("symbolic links'; there are others.toml")


def test_a_folder_is_told_with_the_files_in_it(tmp_path):
    (tmp_path / "policies.json").touch()
    assert refused(tmp_path) == (
        f"{tmp_path.name} must be a readable file, got 'Is a directory'; there "
        "are policies.json"
    )


def test_a_folder_that_is_missing_and_a_name_of_no_file_are_refused(tmp_path):
    assert "No such file" in refused(tmp_path / "conf" / "policies.toml")
    assert "null byte" in refused(tmp_path / "a\0b" / "c.toml")


@pytest.mark.parametrize("path", [5, None, b"policies.toml"], ids=repr)
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ConfigError, match=r"^path must be the path of a file, got "):
        read_document(path)
