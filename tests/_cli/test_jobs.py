"""``retrykit jobs``, with the apps of each engine."""

import json
import re
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from celery import Celery

from retrykit import GiveUp
from retrykit.integrations import dbos
from retrykit.integrations.procrastinate import _store as store
from tests._support import celery_worker
from tests._support.celery_worker import Verify
from tests._support.dbos_jobs import settings, skip_if_unusable
from tests._support.procrastinate_jobs import HOURLY, HostsJob
from tests._support.terminal import run_command

clock, worker = celery_worker.clock, celery_worker.worker


@pytest.fixture
def use(monkeypatch):
    """Set the app that the commands import."""

    def use(app):
        monkeypatch.setitem(sys.modules, "shop_jobs", SimpleNamespace(app=app))

    return use


def jobs(*args, code=0, **options):
    """Run a command on the app, and return what it prints."""
    printed = run_command(
        "jobs", *args, RETRYKIT_APP="shop_jobs:app", **{"width": 120} | options
    )
    assert printed.code == code, printed
    return printed.out + printed.err


@pytest.fixture
def hosts(use):
    """Two jobs on Procrastinate that wait for a retry."""
    hosts = HostsJob(HOURLY, "sync", fails=2)
    use(hosts.app)
    for job in ("a", "b"):
        hosts.task.start_as(job, "example.com")
    hosts.work()
    return hosts


def start(hosts, job):
    hosts.task.start_as(job, "example.com")


def end_as_dead(hosts, job):
    """Start a job whose attempt ends it."""
    hosts.errors["error"] = GiveUp(KeyError("host"))
    hosts.fails = 9
    start(hosts, job)
    hosts.work()


class TestList:
    def test_shows_jobs_with_their_last_errors(self, hosts):
        start(hosts, "c")
        lines = jobs("list").splitlines()
        head = "id name status failed when last error"
        assert lines[0].split() == head.split()
        pattern = r"{} +verify +waiting +{} +{} +{}"
        refused = r"ConnectionError: \('example.com',\):443 refused"
        assert re.fullmatch(pattern.format("c", 0, r"due \S+ ago", ""), f"{lines[1]} ")
        waiting = {line[0]: line for line in lines[2:]}
        for job in "ab":
            line = pattern.format(job, 1, r"due in \S+", refused)
            assert re.fullmatch(line, waiting[job])

    def test_filters_them(self, hosts):
        start(hosts, "c")
        assert jobs("list", "--error", "TimeoutError") == "no jobs\n"
        found = json.loads(jobs("list", "--error", "ConnectionError", "--json"))
        assert {each["id"] for each in found} == {"a", "b"}
        [late] = json.loads(jobs("list", "--overdue", "0s", "--json"))
        assert (late["id"], late["failed_attempts"], late["status"]) == (
            "c", 0, "waiting",
        )  # fmt: skip
        assert late["overdue"] >= 0
        assert len(json.loads(jobs("list", "--limit", "2", "--json"))) == 2
        assert jobs("list", "--older-than", "1d") == "no jobs\n"

    def test_dead_shows_why(self, hosts):
        assert jobs("dead") == "no jobs\n"
        end_as_dead(hosts, "c")
        [dead] = json.loads(jobs("dead", "--name", "verify", "--json"))
        assert (dead["id"], dead["last_error"]) == ("c", "KeyError: 'host'")
        assert dead["due"] is None
        ended = datetime.fromisoformat(dead["ended"])
        assert datetime.now(UTC) - ended < timedelta(minutes=1)

    def test_dead_shows_since_when_and_why(self, hosts):
        end_as_dead(hosts, "c")
        [_, line] = jobs("dead", width=40).splitlines()
        why = r"gave up after 1 attempt in .*GiveUp.*; last failure: KeyError: 'host'"
        assert re.fullmatch(rf"c +verify +dead +1 +ended \S+ ago +{why}", line)
        jobs("kill", "b")
        killed = jobs("dead").splitlines()[2].split()
        assert killed[:7] == ["b", "verify", "dead", "1", "-", "cancelled;", "last"]

    def test_in_a_narrow_terminal_the_last_error_is_below_each_job(self, hosts):
        end_as_dead(hosts, "d")
        start(hosts, "c")
        terminal = {"FORCE_COLOR": "1", "NO_COLOR": "1"}
        wide = jobs("list", width=200, **terminal).splitlines()
        assert len(wide) == 5
        text = re.sub(r"\x1b\[\d*m", "", jobs("list", width=50, **terminal))
        lines = [line.rstrip() for line in text.splitlines()]
        assert lines[0].split() == ["id", "name", "status", "failed", "when"]
        heads = [line.split()[0] for line in lines[1:] if line[0] != " "]
        assert (heads[0], heads[-1]) == ("c", "d")
        assert lines[1][:5] == "c   v"
        assert lines[2][0] != " ", "c has no error"
        assert lines[3] == "    ConnectionError: ('example.com',):443 refused"
        assert max(map(len, lines)) <= 50
        last = " ".join(line.strip() for line in lines[-3:])
        assert last.endswith("last failure: KeyError: 'host'")

    def test_shows_the_reason_of_a_job_whose_history_is_unreadable(self, hosts):
        hosts.connector.stored[1]["envelope"] = '{"version": 99}'
        listed = {each["id"]: each for each in json.loads(jobs("list", "--json"))}
        assert listed["a"]["failed_attempts"] is None
        assert "envelope" in listed["a"]["last_error"]

    def test_the_group_alone_prints_its_help(self):
        printed = run_command("jobs")
        assert (printed.code, printed.err) == (0, "")
        assert printed.out == run_command("jobs", "--help").out

    def test_needs_an_app(self):
        printed = run_command("jobs", "list")
        assert printed.code == 2
        assert "Missing option '--app'" in printed.err


