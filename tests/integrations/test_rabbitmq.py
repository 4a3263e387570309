"""RabbitMQ: transient errors of pika and aio-pika, and locks of Celery jobs."""

import asyncio
import gc
import signal
import socket
import ssl
import threading

import aio_pika
import pika
import pytest
from celery import Celery
from pika import exceptions

from retrykit import ConfigError, Policy, state_of
from retrykit.integrations import aio_pika as for_aio_pika, pika as for_pika
from retrykit.integrations.celery import DurableTask, status
from retrykit.integrations.celery._job_locks import exclusively
from retrykit.testing import virtual_time
from tests._support.fault_proxy import proxy, refused, reset_at_once, through
from tests._support.rabbitmq_server import RabbitServer

QUICK = {"schedule": [0] * 5, "max_attempts": 6}

pytestmark = pytest.mark.filterwarnings("ignore:coroutine 'Connection.close' was never")


@pytest.fixture(autouse=True)
def _collect_garbage():
    """Collect the coroutines that aio-pika never awaits if a connection fails."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    broker = RabbitServer(tmp_path_factory.mktemp("broker"))
    broker.start()
    yield broker
    broker.stop()


def parameters(port, **settings):
    return pika.ConnectionParameters("127.0.0.1", port, **settings)


def connect(port, **settings):
    return pika.BlockingConnection(parameters(port, **settings))


def url(port, user="guest", vhost="/"):
    return f"amqp://{user}:guest@127.0.0.1:{port}/{vhost}"


class Pika:
    """Operations with pika, each on a connection of its own."""

    transient = for_pika.transient

    def run(self, port, operation, policy=None):
        policy = policy or for_pika.policy(**QUICK)
        return policy.call(lambda: getattr(self, operation)(port))

    def declare(self, port):
        with connect(port) as connection:
            connection.channel().queue_declare("orders")

    def declare_differently(self, port):
        self.declare(port)
        with connect(port) as connection:
            connection.channel().queue_declare("orders", durable=True)

    def inspect_missing(self, port):
        with connect(port) as connection:
            connection.channel().queue_declare("missing", passive=True)

    def log_in_wrongly(self, port):
        credentials = pika.PlainCredentials("wrong", "guest")
        with connect(port, credentials=credentials):
            pass

    def open_missing_vhost(self, port):
        with connect(port, virtual_host="missing"):
            pass

    def publish_to_full_queue(self, port):
        arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
        with connect(port) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("full", arguments=arguments)
            channel.basic_publish("", "full", b"1")
            channel.basic_publish("", "full", b"2")

    def publish_unroutable(self, port):
        with connect(port) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_publish("", "missing", b"1", mandatory=True)

    def use_closed_channel(self, port):
        with connect(port) as connection:
            channel = connection.channel()
            channel.close()
            channel.queue_declare("orders")


class AioPika:
    """The same operations with aio-pika."""

    transient = for_aio_pika.transient

    def run(self, port, operation, policy=None):
        policy = policy or for_aio_pika.policy(**QUICK)
        return asyncio.run(policy.acall(lambda: getattr(self, operation)(port)))

    async def declare(self, port):
        async with await aio_pika.connect(url(port)) as connection:
            channel = await connection.channel()
            await channel.declare_queue("orders")

    async def declare_differently(self, port):
        await self.declare(port)
        async with await aio_pika.connect(url(port)) as connection:
            channel = await connection.channel()
            await channel.declare_queue("orders", durable=True)

    async def inspect_missing(self, port):
        async with await aio_pika.connect(url(port)) as connection:
            channel = await connection.channel()
            await channel.declare_queue("missing", passive=True)

    async def log_in_wrongly(self, port):
        await aio_pika.connect(url(port, user="wrong"))

    async def open_missing_vhost(self, port):
        await aio_pika.connect(url(port, vhost="missing"))

    async def publish_to_full_queue(self, port):
        arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
        async with await aio_pika.connect(url(port)) as connection:
            channel = await connection.channel()
            await channel.declare_queue("full", arguments=arguments)
            for body in (b"1", b"2"):
                message = aio_pika.Message(body)
                await channel.default_exchange.publish(message, "full")

    async def publish_unroutable(self, port):
        async with await aio_pika.connect(url(port)) as connection:
            channel = await connection.channel(on_return_raises=True)
            message = aio_pika.Message(b"1")
            await channel.default_exchange.publish(message, "missing")

    async def use_closed_channel(self, port):
        async with await aio_pika.connect(url(port)) as connection:
            channel = await connection.channel()
            await channel.close()
            await channel.declare_queue("orders")


@pytest.fixture(params=[Pika, AioPika], ids=["pika", "aio-pika"])
def client(request):
    return request.param()


def test_refused_and_reset_connections_are_retried(client, broker):
    plans = refused(), refused(), reset_at_once(), through()
    with proxy(broker.port, *plans) as faults:
        failures = []

        def note(event):
            failures.append(event.failure.error)
            faults.attempt_failed()

        policy = (for_pika if isinstance(client, Pika) else for_aio_pika).policy
        policy = policy(**QUICK, observers={"attempt_failed": note})
        client.run(faults.port, "declare", policy)
    assert len(failures) == 3


@pytest.mark.parametrize(
    "operation",
    [
        *("declare_differently", "inspect_missing", "log_in_wrongly"),
        *("open_missing_vhost", "publish_unroutable"),
    ],
)
def test_a_permanent_error_is_not_retried(client, broker, operation):
    with pytest.raises(Exception) as caught:
        client.run(broker.port, operation)
    library = type(caught.value).__module__.partition(".")[0]
    assert library in {"aiormq", "pamqp", "pika"}
    assert state_of(caught.value).attempt == 1


def test_a_message_that_the_broker_rejects_is_retried(client, broker):
    with pytest.raises((exceptions.NackError, aio_pika.exceptions.DeliveryError)) as e:
        client.run(broker.port, "publish_to_full_queue")
    assert state_of(e.value).attempt == 6


def test_a_closed_channel_is_transient_only_with_aio_pika(client, broker):
    with pytest.raises(Exception, match="closed") as caught:
        client.run(broker.port, "use_closed_channel")
    assert state_of(caught.value).attempt == (1 if isinstance(client, Pika) else 6)


def close_by_shutdown(broker):
    """Shut the broker down, and return the error of a waiting pika connection."""
    connection = pika.BlockingConnection(parameters(broker.port))
    timer = threading.Timer(0.1, broker.process.send_signal, [signal.SIGTERM])
    timer.start()
    with pytest.raises(exceptions.AMQPError) as caught:
        connection.process_data_events(time_limit=30)
    timer.join()
    return caught.value


async def publish(channel):
    message = aio_pika.Message(b"1")
    await channel.default_exchange.publish(message, "robust", timeout=5)


async def publish_during_restart(broker):
    """Return the errors of a shutdown, and the outcome of a call during the restart."""
    policy = for_aio_pika.policy(schedule=[0.1] * 600, max_elapsed="60s")
    address = url(broker.port)
    plain = await aio_pika.connect(address)
    closed = asyncio.get_running_loop().create_future()
    plain.close_callbacks.add(lambda _, error: closed.set_result(error))
    async with await aio_pika.connect_robust(address, reconnect_interval=0.1) as robust:
        channel = await robust.channel()
        await channel.declare_queue("robust", durable=True)
        of_pika = await asyncio.to_thread(close_by_shutdown, broker)
        await asyncio.to_thread(broker.stop)
        publishing = asyncio.create_task(policy.arun(publish, channel))
        await asyncio.to_thread(broker.start)
        return of_pika, await closed, await publishing


def test_a_restart_of_the_broker_is_survived(broker):
    of_pika, of_aio_pika, outcome = asyncio.run(publish_during_restart(broker))
    outcome.unwrap()
    assert outcome.state.attempt > 1
    assert of_pika.reply_code == of_aio_pika.args[0] == 320
    assert for_pika.transient(of_pika)
    assert for_aio_pika.transient(of_aio_pika)
    Pika().run(broker.port, "declare")


CONNECTION_FORCED = exceptions.ConnectionClosedByBroker(320, "CONNECTION_FORCED")


@pytest.mark.parametrize(
    "error",
    [
        exceptions.AMQPHeartbeatTimeout(),
        exceptions.ConnectionBlockedTimeout(),
        exceptions.ProbableAuthenticationError(repr(exceptions.StreamLostError())),
        exceptions.ProbableAccessDeniedError(repr(CONNECTION_FORCED)),
        ConnectionResetError(),
        socket.gaierror(),
    ],
    ids=repr,
)
def test_transient_errors_of_pika(error):
    assert for_pika.transient(error)


@pytest.mark.parametrize(
    "error",
    [
        exceptions.AuthenticationError("PLAIN"),
        exceptions.ConnectionClosedByBroker(541, "INTERNAL_ERROR"),
        exceptions.ConnectionClosedByClient(200, "Normal shutdown"),
        exceptions.ConnectionOpenAborted(),
        exceptions.ConnectionWrongStateError(),
        exceptions.NoFreeChannels(),
        exceptions.ChannelClosedByBroker(320, "CONNECTION_FORCED"),
        ssl.SSLCertVerificationError(),
        ValueError(),
        None,
    ],
    ids=repr,
)
def test_permanent_errors_of_pika(error):
    assert not for_pika.transient(error)


def rejected_certificate():
    error = aio_pika.exceptions.AMQPConnectionError(1, "certificate verify failed")
    error.__cause__ = ssl.SSLCertVerificationError()
    return error


@pytest.mark.parametrize(
    "error",
    [
        aio_pika.exceptions.AuthenticationError("PLAIN"),
        aio_pika.exceptions.ConnectionClosed(541, "INTERNAL_ERROR"),
        aio_pika.exceptions.ConnectionClosed(),
        aio_pika.exceptions.IncompatibleProtocolError(),
        aio_pika.exceptions.ChannelClosed(320, "CONNECTION_FORCED"),
        rejected_certificate(),
        ValueError(),
        None,
    ],
    ids=repr,
)
def test_permanent_errors_of_aio_pika(error):
    assert not for_aio_pika.transient(error)


def test_a_timeout_of_aio_pika_is_transient():
    assert for_aio_pika.transient(TimeoutError())


def verify(host):
    raise NotImplementedError


class TestALockOfACeleryJob:
    def test_makes_another_process_wait_until_it_gives_up(self, broker):
        app = Celery(broker=broker.url)
        with virtual_time() as clock, exclusively(app, "job-7"):
            with exclusively(app, "job-8"):
                assert clock.sleeps == []
            with pytest.raises(ConfigError, match="no other process is changing"):
                exclusively(app, "job-7").__enter__()
            assert sum(clock.sleeps) == pytest.approx(10, abs=0.2)

    def test_lets_one_process_at_a_time_start_a_job(self, broker, tmp_path):
        app = Celery(broker=broker.url, backend=f"db+sqlite:///{tmp_path / 'results'}")
        app.conf.broker_transport_options = {"confirm_publish": True}
        options = {"base": DurableTask, "policy": Policy(), "name": "verify"}
        task = app.task(shared=False, **options)(verify)
        with virtual_time() as clock, exclusively(app, "job-7"):
            with pytest.raises(ConfigError, match="no other process is changing"):
                task.apply_async(["example.com"], task_id="job-7")
            assert sum(clock.sleeps) == pytest.approx(10, abs=0.2)
            task.apply_async(["example.com"], task_id="job-8")
        task.apply_async(["example.com"], task_id="job-7")
        assert status(app, "job-7").status == "waiting"

    def test_ends_with_its_block(self, broker):
        app = Celery(broker=broker.url)
        with virtual_time() as clock:
            for _ in range(2):
                with exclusively(app, "job-7"):
                    assert clock.sleeps == []
