"""No attempt on Celery is lost or repeated in any interleaving of workers."""

import pytest

from retrykit import Policy
from retrykit.integrations.celery import status
from tests._support.celery_interleaving import Simulation

POLICY = Policy(schedule=[0] * 3, max_attempts=None, on=ConnectionError)


@pytest.mark.parametrize("kills", range(4))
def test_each_attempt_runs_once_unless_its_worker_is_killed(kills):
    for seed in range(60):
        simulation = Simulation(seed, kills)
        simulation.run(POLICY, fails=2)
        repeated = {key for key, times in simulation.attempts.items() if times > 1}
        assert repeated <= simulation.may_repeat, (seed, simulation.steps)
        keys = ["job-7:1", "job-7:2", "job-7:3"]
        assert [*simulation.attempts] == keys, (seed, simulation.steps)
        report = status(simulation.worker.app, "job-7")
        assert (report.status, simulation.worker.messages()) == ("succeeded", []), seed