class TestShow:
    def test_shows_every_error(self, hosts):
        lines = jobs("show", "a").splitlines()
        assert lines[0].startswith("a: waiting, 1 failed attempt, next due ")
        assert len(lines) == 3

    def test_wraps_no_line_except_in_a_terminal_at_its_indent(self, hosts):
        assert jobs("show", "a", width=30) == jobs("show", "a", width=200)
        terminal = {"FORCE_COLOR": "1", "NO_COLOR": "1"}
        lines = jobs("show", "a", width=40, **terminal).splitlines()
        assert len(lines) > 3
        assert lines[-1].startswith("      ")
        assert lines[-1].rstrip().endswith("refused")

    def test_shows_when_a_job_ended(self, hosts):
        end_as_dead(hosts, "c")
        [_, ended, *_] = jobs("show", "c").splitlines()
        assert ended.startswith(f"  ended {datetime.now(UTC):%Y-%m-%d}")

    def test_as_json(self, hosts):
        job = json.loads(jobs("show", "a", "--json"))
        assert job["envelope"]["job"] == job["id"] == "a"
        assert datetime.fromisoformat(job["due"]) > datetime.now(UTC)

    def test_of_a_job_without_a_readable_history(self, hosts):
        hosts.connector.stored[1]["envelope"] = "{}"
        assert json.loads(jobs("show", "a", "--json"))["envelope"] is None

    def test_rejects_an_unknown_id(self, hosts):
        printed = jobs("show", "z", code=2)
        assert printed.startswith("retrykit: job_id must be the id of a job")


class TestCounts:
    def test_counts_by_name_and_status(self, hosts):
        end_as_dead(hosts, "c")
        lines = jobs("counts").splitlines()
        assert [line.split() for line in lines[:3]] == [
            ["name", "waiting", "running", "dead"],
            ["verify", "2", "0", "1"],
            ["total", "2", "0", "1"],
        ]
        assert re.fullmatch(r"overdue +\S+", lines[4])
        assert re.fullmatch(r"next due  in \S+", lines[5])

    def test_as_json(self, hosts):
        counts = json.loads(jobs("counts", "--json", "--status", "waiting"))
        assert counts["counts"] == {"verify": {"waiting": 2}}
        assert counts["overdue"] >= 0
        assert counts["next_due"]

    def test_counts_a_job_once_that_begins_meanwhile(self, hosts):
        before = hosts.connector.before
        before[store.ALL] = lambda: before.update({store.ALL: hosts.stall})
        counts = json.loads(jobs("counts", "--json"))
        assert counts["counts"] == {"verify": {"waiting": 2}}
        assert store.ALL not in before, "it has begun"

    def test_without_jobs(self, use):
        use(HostsJob(HOURLY, "sync").app)
        assert jobs("counts").splitlines()[1:] == [
            "total        0        0     0", "", "overdue   nothing", "next due  -",
        ]  # fmt: skip

    def test_exit_code_tells_a_monitor(self, hosts):
        jobs("counts", "--max-dead", "0", "--max-overdue", "1h")
        end_as_dead(hosts, "c")
        printed = jobs("counts", "--max-dead", "0", code=1)
        assert "retrykit: 1 dead, more than 0" in printed
        jobs("counts", "--max-dead", "1")
        start(hosts, "d")
        printed = jobs("counts", "--max-overdue", "0s", code=1)
        assert re.search("retrykit: a job has been due for .*, longer than 0s", printed)

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (
                ["--max-dead", "0", "--status", "waiting"],
                "--max-dead also needs --status",
            ),
            (
                ["--max-overdue", "1m", "--status", "running"],
                "--max-overdue also needs",
            ),
        ],
    )
    def test_a_limit_on_what_is_not_counted_is_rejected(self, hosts, args, message):
        assert message in jobs("counts", *args, code=2)


