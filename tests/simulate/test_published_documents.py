"""The document has the tables that the command prints.

Other tests compare the numbers of the document with the published ones.
"""

import pytest

from tests._support.published_tables import PAGE, TABLES, lines

QUICK = {"layers"}


@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough)
        for name in TABLES
    ],
)
def test_the_document_has_a_table_as_it_is_printed(name):
    assert "\n".join(lines(name)) in PAGE.read_text("utf-8")
