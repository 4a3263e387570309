"""The comparison with other libraries, and its page."""

from pathlib import Path

import pytest

from benchmarks.comparison.__main__ import HEADS, RELEASE
from benchmarks.comparison.answers import LIBRARIES, answer
from benchmarks.comparison.behavior import lacks
from benchmarks.comparison.claims import CLAIMS, NO, Answer, Library
from benchmarks.comparison.documents import DOCUMENTS
from benchmarks.comparison.page import PAGE, differences, put, read_rows
from retrykit import retry

ROOT = Path(__file__).parents[2]
TEXT = PAGE.read_text("utf-8")
EMPTY = "# Page\n\n<!-- other -->\n\n<!-- end -->\n\n<!-- table -->\n\n<!-- end -->\n"


def library(**programs):
    return Library("some", "retrykit.budgets", retry, lambda: retry, programs)


def test_the_page_has_an_answer_of_each_library_to_each_claim():
    rows = read_rows(TEXT, "programs")
    assert [*rows] == [*CLAIMS.values(), RELEASE]
    assert {len(cells) for cells in rows.values()} == {len(LIBRARIES)}
    del rows[RELEASE]
    verdicts = {cell.partition(":")[0] for cells in rows.values() for cell in cells}
    assert verdicts == {"yes", "no", "partly"}


@pytest.mark.parametrize("name", HEADS)
def test_the_page_names_each_library(name):
    assert f"| {' | '.join(HEADS[name])} |" in TEXT


def test_each_document_answers_the_same_claims():
    claims, *others = ([*each] for each in DOCUMENTS.values())
    assert {*claims} <= {*CLAIMS}
    assert others == [claims] * len(others)


def test_the_page_has_the_pinned_releases():
    pins = (ROOT / ".ci/pins.txt").read_text("utf-8").splitlines()
    cells = read_rows(TEXT, "programs")[RELEASE]
    for name, cell in zip(LIBRARIES[1:], cells[1:], strict=True):
        number, _, month = cell.partition(", ")
        assert f"{name}=={number}" in pins
        assert month


def test_a_table_is_written_between_its_own_marks():
    page = put(EMPTY, "table", ["a", "b"], {"row": ["yes", "no"]})
    assert read_rows(page, "table") == {"row": ["yes", "no"]}
    assert read_rows(page, "other") == {}
    assert put(page, "table", ["a", "b"], {"row": ["yes", "no"]}) == page


def test_a_claim_that_is_wrong_is_named():
    old, new = {"Jitter": ["yes", "no"]}, {"Jitter": ["yes", "yes"], "Trio": ["no", ""]}
    assert differences(old, new, ["tenacity", "backoff"]) == [
        "backoff, Jitter: the page says 'no', and it is 'yes'",
        "tenacity, Trio: the page says '', and it is 'no'",
    ]


def test_an_error_of_a_program_is_its_answer():
    def removed():
        msg = "no such function"
        raise AttributeError(msg)

    found = answer(library(budget=removed), "budget")
    assert found == Answer("unclear", "AttributeError: no such function")


def test_a_name_that_a_library_did_not_have_is_told():
    assert lacks("hedg")(library()) == NO
    assert lacks("^TokenBu")(library()) == Answer("unclear", "has `TokenBucket`")
