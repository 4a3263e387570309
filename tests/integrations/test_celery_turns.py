"""Nothing is lost or doubled on Celery, in whatever order its workers take turns."""

import pytest

from retrykit import Policy
from retrykit.integrations.celery import status
from tests._support.celery_turns import Stage

POLICY = Policy(
    schedule=[0] * 3, max_attempts=None, max_elapsed=None, on=ConnectionError
)


@pytest.mark.parametrize("kills", range(4))
def test_each_attempt_is_made_once_unless_its_worker_is_killed(kills):
    for seed in range(60):
        stage = Stage(seed, kills)
        stage.play(POLICY, fails=2)
        again = {key for key, times in stage.made.items() if times > 1}
        assert again <= stage.excused, (seed, stage.told)
        assert [*stage.made] == ["job-7:1", "job-7:2", "job-7:3"], (seed, stage.told)
        report = status(stage.desk.app, "job-7")
        assert (report.status, stage.desk.lying()) == ("succeeded", []), seed
