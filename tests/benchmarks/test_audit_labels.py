"""Labelled places, and the score of an auditor on them."""

import io
import subprocess
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import audit_labels
from benchmarks.audit_labels import Label, Site, read_labels, score


def label(
    line: int,
    kind: str = "loop",
    rules: str = "",
    unknown: str = "",
    path: str = "a.py",
) -> Label:
    what = "poll: of a job" if kind == "none" else "a call"
    return Label(
        "package",
        "1.0",
        path,
        line,
        kind,
        what,
        frozenset(rules.split()),
        frozenset(unknown.split()),
    )


def site(line: int, end_line: int = 0, rules: str = "", path: str = "a.py") -> Site:
    return Site(path, line, end_line or line, "loop", frozenset(rules.split()))


def test_every_label_is_valid_and_no_place_has_two():
    labels = read_labels()
    places = Counter((each.package, each.path, each.line) for each in labels)
    assert [place for place, count in places.items() if count > 1] == []
    versions = {(each.package, each.version) for each in labels}
    assert len(versions) == len({package for package, _ in versions})


def test_there_are_as_many_labels_of_each_form_as_were_promised():
    forms = Counter(each.form for each in read_labels())
    assert forms["library"] >= 150
    assert forms["loop"] >= 120
    assert forms["none"] >= 120


def test_a_retry_is_found_or_missed_and_what_is_none_is_wrong():
    labels = [label(1), label(10), label(20, "none"), label(30, "tenacity")]
    result = score(labels, {"package": [site(1), site(20), site(30), site(40)]})
    assert [each.line for each in result.found] == [1, 30]
    assert [each.line for each in result.missed] == [10]
    assert [each.line for each in result.wrong] == [20]
    assert result.unread == [("package", site(40))]


def test_a_site_belongs_to_the_label_on_its_line_before_one_within():
    labels = [label(2, "none"), label(5)]
    result = score(labels, {"package": [site(2, 9), site(5, 9)]})
    assert [each.line for each in result.found] == [5]
    assert [each.line for each in result.wrong] == [2]


def test_a_site_belongs_to_the_nearest_label_within_that_no_other_has():
    labels = [label(3), label(4), label(3, path="b.py")]
    result = score(labels, {"package": [site(1, 9), site(3, 9)]})
    assert [each.line for each in result.found] == [3, 4]
    assert [each.path for each in result.missed] == ["b.py"]


def test_a_rule_is_right_wrong_or_missed():
    labels = [
        label(1, rules="unbounded no-jitter"),
        label(2, "none"),
        label(3, rules="error-hidden"),
    ]
    found = [site(1, rules="unbounded error-hidden"), site(2, rules="no-jitter")]
    result = score(labels, {"package": found})
    assert result.right_findings == [("unbounded", labels[0])]
    assert result.wrong_findings == [
        ("error-hidden", labels[0]),
        ("no-jitter", labels[1]),
    ]
    assert result.missed_findings == [
        ("no-jitter", labels[0]),
        ("error-hidden", labels[2]),
    ]


def test_a_rule_that_the_label_does_not_decide_is_left_out():
    labels = [label(1, unknown="unbounded"), label(2, "none", unknown="blocking-sleep")]
    found = [site(1, rules="unbounded"), site(2, rules="blocking-sleep")]
    result = score(labels, {"package": found})
    assert (result.right_findings, result.wrong_findings) == ([], [])


def test_an_unclear_place_and_a_package_without_sites_are_left_out():
    labels = [label(1, "unclear"), label(2)._replace(package="other")]
    result = score(labels, {"package": [site(1, rules="unbounded")]})
    assert result == audit_labels.Score([], [], [], [], [], [], [])


def test_the_tables_show_counts_and_shares_and_the_details_each_fault():
    labels = [
        label(1, rules="unbounded"),
        label(2),
        label(3, "backoff"),
        label(4, "none"),
    ]
    found = [site(1, rules="unbounded"), site(3), site(4, rules="unbounded"), site(9)]
    result = score(labels, {"package": found})
    sites, rules = result.tables().split("\n\n")
    assert sites.splitlines() == [
        "| sites    | found | missed | recall |",
        "|----------|-------|--------|--------|",
        "| library  |     1 |      0 |   100% |",
        "| loop     |     1 |      1 |    50% |",
        "| no retry |     1 |        |        |",
        "| unread   |     1 |        |        |",
    ]
    cells = [each.strip() for each in rules.splitlines()[2].split("|")]
    assert cells == ["", "unbounded", "1", "1", "0", "50%", "100%", ""]
    assert result.details().splitlines() == [
        "no retry, found as one: package/a.py:4 none: poll: of a job",
        "wrong finding: unbounded: package/a.py:4 none: poll: of a job",
        "missed retry: package/a.py:2 loop: a call",
        "unread site: package/a.py:9 loop",
    ]