class TestChanges:
    def test_requeues_by_id_and_goes_on_after_an_error(self, hosts):
        end_as_dead(hosts, "c")
        end_as_dead(hosts, "d")
        printed = jobs("requeue", "c", "z", "d", code=1)
        assert printed.startswith("c\nd\nretrykit: z: job_id must be the id of a job")
        assert hosts.status("c").status == "waiting"

    def test_requeues_by_filters(self, hosts):
        end_as_dead(hosts, "c")
        assert jobs("requeue", "--error", "TimeoutError") == ""
        assert jobs("requeue", "--error", "KeyError", "--dry-run") == "c\n"
        assert hosts.status("c").status == "dead"
        assert jobs("requeue", "--error", "KeyError") == "c\n"
        assert jobs("requeue", "--all") == ""
        printed = jobs("requeue", "--overdue", "0s", code=1)
        assert "retrykit: c: job_id must be the id of a dead job" in printed

    def test_kills(self, hosts):
        assert jobs("kill", "b") == "b\n"
        assert hosts.status("b").status == "dead"
        assert jobs("kill", "--all") == "a\n"
        assert jobs("kill", "--all", "--status", "running") == ""

    def test_moves_the_next_attempt(self, hosts):
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        assert jobs("retry-at", tomorrow.isoformat(), "a") == "a\n"
        assert hosts.status("a").due == pytest.approx(
            tomorrow, abs=timedelta(seconds=1)
        )
        jobs("retry-at", "now", "--name", "verify")
        assert hosts.status("a").due < tomorrow
        printed = jobs("retry-at", "soon", "a", code=2)
        assert "'soon' is neither 'now' nor a time" in printed

    @pytest.mark.parametrize(
        "args",
        [(), ("a", "--all"), ("a", "--name", "verify"), ("--all", "--name", "x")],
    )
    def test_need_either_ids_or_filters_or_all(self, hosts, args):
        printed = jobs("requeue", *args, code=2)
        assert "Write the ids of jobs, or filters such as --name, or --all." in printed


def test_watch_shows_the_counts_again_and_again(hosts):
    printed = jobs("watch", "--updates", "2", "--every", "1ms")
    assert printed.count("next due") == 1  # a terminal shows the last one only
    assert "verify" in printed


class TestApps:
    @pytest.mark.parametrize(
        ("app", "message"),
        [
            ("shop_jobs", "write --app mypackage.jobs:app"),
            ("shop_jobs:", "write --app mypackage.jobs:app"),
            ("shop_jobs:apps", "--app must be an attribute of its module"),
            ("no_such_module:app", "no_such_module must be importable"),
        ],
    )
    def test_rejects_what_is_not_there(self, use, app, message):
        use(None)
        printed = jobs("list", "--app", app, code=2)
        assert message in printed

    @pytest.mark.parametrize("app", [None, {"password": "hunter2"}])
    def test_rejects_what_is_not_an_app(self, use, app):
        use(app)
        printed = jobs("list", code=2)
        assert "a Celery app, a Procrastinate app or DBOS settings" in printed
        assert "hunter2" not in printed

    def test_celery(self, use, worker):
        use(worker.app)
        worker.send(Verify(fails=1, error=GiveUp))
        worker.handle_next()
        assert json.loads(jobs("dead", "--json"))[0]["id"] == "job-7"
        assert jobs("requeue", "--all") == "job-7\n"
        printed = jobs("list", code=2)
        assert "with this broker there is no list of other jobs" in printed

    @pytest.mark.parametrize("command", [("counts",), ("show", "a"), ("kill", "a")])
    @pytest.mark.parametrize("content", [None, b""], ids=["missing", "empty"])
    def test_none_creates_a_database_of_dbos(self, use, tmp_path, command, content):
        skip_if_unusable()
        use(settings(tmp_path))
        if content is not None:
            (tmp_path / "jobs.sqlite").write_bytes(content)
        printed = jobs(*command, code=2)
        assert printed.startswith("retrykit: database must be one that a worker or ")
        assert f"got 'sqlite:///{tmp_path}/jobs.sqlite'; check its path" in printed
        found = {path: path.read_bytes() for path in tmp_path.iterdir()}
        assert [*found.values()] == [content] * (content is not None)

    @pytest.mark.parametrize("query", ["", "?timeout=9"])
    def test_none_creates_a_database_of_celery(self, use, tmp_path, query):
        app = Celery(broker="memory://", backend=f"db+sqlite:///{tmp_path}/r{query}")
        use(app)
        printed = jobs("counts", "--status", "dead", code=2)
        assert "must be that of a file in which a worker has stored" in printed
        assert not [*tmp_path.iterdir()]
        (tmp_path / "r").touch()
        assert "total" in jobs("counts", "--status", "dead")

    def test_dbos(self, use, tmp_path):
        skip_if_unusable()
        use(settings(tmp_path))
        dbos.connect(settings(tmp_path))
        waits = dbos.job(HOURLY, name="cli-waits")(lambda: None)
        for job in ("a", "b"):
            waits.start_as(job)
        dbos.disconnect()
        assert [each["id"] for each in json.loads(jobs("list", "--json"))] == ["a", "b"]
        assert jobs("kill", "a") == "a\n"
        assert json.loads(jobs("counts", "--json"))["counts"] == {
            "cli-waits": {"waiting": 1, "dead": 1}
        }
        assert jobs("requeue", "--all") == "a\n"
