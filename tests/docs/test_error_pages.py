"""Every code of a ConfigError has a page, whose example raises it.

What the examples print is compared by the tests of documented code.
"""

import copy
import pickle
from typing import get_args

import pytest

from retrykit import ConfigError, Policy
from retrykit._internal import distribution
from retrykit.errors import ErrorCode
from tests._support.documents import ROOT, blocks

FOLDER = ROOT / "docs/errors"
CODES = get_args(ErrorCode)


def test_every_code_has_a_page_and_every_page_a_code():
    pages = {path.stem for path in FOLDER.glob("*.md")} - {"index"}
    assert pages == {*CODES}


def test_the_index_lists_every_code():
    text = (FOLDER / "index.md").read_text("utf-8")
    assert [code for code in CODES if f"| [`{code}`]({code}.md) |" not in text] == []


@pytest.mark.parametrize("code", CODES)
def test_the_example_of_a_page_raises_its_code(code):
    page = FOLDER / f"{code}.md"
    assert page.read_text("utf-8").startswith(f"# {code}\n")
    (first, _), (second, printed), *_ = blocks(page)
    assert (first, second) == ("python", "text")
    assert printed.endswith(f"  [{code}]\n") or printed == f"{code}\n"


def wrong_setting():
    with pytest.raises(ConfigError) as caught:
        Policy(max_attempts=0)
    return caught.value


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))],  # noqa: S301
)
def test_a_copy_of_an_error_has_its_code(copied):
    error = wrong_setting()
    assert copied(error).code == error.code == "out-of-range"
    assert str(copied(error)) == str(error)


def test_the_address_of_a_page_follows_when_there_is_a_site(monkeypatch):
    monkeypatch.setattr(distribution, "SITE", "https://retrykit.example/")
    assert str(wrong_setting()).endswith(
        "  [out-of-range]  https://retrykit.example/errors/out-of-range.html"
    )
