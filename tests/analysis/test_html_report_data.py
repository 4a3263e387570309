"""The source of the HTML report: data, content security policy, embedded files."""

import json
import re
import tomllib
from html.parser import HTMLParser
from importlib.resources import files
from zipfile import BadZipFile

import pytest

from retrykit import ConfigError, Policy, presets, schedules as s
from retrykit._core.rules import Rule
from retrykit._core.timeouts import AsArgument
from retrykit.analysis.html_report import page
from retrykit.analysis.html_report._policy_data import hidden_settings
from retrykit.budgets import Throttle, shared
from retrykit.config.grpc_service_config import StatusCodes
from retrykit.hints import retry_after
from retrykit.schedules._kinds import SCHEDULE_KINDS


class PageParser(HTMLParser):
    """The texts and attributes of the page."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.attributes, self.tag = {}, [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tag = tag
        self.attributes += attributes

    def handle_data(self, data):
        if self.tag in {"title", "style", "script"}:
            self.texts.setdefault(self.tag, []).append(data)
            self.tag = ""


def data(policies, **settings):
    return json.loads(PageParser(page(policies, **settings)).texts["script"][0])


def test_the_page_loads_no_other_file():
    read = PageParser(page({"default": Policy()}))
    assert {name for name, _ in read.attributes} & {"src", "href", "action"} == set()
    text = page({"default": Policy()})
    # The namespace of SVG is never fetched.
    assert re.findall(r"https?://[^\"']*", text) == ["http://www.w3.org/2000/svg"]
    assert re.findall(r"url\(|@import|\bimport\(", text) == []


def test_the_page_allows_its_own_style_and_script_and_nothing_else():
    read = PageParser(page({"default": Policy()}))
    allowed = next(
        value for name, value in read.attributes if (value or "").startswith("default")
    )
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-[\w+/=]+'; "
        r"style-src 'sha256-[\w+/=]+'; base-uri 'none'",
        allowed,
    )


def test_every_file_of_the_page_is_in_it():
    text = page({"default": Policy()})
    folder = files("retrykit.analysis.html_report")
    for file in folder.iterdir():
        if file.name.endswith((".js", ".css")):
            assert file.read_text("utf-8") in text, file.name
            assert len(file.read_text("utf-8").splitlines()) <= 350


def test_the_page_contains_the_given_policy():
    found = data({"mine": Policy(schedule=[1, 2])}, attempt="2s", retries=7)
    assert (found["attempt"], found["retries"], found["computed_retries"]) == (
        2.0,
        7,
        1000,
    )
    assert found["view"] == {"cumulative": False, "log": False}
    assert found["policies"] == [
        {
            "name": "mine",
            "key": "mine",
            "schedule": {"kind": "sequence", "delays": [1.0, 2.0]},
            "max_attempts": None,
            "max_elapsed": None,
            "deadline": "stop",
            "limits": "any",
            "attempt_timeout": None,
            "has_other_delays": False,
            "caveats": [],
            "stages": None,
            "simulation": {
                "retried": [True] * 4,
                "reasons": {"hang": None, "refuse": None, "error": None},
                "budget": None,
                "seed": None,
            },
            "python": {
                "settings": [],
                "omitted": [],
                "imports": ["from retrykit import Policy"],
            },
            "toml": {"settings": [], "omitted": []},
            "preset": None,
        }
    ]


def test_more_retries_are_projected_if_more_are_shown():
    assert data({"mine": Policy()}, retries=2000)["computed_retries"] == 2000


def test_an_attempt_timeout_is_in_seconds():
    limited = {
        "own": Policy(attempt_timeout="10s"),
        "handed on": Policy(attempt_timeout=AsArgument("5s")),
    }
    found = [each["attempt_timeout"] for each in data(limited)["policies"]]
    assert found == [10.0, 5.0]


def test_the_scale_depends_on_the_delays():
    def is_log(*delays, **settings):
        policy = Policy(schedule=delays)
        return data({"own": policy}, **settings)["view"]["log"]

    assert not is_log(0, 1, 100)
    assert is_log(1, 101)
    assert is_log(1, 99, 99, cumulative=True)
    assert not is_log(1, 101, retries=1)
    assert is_log(1, 2, log=True)
    assert not is_log(1, 101, log=False)


def test_no_limit_is_null():
    (zizq,) = data({"zizq": presets.zizq()})["policies"]
    assert (zizq["max_attempts"], zizq["max_elapsed"]) == (26, None)


def preset(name, policy):
    (found,) = data({name: policy})["policies"]
    return found["preset"]


def test_the_policy_of_a_preset_has_its_parameters():
    assert preset("zizq", presets.zizq()) == {
        "name": "zizq",
        "summary": "The backoff policy of the Zizq job queue.",
        "parameters": {
            "base": ["schedule", "left", "left", "wait"],
            "exponent": ["schedule", "left", "right", "exponent"],
            "jitter": ["schedule", "right", "of", "step"],
            "retry_limit": ["max_attempts"],
        },
        "limits": {"max_attempts": 26, "max_elapsed": None, "deadline": "stop"},
        "python": {
            "settings": [],
            "omitted": [],
            "imports": ["from retrykit import presets"],
        },
        "toml": {"settings": [], "omitted": []},
    }


def test_settings_beside_a_preset_are_in_its_data():
    policy = presets.zizq(retry_limit=200).replace(on=BadZipFile, max_failures=100)
    found = preset("zizq:retry_limit=200", policy)
    assert found["python"]["settings"] == ["on=zipfile.BadZipFile", "max_failures=100"]
    imports = ["import zipfile", "", "from retrykit import presets"]
    assert found["python"]["imports"] == imports


NO_PRESETS = {
    "of another name": ("jobs", presets.zizq()),
    "of another schedule": ("zizq", Policy()),
    "of parts that are not the preset's": (
        "zizq",
        presets.zizq().replace(
            schedule=s.constant(15) + s.polynomial(4, first=2) + s.linear(1) * 1
        ),
    ),
    "of a part that is fixed in the preset": (
        "zizq",
        presets.zizq().replace(
            schedule=s.constant(15)
            + s.polynomial(4, first=2)
            + s.linear(30).full_jitter()
        ),
    ),
    "without a limit that the preset has": (
        "zizq",
        presets.zizq().replace(max_attempts=None),
    ),
    "with a limit that the preset refuses": (
        "google",
        presets.google().replace(max_elapsed=0),
    ),
    "of a preset with other parameters": ("sidekiq", presets.sidekiq()),
}


@pytest.mark.parametrize(("name", "policy"), NO_PRESETS.values(), ids=NO_PRESETS)
def test_the_policy_of_no_preset_has_its_schedule(name, policy):
    assert preset(name, policy) is None


def test_each_module_is_imported_once():
    policy = Policy(schedule=[1], rules=[Rule(on=OSError, schedule=s.constant(5))])
    (found,) = data({"own": policy})["policies"]
    assert found["python"]["imports"] == [
        "from retrykit import Policy, Rule",
        "from retrykit.schedules import constant",
    ]


def test_every_kind_has_a_description():
    descriptions = data({"default": Policy()})["descriptions"]
    assert set(descriptions) == set(SCHEDULE_KINDS)
    assert descriptions["scale"] == "Multiply each delay by `factor`, >= 0."
    assert descriptions["exponential"].endswith(
        "each time: `first * factor ** (n - 1)`."
    )
    assert all(
        re.fullmatch(r"[A-Z][^`*]*(`[^`]+`[^`*]*)*\.", each)
        for each in descriptions.values()
    )


@pytest.mark.parametrize("name", ["a b", "ä", 'quo"te', "", "back\\slash\n", "a.b"])
def test_any_name_becomes_a_valid_toml_key(name):
    (found,) = data({name: Policy()})["policies"]
    assert tomllib.loads(f"[{found['key']}]") == {name: {}}


def test_markup_in_a_name_stays_text():
    read = PageParser(page({"</script><b>": Policy()}, title="</title><b>"))
    assert json.loads(read.texts["script"][0])["policies"][0]["name"] == "</script><b>"
    assert read.texts["title"] == ["</title><b>"]


def is_busy(error):
    return "busy" in str(error)


class OtherError(Exception):
    pass


UNSEEN = {
    "a type": {"on": ConnectionError},
    "types": {"on": (OSError, BadZipFile)},
    "one in a tuple": {"give_up_on": (FileNotFoundError,)},
    "of a module": {"on": BadZipFile, "give_up_on": ()},
    "raises": {"raises": "group", "max_failures": 7},
    "a seed and a name": {"seed": 2**64 - 1, "name": 'pay "now"\x7f'},
}


@pytest.mark.parametrize("settings", UNSEEN.values(), ids=UNSEEN)
def test_hidden_settings_are_in_python_and_toml(settings):
    policy = Policy(**settings)
    found = hidden_settings(policy)
    assert found["python"]["omitted"] == found["toml"]["omitted"] == []
    assert executed(found["python"]) == policy
    toml = "\n".join(found["toml"]["settings"])
    assert Policy.from_dict(tomllib.loads(toml)) == policy


def executed(python):
    names = {}
    settings = ", ".join(python["settings"])
    lines = [*python["imports"], f"policy = Policy({settings})"]
    exec("\n".join(lines), names)  # noqa: S102  under test
    return names["policy"]


def test_settings_that_are_code_are_left_out_of_toml():
    policy = Policy(on=StatusCodes(["UNAVAILABLE"]), name="pay", fallback=print)
    found = hidden_settings(policy)
    settings = ['on = ["grpc=UNAVAILABLE"]', 'name = "pay"']
    assert found["toml"] == {"settings": settings, "omitted": ["fallback"]}


def test_conditions_are_settings_of_the_page():
    policy = Policy(on=StatusCodes(["UNAVAILABLE"]), name="pay")
    assert executed(hidden_settings(policy)["python"]) == policy


def test_settings_that_are_code_are_named():
    policy = Policy(
        on=is_busy,
        on_result=callable,
        observers=[print],
        give_up_on=KeyError,
        name="pay",
    )
    found = hidden_settings(policy)
    left_out = ["on", "on_result", "observers"]
    assert found["python"]["omitted"] == found["toml"]["omitted"] == left_out
    assert found["toml"]["settings"] == ['give_up_on = "KeyError"', 'name = "pay"']


def test_settings_beside_a_schedule_are_in_the_data():
    policy = Policy(
        rules=[Rule(on=TimeoutError, schedule=[1, 5])],
        hint=retry_after(),
        budget=shared("key:test_page_data", Throttle),
        attempt_timeout=AsArgument(5),
    )
    found = hidden_settings(policy)
    assert executed(found["python"]) == policy
    assert found["toml"]["omitted"] == []
    table = tomllib.loads("\n".join(found["toml"]["settings"]))
    assert Policy.from_dict(table) == policy


def test_a_predicate_does_not_hide_give_up_on():
    found = hidden_settings(Policy(on=is_busy, give_up_on=Exception))
    assert found["python"]["settings"] == ["give_up_on=Exception"]


def test_a_local_type_counts_as_code():
    class InnerError(OtherError):
        pass

    for on in (InnerError, (InnerError, OtherError)):
        found = hidden_settings(Policy(on=on))
        assert found["python"]["omitted"] == found["toml"]["omitted"] == ["on"]


def test_a_custom_schedule_is_rejected():
    def generate():
        yield 1.0

    with pytest.raises(ConfigError, match="list its delays"):
        page({"own": Policy(schedule=s.constant(1) + s.sequence(generate))})
