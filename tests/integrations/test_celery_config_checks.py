"""Settings of Celery under which jobs would be lost or attempted twice."""

from datetime import timedelta

import pytest
from celery.worker import WorkController
from kombu import Exchange, Queue

from retrykit import ConfigError, Policy
from retrykit.integrations.celery import capabilities
from retrykit.testing import virtual_time
from tests._support.celery_apps import AMQP, CONFIRMED, QUORUM, app, verify
from tests._support.celery_worker import InMemoryWorker


def capabilities_of(*args, **options):
    celery = app(*args, **options)
    return capabilities(celery, celery.tasks["verify"])


class TestAHop:
    def test_on_redis_is_a_quarter_of_the_visibility_timeout(self):
        assert capabilities_of().max_hold == 900
        options = {"visibility_timeout": 43_200}
        assert capabilities_of(broker_transport_options=options).max_hold == 10_800

    def test_on_redis_may_be_up_to_half_of_it(self):
        assert capabilities_of(task={"max_hold": "29m"}).max_hold == 1740

    def test_on_a_classic_queue_is_well_below_the_limit_of_rabbitmq(self):
        found = capabilities_of(AMQP, broker_transport_options=CONFIRMED)
        assert (found.max_hold, found.min_delay) == (600, 0)
        found = capabilities_of(
            AMQP, {"max_hold": 30}, broker_transport_options=CONFIRMED
        )
        assert found.max_hold == 30
        found = capabilities_of(
            AMQP, {"max_hold": "15m"}, broker_transport_options=CONFIRMED
        )
        assert found.max_hold == 900

    def test_on_a_quorum_queue_is_shorter_than_the_life_of_the_ledger(self):
        assert capabilities_of(AMQP, **QUORUM).max_hold == 21_600
        found = capabilities_of(AMQP, {"max_hold": "1h"}, **QUORUM)
        assert (found.max_hold, found.min_delay, found.granularity) == (3600, 1, 2)
        options = {"result_expires": timedelta(days=40)}
        assert capabilities_of(AMQP, **QUORUM, **options).max_hold == 10 * 86_400

    def test_on_a_quorum_queue_is_within_the_limit_of_native_delays(self):
        for task in ({}, {"max_hold": "9000d"}):
            found = capabilities_of(AMQP, task, **QUORUM, result_expires=None)
            assert found.max_hold == 2**28 - 1

    def test_in_memory_is_for_tests(self):
        found = capabilities_of("memory://")
        assert (found.max_hold, found.at_least_once) == (60, False)


class TestAJobThatWouldBeLost:
    def test_includes_one_that_is_not_redelivered(self):
        with pytest.raises(ConfigError, match="reject_on_worker_lost must be True"):
            capabilities_of(task={"reject_on_worker_lost": False})

    def test_includes_one_whose_ledger_expires_at_its_second_hop(self):
        assert capabilities_of(result_expires=1801).max_hold == 900
        with pytest.raises(ConfigError, match="twice max_hold"):
            capabilities_of(result_expires=1800)


class TestAWorker:
    def test_does_not_start_if_jobs_would_be_lost(self):
        with pytest.raises(ConfigError, match="result_backend"):
            WorkController(app=app("memory://", result_backend=None), pool="solo")

    def test_starts_if_no_job_would_be_lost(self):
        assert WorkController(app=app("memory://"), pool="solo")

    def test_that_gets_a_job_anyway_requeues_it(self):
        with virtual_time() as clock:
            worker = InMemoryWorker()
            task = worker.task(verify, Policy())
            task.delay()
            del task.capabilities
            worker.app.conf.result_expires = 1
            worker.handle_next()
            assert (len(worker.messages()), clock.sleeps) == (1, [1])


class TestASender:
    def test_is_rejected_before_it_sends_anything(self):
        with pytest.raises(ConfigError, match="result_backend"):
            app("memory://", result_backend=None).tasks["verify"].delay()

    @pytest.mark.parametrize("part", [float("nan"), {1: 2}, {1}], ids=type)
    def test_is_rejected_if_arguments_are_not_json(self, part):
        task = app("memory://").tasks["verify"]
        with pytest.raises(ConfigError, match=r"args\[0\] must be"):
            task.delay(part)
        with pytest.raises(ConfigError, match=r"kwargs\['part'\] must be"):
            task.delay(part=part)

    def test_is_rejected_if_its_task_lets_jobs_expire(self):
        task = app("memory://", {"expires": 60}).tasks["verify"]
        with pytest.raises(ConfigError, match="set max_elapsed in its policy"):
            task.delay()


class TestAMessage:
    """RabbitMQ shows the queue of a redelivered message in several forms."""

    def queue(self, **delivery_info):
        from retrykit.integrations.celery._messages import copy_message

        queues = [
            Queue("keyless", Exchange("fan", "fanout")),
            Queue("feeds", Exchange("topics", "topic"), "feeds.in"),
            Queue("wide", Exchange("topics", "topic"), "news.#"),
        ]
        celery = app("memory://", task_queues=queues, task_default_routing_key="")
        task = celery.tasks["verify"]
        task.push_request(id="job-7", args=[], kwargs={}, delivery_info=delivery_info)
        return copy_message(task, {}).options

    def test_that_was_delayed_goes_back_to_its_queue(self):
        key = ".".join("0" * 27 + "1") + ".feeds.in"
        options = self.queue(exchange="celery_delayed_delivery", routing_key=key)
        assert options["queue"] == "feeds"

    def test_that_was_sent_to_a_queue_by_its_name_goes_back_to_it(self):
        assert self.queue(exchange="", routing_key="wide")["queue"] == "wide"

    def test_of_an_unknown_routing_key_keeps_its_destination(self):
        options = self.queue(exchange="topics", routing_key="news.today")
        assert "queue" not in options
        assert (options["exchange"], options["routing_key"]) == ("topics", "news.today")

    def test_without_delivery_info_uses_the_routes_of_its_task(self):
        assert "queue" not in self.queue()