@pytest.mark.parametrize(
    ("kind", "what", "rules", "unknown", "message"),
    [
        ("tenacious", "", "", "", "kind must be"),
        ("loop", "", "no-cap", "", "rules must be in RULES"),
        ("loop", "", "unbounded", "unbounded", "decided or not"),
        ("none", "poll", "unbounded", "", "must be empty"),
        ("none", "polls", "", "", "must begin with one of"),
    ],
    ids=["kind", "rule", "both", "no retry with rules", "no retry of a new kind"],
)
def test_a_row_that_makes_no_sense_is_refused(
    tmp_path: Path, kind: str, what: str, rules: str, unknown: str, message: str
):
    file = tmp_path / "labels.csv"
    file.write_text(
        "package,version,path,line,kind,what,rules,unknown\n"
        f"package,1.0,a.py,1,{kind},{what},{rules},{unknown}\n",
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match=message):
        read_labels(file)


def test_python_files_are_unpacked_and_a_source_archive_loses_its_first_folder(
    tmp_path: Path,
):
    wheel, source = tmp_path / "package-1.0.whl", tmp_path / "package-1.0.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("package/a.py", "")
        archive.writestr("package/a.txt", "")
    with tarfile.open(source, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("package-1.0/package/a.py"), io.BytesIO())
    for file in (wheel, source):
        folder = tmp_path / file.suffix
        audit_labels.unpack(file, folder)
        paths = [each for each in folder.rglob("*") if each.is_file()]
        assert paths == [folder / "package/a.py"]


@pytest.mark.needs("git")
def test_the_files_of_a_repository_are_those_of_its_commit(tmp_path, monkeypatch):
    source = tmp_path / "source/owner/name"
    (source / "package").mkdir(parents=True)
    (source / "package/a.py").write_text("x = 1\n")
    (source / "package/a.txt").write_text("")
    user = ["-c", "user.name=A", "-c", "user.email=a@example.com"]

    def git(*arguments):
        command = ["git", "-C", source, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  fixed

    git("init", "--quiet")
    git("add", ".")
    git(*user, "commit", "--quiet", "--message=first")
    commit = git("rev-parse", "HEAD").stdout.strip()
    (source / "package/a.py").write_text("x = 2\n")
    git(*user, "commit", "--quiet", "--all", "--message=second")
    # Instead of GitHub.
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv(
        "GIT_CONFIG_KEY_0", f"url.{source.parents[1].as_uri()}/.insteadOf"
    )
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/")
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")
    labels = [
        Label("owner/name", commit, "package/a.py", 1, "none", "", *[frozenset()] * 2)
    ]
    folders = audit_labels.download(labels, tmp_path / "found")
    assert folders == {"owner/name": tmp_path / f"found/owner/name-{commit}"}
    [file] = [each for each in folders["owner/name"].rglob("*") if each.is_file()]
    assert file.read_text() == "x = 1\n"
    missing = [labels[0]._replace(package="owner/other")]
    assert audit_labels.download(missing, tmp_path / "found") == {}


def test_the_sites_of_an_audit_have_their_rules(tmp_path: Path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/a.py").write_text(
        "import time\n\ndef fetch_all():\n    while True:\n        try:\n"
        "            return fetch()\n        except OSError:\n"
        "            time.sleep(1)\n",
        encoding="utf-8",
    )
    rules = frozenset(["unbounded", "no-jitter"])
    found = [*audit_labels.audited(tmp_path)]
    assert found == [Site("package/a.py", 4, 8, "loop", rules)]


def test_labels_of_another_file_are_scored(tmp_path, capsys):
    labels = tmp_path / "labels.csv"
    labels.write_text("package,version,path,line,kind,what,rules,unknown\n")
    audit_labels.main(["--labels", str(labels), "score", str(tmp_path)])
    assert "| library  |     0 |      0 |" in capsys.readouterr().out
