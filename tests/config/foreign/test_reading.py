"""Files in their syntaxes, the choice of a policy, and bad files."""

import sys
from pathlib import Path

import pytest

from retrykit import ConfigError
from retrykit.config._foreign import format_named
from retrykit.config.foreign import FORMATS, names, read

MACHINE = """\
States:
  Get:
    Retry: &retry
      - ErrorEquals: [X]
        MaxAttempts: 7
  Put:
    Retry: *retry
"""


def write(folder, name, text):
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_yaml_is_read_with_its_aliases_and_documents(tmp_path):
    path = write(tmp_path, "machine.yaml", f"{MACHINE}---\n- 3\n---\n{MACHINE}")
    assert names(path) == ["Get", "Put", "Get (2)", "Put (2)"]
    assert read(str(path), "Put").policy.max_attempts == 8


def test_a_document_may_be_a_list(tmp_path):
    text = (
        "- 3\n- States: {Get: {Retry: [{ErrorEquals: [X], MaxAttempts: -1}]}}\n- [{}]"
    )
    path = write(tmp_path, "a.yaml", text)
    assert names(path) == ["Get"]
    with pytest.raises(ConfigError, match=r"a\.yaml, line 2: MaxAttempts must be"):
        read(path)


@pytest.mark.thorough
def test_many_policies_of_one_name_are_found_at_once():
    retry = {"Retry": [{"ErrorEquals": ["X"]}]}
    document = {"list": [{"Get": retry}] * 20_000, "Get (3)": retry}
    found = names(document, format="step-functions")
    assert found[:3] == ["Get", "Get (2)", "Get (3)"]
    assert len({*found}) == 20_001


def test_merged_keys_are_those_of_the_table(tmp_path):
    text = """\
base: &base {ErrorEquals: [X], MaxAttempts: 7}
States: {Get: {Retry: [{<<: *base, MaxAttempts: 1}]}}
"""
    assert read(write(tmp_path, "a.yml", text), "Get").policy.max_attempts == 2


def test_toml_is_read(tmp_path):
    text = '[[States.Get.Retry]]\nErrorEquals = ["X"]\nMaxAttempts = 4\n'
    assert read(write(tmp_path, "a.toml", text)).policy.max_attempts == 5


def test_json_is_read_without_yaml(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    text = '{"States": {"Get": {"Retry": [{"ErrorEquals": ["X"], "Max": 1}]}}}'
    path = write(tmp_path, "a.json", text)
    with pytest.raises(ConfigError) as info:
        read(path)
    assert info.value.message.startswith(
        f"{path}, States.Get.Retry[0]: Retry has no key 'Max'; the keys are Backoff"
    )
    with pytest.raises(ImportError, match=r"yaml is not installed.*\[yaml\]"):
        read(write(tmp_path, "a.yaml", MACHINE), "Get")


def test_errors_have_the_line_of_the_key(tmp_path):
    path = write(tmp_path, "a.yaml", MACHINE.replace("7", "-7"))
    with pytest.raises(ConfigError, match=r"a\.yaml, line 5: MaxAttempts must be"):
        read(path, "Get")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "must be YAML, got a syntax error at line 2, column 1; did not find"),
        ("a: 1\na: 2", "a.yaml, line 2: 'a' is written twice"),
        ("\x00", "a.yaml must be YAML, got a syntax error"),
        ("a: &a [*a]", "a.yaml must be a file of at most 100000 values in 100 levels"),
        ("[" * 2000, "a.yaml must be"),
        ("? [1]\n: 2", "a.yaml has no policy of"),
        ("a: 2026-99-99", "a.yaml has no policy of"),
        ("a: !!int many", "a.yaml has no policy of"),
        ("a: !!bool perhaps", "a.yaml has no policy of"),
        ("a: !!python/name:os.system", "a.yaml has no policy of"),
    ],
)
def test_bad_yaml_is_refused(tmp_path, text, message):
    with pytest.raises(ConfigError) as info:
        read(write(tmp_path, "a.yaml", text))
    assert message in info.value.message


def test_json_of_too_many_levels_is_refused(tmp_path):
    path = write(tmp_path, "a.json", "[" * 100_000)
    with pytest.raises(ConfigError, match="at most 100000 values in 100 levels"):
        names(path)


def test_a_number_may_be_a_string():
    retrier = {"ErrorEquals": ["X"], "BackoffRate": "1.5"}
    schedule = read({"Retry": [retrier]}).policy.schedule
    assert list(schedule.take(2).draw()) == [1, 1.5]


def test_aliases_cannot_stand_for_more_than_memory_holds(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError, match="at most 100000 values"):
        names(write(tmp_path, "a.yaml", "\n".join(lines)))


def test_a_tag_is_never_obeyed(tmp_path):
    text = "States: {Get: {Retry: [{ErrorEquals: [X], MaxAttempts: !Ref Most}]}}"
    with pytest.raises(ConfigError, match="must be written out, got '!Ref Most'"):
        read(write(tmp_path, "a.yaml", text))


def test_a_policy_is_chosen_by_name():
    document = {
        "States": {n: {"Retry": [{"ErrorEquals": [n]}]} for n in ("Get", "Put")}
    }
    assert read(document, "Put").name == "Put"
    with pytest.raises(ConfigError, match="got None; the names are Get, Put"):
        read(document)
    with pytest.raises(ConfigError, match=r"got 'Gett'; did you mean Get\?"):
        read(document, "Gett")
    with pytest.raises(ConfigError, match="got 'other'; the names are Get, Put"):
        read(document, "other")


def test_several_documents_may_be_given_as_data():
    document = {"Retry": [{"ErrorEquals": ["X"]}]}
    assert names([document, 3, document]) == ["", "(2)"]


@pytest.mark.parametrize("source", [3, None])
def test_the_source_is_a_path_or_data(source):
    with pytest.raises(ConfigError, match="source must be the path of a file, or data"):
        names(source)


def test_the_page_lists_every_format():
    page = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text("utf-8")
    rows = [f"| `{name}` | {format_named(name).title}" for name in FORMATS]
    assert [row for row in rows if row not in page] == []


def test_the_format_is_one_of_those_that_there_are():
    assert tuple(sorted(FORMATS)) == FORMATS
    document = {"Retry": [{"ErrorEquals": ["X"]}]}
    assert names(document, format="step-functions") == [""]
    with pytest.raises(ConfigError, match="format must be"):
        names(document, format="step-function")


@pytest.mark.parametrize("data", [{}, {"a": [{"b": {}}]}, [], [[{}]], {"Retry": 3}])
def test_a_document_of_no_format_has_no_policies(data):
    assert names(data) == []
    with pytest.raises(ConfigError, match="source has no policy of"):
        read(data)


def test_a_list_in_json_is_several_documents(tmp_path):
    path = write(tmp_path, "a.json", '[{"Retry": [{"ErrorEquals": ["X"]}]},\n 3,\n')
    text = '{"Retry": [{"ErrorEquals": ["X"],\n "MaxAttempt": 1}]}]'
    path.write_text(path.read_text("utf-8") + text, "utf-8")
    assert names(path) == ["", "(2)"]
    with pytest.raises(ConfigError, match=r"a\.json, line 4: Retry has no key 'MaxA"):
        read(path, "(2)")
