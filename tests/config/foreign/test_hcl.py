"""HCL, the language of Terraform."""

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from retrykit.config._foreign._document import Expression
from retrykit.config._foreign._loading import read_document
from retrykit.errors import ConfigError

hcl2 = pytest.importorskip("hcl2")


@pytest.fixture
def parse(tmp_path):
    def parse(text):
        path = tmp_path / "main.tf"
        path.write_text(text, encoding="utf-8", newline="")
        return read_document(path)

    return parse


BODY = """
resource "google_cloud_tasks_queue" "mail" {  # a comment
  name = "mail"
  retry_config {
    max_attempts = -1
  }
}
"""


def test_blocks_are_tables_under_their_type_and_labels(parse):
    queue = {"name": "mail", "retry_config": [{"max_attempts": -1}]}
    expected = {"resource": {"google_cloud_tasks_queue": {"mail": queue}}}
    assert parse(BODY).data == [expected]


def test_every_value_has_its_line(parse):
    queue = (0, "resource", "google_cloud_tasks_queue", "mail")
    lines = parse(BODY).lines
    config = (*queue, "retry_config")
    places = (queue, (*queue, "name"), config, (*config, 0, "max_attempts"))
    assert [lines[each] for each in places] == [2, 3, 4, 5]


def test_carriage_returns_change_nothing(parse):
    assert parse(BODY.replace("\n", "\r\n")) == parse(BODY)


LITERALS = [
    ("5", 5),
    ("-5", -5),
    ("1.5", 1.5),
    ("-1.5e-3", -0.0015),
    ("1e3", 1000.0),
    ("true", True),
    ("false", False),
    ("null", None),
    ('""', ""),
    ('"3600s"', "3600s"),
    (r'"a\n\t\r\"\\\u00e9\U0001F600"', 'a\n\t\r"\\\u00e9\U0001f600'),
    ('"$${a} %%{b} $c"', "${a} %{b} $c"),
    ("[]", []),
    ('[1, "a", [true],\n 2, # last\n]', [1, "a", [True], 2]),
    ("{}", {}),
    ('{ a = 1, "b c" : 2, in = 3\n 4 = 5 }', {"a": 1, "b c": 2, "in": 3, "4": 5}),
    ("{ (var.a) = 1 }", {"(var.a)": 1}),
]


@pytest.mark.parametrize(("written", "value"), LITERALS, ids=str)
def test_literals_are_values(parse, written, value):
    found = parse(f"x = {written}\n").data[0]["x"]
    assert (found, type(found)) == (value, type(value))
    assert not isinstance(found, Expression)


@pytest.mark.parametrize(
    "written",
    [
        "var.x",
        "local",
        "-var.x",
        '"${var.x}s"',
        '"%{if a}b%{endif}"',
        "3600 * 2",
        "(1)",
        "var.a ? 1 : 2",
        'file("a.json")',
        "[for x in y : x]",
        "<<EOT\ntext\nEOT",
        "9" * 301,
    ],
)
def test_all_else_is_kept_as_text(parse, written):
    found = parse(f"x = {written}\n").data[0]["x"]
    assert type(found) is Expression
    assert found == written


def test_an_expression_in_a_list_is_kept_alone(parse):
    data = parse("x = [1, var.x]").data[0]["x"]
    assert data == [1, "var.x"]
    assert [type(each) for each in data] == [int, Expression]


def test_blocks_repeat(parse):
    document = parse('provider "a" {\n b = 1\n}\nprovider "a" {}\nc {}\nc {}\n')
    assert document.data == [{"provider": {"a": [{"b": 1}, {}]}, "c": [{}, {}]}]
    assert document.lines[0, "provider", "a", 0, "b"] == 2
    assert document.lines[0, "c", 1] == 6


def test_labels_may_be_names_or_templates(parse):
    assert parse('a b "${c}" {}').data == [{"a": {"b": {'"${c}"': {}}}}]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("a = 1\na = 2", "a"),
        ("a = 1\na {}", "a"),
        ("a = 1\na b {}", "b"),
        ("a {}\na b {}", "b"),
        ("a b {}\na {}", "a"),
        ("a b {}\na = 1", "a"),
        ("x = {\n a = 1, a = 2 }", "a"),
    ],
)
def test_a_key_is_written_once(parse, text, key):
    with pytest.raises(ConfigError, match=rf"main.tf, line 2: '{key}' is written twi"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('x = "', "line 1, column 6; the text ends too early"),
        ("x {\n", "line 2, column 1; the text ends too early"),
        ("x = 1\n}", "line 2, column 1; unexpected '}'"),
        ("x = ? 1", "line 1, column 5; unexpected '? 1'"),
        ("x = <<E\nno end", "line 1, column 5; unexpected '<<E'"),
    ],
)
def test_a_syntax_error_has_its_place(parse, text, message):
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert "main.tf must be HCL, got a syntax error at " in caught.value.message
    assert caught.value.message.endswith(message)


@pytest.mark.parametrize(
    "text",
    ["x = " + "[" * 200 + "]" * 200, "a {" * 200 + "}" * 200],
    ids=["lists", "blocks"],
)
def test_depth_is_bounded(parse, text):
    with pytest.raises(ConfigError, match="at most 100000 values in 100 levels"):
        parse(text)


def test_the_number_of_values_is_bounded(parse, monkeypatch):
    monkeypatch.setattr("retrykit.config._foreign._hcl.MOST_VALUES", 10)
    assert parse("x = [1, 2, 3, 4, 5, 6, 7, 8, 9]")
    with pytest.raises(ConfigError, match="at most 100000 values"):
        parse("x = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]")


def test_the_size_is_bounded(parse):
    with pytest.raises(ConfigError, match="must be at most 200000 characters of HCL"):
        parse(f"# {'x' * 200_000}")


plain = st.none() | st.booleans() | st.integers() | st.text(alphabet="ab/-_ .:é")
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.from_regex("[a-z]{1,4}", fullmatch=True), inner)
    ),
    max_leaves=8,
)


@given(values)
def test_json_values_are_hcl(tmp_path_factory, value):
    path = Path(tmp_path_factory.mktemp("hcl"), "main.tf")
    path.write_text(f"x = {json.dumps(value, ensure_ascii=False)}\n", "utf-8")
    assert read_document(path).data == [{"x": value}]
