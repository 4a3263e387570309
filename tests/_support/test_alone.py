import pytest

from tests._support import alone

pytestmark = pytest.mark.thorough


def test_a_file_that_needs_another_one_fails_alone(pytester, monkeypatch, capsys):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # Without it, the settings and the root are those of a folder above.
    pytester.makefile(".toml", **{"project/pyproject": "[tool.pytest.ini_options]"})
    files = {
        "project/test_changes": "import sys; sys.changed = True\ndef test(): pass",
        "project/test_needs_it": "import sys\ndef test(): assert sys.changed",
    }
    pytester.makepyfile(**files)
    monkeypatch.chdir("project")
    assert alone.run_pytest()[0] == 0
    assert alone.main() == 1
    out = capsys.readouterr().out
    assert out.startswith("$ python -m pytest test_needs_it.py\n")
    assert out.endswith("\n1 of 2 files fail alone\n")
