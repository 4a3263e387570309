"""Loops that retry, and loops that look alike."""

import ast
from textwrap import dedent, indent

import pytest

from retrykit.audit._module import read_module
from retrykit.audit._project import Project

RETRIES = {
    "a counted loop with a delay that doubles": (
        """
        for attempt in range(4):
            try:
                return fetch()
            except ConnectionError:
                time.sleep(2 ** attempt)
        """,
        "4 calls; 1 s, 2 s, 4 s ..., no jitter, 7 s in all; retries ConnectionError",
    ),
    "a delay with a cap and jitter": (
        """
        for attempt in range(4):
            try:
                return fetch()
            except ConnectionError:
                time.sleep(min(2 ** attempt, 30) + random.random())
        """,
        (
            "4 calls; exponential delays at most 30 s, with jitter; "
            "retries ConnectionError"
        ),
    ),
    "a variable that is multiplied and capped": (
        """
        delay = 0.5
        while True:
            try:
                return fetch()
            except OSError as error:
                log.warning("%s", error)
            time.sleep(delay)
            delay = min(delay * 2, 60)
        """,
        (
            "calls without a limit; 500 ms, 1 s, 2 s ... at most 1 min, no jitter; "
            "retries OSError"
        ),
    ),
    "a variable that is multiplied in place": (
        """
        pause = 1
        for _ in range(3):
            try:
                fetch()
                break
            except (OSError, TimeoutError):
                time.sleep(pause)
                pause *= 3
        else:
            raise RuntimeError("no answer")
        """,
        (
            "3 calls; 1 s, 3 s, 9 s ..., no jitter, 4 s in all; retries OSError, "
            "TimeoutError"
        ),
    ),
    "a counter that is compared in the handler": (
        """
        failures = 0
        while True:
            try:
                return fetch()
            except OSError:
                failures += 1
                if failures >= 5:
                    raise
                time.sleep(1)
        """,
        "5 calls; 1 s, no jitter, 4 s in all; retries OSError",
    ),
    "a counter in the condition that begins at one": (
        """
        attempt = 1
        while attempt <= 3:
            try:
                return fetch()
            except OSError:
                attempt += 1
        raise Unavailable
        """,
        "3 calls; no delay; retries OSError",
    ),
    "a counter that is counted down": (
        """
        retries = 3
        while retries > 0:
            try:
                return fetch()
            except OSError:
                retries -= 1
                time.sleep(0.1)
        """,
        "? calls; 100 ms, no jitter; retries OSError",
    ),
    "a deadline": (
        """
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                return fetch()
            except OSError:
                time.sleep(1)
        """,
        "for ? s; 1 s, no jitter; retries OSError",
    ),
    "a flag that a success sets": (
        """
        done = False
        while not done:
            try:
                fetch()
                done = True
            except OSError:
                time.sleep(1)
        """,
        "calls without a limit; 1 s, no jitter; retries OSError",
    ),
    "a list of delays": (
        """
        for delay in (1, 5, 25):
            try:
                return fetch()
            except OSError:
                time.sleep(delay)
        """,
        "3 calls; delays: ?, no jitter; retries OSError",
    ),
    "delays in equal steps": (
        """
        for attempt in range(1, 5):
            try:
                return fetch()
            except OSError:
                time.sleep(5 * attempt)
        """,
        "4 calls; 5 s, 10 s, 15 s ..., no jitter, 30 s in all; retries OSError",
    ),
    "a limit that is a setting": (
        """
        for attempt in range(settings.RETRIES):
            try:
                return fetch()
            except OSError:
                time.sleep(settings.PAUSE)
        """,
        "? calls; constant delays, no jitter; retries OSError",
    ),
    "every error, of which some are let through": (
        """
        for attempt in range(3):
            try:
                return fetch()
            except Exception as error:
                if not is_transient(error):
                    raise
                time.sleep(1)
        """,
        "3 calls; 1 s, no jitter, 2 s in all; retries ?",
    ),
    "every error": (
        """
        for attempt in range(3):
            try:
                return fetch()
            except:
                pass
        """,
        "3 calls; no delay; retries BaseException",
    ),
    "a result that is not good": (
        """
        for attempt in range(3):
            response = fetch()
            if response.ok:
                return response
            time.sleep(1)
        """,
        "3 calls; 1 s, no jitter, 2 s in all; retries results",
    ),
    "a coroutine": (
        """
        for attempt in range(3):
            try:
                return await fetch()
            except OSError:
                await asyncio.sleep(1)
        """,
        "3 calls; 1 s, no jitter, 2 s in all; retries OSError",
    ),
    "an event that is waited for instead of a sleep": (
        """
        while not stop_event.is_set():
            try:
                return fetch()
            except OSError:
                stop_event.wait(5)
        """,
        "? calls; 5 s, no jitter; retries OSError",
    ),
    "a helper that sleeps": (
        """
        for attempt in range(3):
            try:
                return fetch()
            except OSError:
                self._backoff(attempt)
        """,
        "3 calls; delays: ?, jitter: ?; retries OSError",
    ),
    "a connection that is made until it stands": (
        """
        while True:
            try:
                self.connection = connect()
                break
            except OSError:
                time.sleep(5)
        """,
        "calls without a limit; 5 s, no jitter; retries OSError",
    ),
}

RETRIES |= {
    "a counter of a for loop that is compared with the last turn": (
        """
        for attempt in range(5):
            try:
                return fetch()
            except OSError:
                if attempt == 4:
                    raise
                time.sleep(1)
        """,
        "5 calls; 1 s, no jitter, 4 s in all; retries OSError",
    ),
    "a counter of a for loop that ends it early": (
        """
        for attempt in range(10):
            try:
                return fetch()
            except OSError:
                if attempt + 1 >= 3:
                    raise
                time.sleep(1)
        """,
        "3 calls; 1 s, no jitter, 2 s in all; retries OSError",
    ),
    "a counter of a for loop without an end": (
        """
        for attempt in itertools.count():
            try:
                return fetch()
            except OSError:
                if 2 < attempt:
                    raise
                time.sleep(1)
        """,
        "4 calls; 1 s, no jitter, 3 s in all; retries OSError",
    ),
    "a chain that never ends": (
        """
        for delay in itertools.chain(range(10), itertools.repeat(30)):
            try:
                return fetch()
            except OSError:
                time.sleep(delay)
        """,
        "calls without a limit; delays: ?, jitter: ?; retries OSError",
    ),
    "a limit that nothing approaches": (
        """
        failures = 0
        while True:
            try:
                return fetch()
            except OSError:
                if failures > 3:
                    raise
                time.sleep(1)
        """,
        "calls without a limit; 1 s, no jitter; retries OSError",
    ),
    "a limit that a function may approach": (
        """
        failures = 0
        while failures < 3:
            try:
                return fetch()
            except OSError:
                count_failure()
                time.sleep(1)
        """,
        "3 calls; 1 s, no jitter, 2 s in all; retries OSError",
    ),
    "a handler that does not count": (
        """
        attempt = 0
        while attempt <= max_attempts:
            try:
                return fetch()
            except RateLimited:
                time.sleep(1)
            except OSError:
                attempt += 1
                time.sleep(1)
        """,
        "calls without a limit; 1 s, no jitter; retries RateLimited, OSError",
    ),
    "a handler that goes on once": (
        """
        attempt = 0
        renewed = False
        while True:
            try:
                return fetch()
            except AuthError:
                if renewed:
                    raise
                renewed = renew()
            except OSError:
                attempt += 1
                if attempt >= 5:
                    raise
                time.sleep(1)
        """,
        "5 calls; 1 s, no jitter, 4 s in all; retries AuthError, OSError",
    ),
    "a test that has a name": (
        """
        attempt = 0
        while True:
            is_last = attempt >= limit
            try:
                return fetch()
            except OSError:
                if is_last:
                    raise
            attempt += 1
            time.sleep(1)
        """,
        "? calls; 1 s, no jitter; retries OSError",
    ),
    "a counter that is asserted": (
        """
        count = 10
        while True:
            try:
                return fetch()
            except OSError:
                assert count > 0
                time.sleep(1)
                count -= 1
        """,
        "? calls; 1 s, no jitter; retries OSError",
    ),
    "a flag that ends the program": (
        """
        while not self.closed:
            try:
                return fetch()
            except OSError:
                time.sleep(1)
        """,
        "calls without a limit; 1 s, no jitter; retries OSError",
    ),
    "an error that is looked at after the handler": (
        """
        for attempt in range(3):
            try:
                return fetch()
            except Exception as error:
                last = error
            if not is_transient(last):
                raise last
            time.sleep(1)
        """,
        "3 calls; 1 s, no jitter, 2 s in all; retries ?",
    ),
    "an error that is given to a function that decides": (
        """
        for attempt in range(3):
            try:
                return fetch()
            except Exception as error:
                time.sleep(_retry_error_helper(error))
        """,
        "3 calls; delays: ?, jitter: ?; retries ?",
    ),
    "another handler that looks at its error": (
        """
        for attempt in range(3):
            try:
                return fetch()
            except KnownError as error:
                if error.fatal:
                    raise
            except Exception:
                pass
            time.sleep(1)
        """,
        "3 calls; 1 s, no jitter, 2 s in all; retries KnownError, Exception",
    ),
    "a setting that holds delays": (
        """
        for delay in DELAYS:
            try:
                return fetch()
            except OSError:
                time.sleep(delay)
        """,
        "? calls; delays: ?, no jitter; retries OSError",
    ),
    "a service that is asked, not a person": (
        """
        for attempt in range(3):
            try:
                return sdk.ask()
            except OSError:
                time.sleep(1)
        """,
        "3 calls; 1 s, no jitter, 2 s in all; retries OSError",
    ),
    "a clean-up that may fail before each attempt": (
        """
        attempts = 0
        while True:
            attempts += 1
            try:
                clean_up()
            except Exception:
                log.exception("not clean")
            try:
                fetch()
                break
            except TimeoutError:
                if attempts >= 3:
                    raise
        """,
        "3 calls; no delay; retries TimeoutError",
    ),
    "an import that is repeated": (
        """
        for attempt in range(retries):
            try:
                return import_module(name)
            except KeyError:
                clear(name)
        """,
        "? calls; no delay; retries KeyError",
    ),
}
OTHERS = {
    "a stream that is read until it ends": """
        failures = 0
        while failures < 5:
            try:
                with connect() as stream:
                    failures = 0
                    for line in stream:
                        handle(line)
                    if stopped:
                        break
            except OSError:
                failures += 1
                time.sleep(1)
        """,
    "a connection that serves": """
        while attempts < 5:
            try:
                socket = connect()
                while True:
                    socket.poll()
            except OSError:
                if not reconnect:
                    break
                attempts += 1
                time.sleep(1)
            except Done:
                return
        """,
    "a poll of a job whose requests are retried": """
        retries = 0
        while True:
            try:
                details = get_details()
            except OSError:
                retries += 1
                if retries > 10:
                    raise
                time.sleep(1)
                continue
            if details.status == Status.RUNNING:
                time.sleep(1)
                continue
            return details
        """,
    "a poll of a volume": """
        for attempt in range(10):
            if volume.status() != "creating":
                return volume
            time.sleep(1)
        """,
    "a poll of a file": """
        for attempt in range(10):
            try:
                with open(path) as file:
                    return json.load(file)
            except (OSError, ValueError):
                time.sleep(1)
        """,
    "a poll of a lock": """
        for attempt in range(10):
            try:
                return lock.acquire()
            except LockTimeout:
                time.sleep(1)
        """,
    "a poll of the health of a server": """
        for attempt in range(10):
            try:
                client.cluster.health()
                return client
            except OSError:
                time.sleep(1)
        """,
    "a person who types a wrong password": """
        for attempt in range(3):
            try:
                return log_in(password())
            except LoginError:
                print("Wrong password.")
        """,
    "a task of several": """
        for attempt in asyncio.as_completed(tasks):
            try:
                return attempt.result()
            except OSError:
                pass
        """,
    "a number that another writer has taken": """
        for attempt in range(3):
            try:
                return create(next_version())
            except StoreError as error:
                if error.code != ALREADY_EXISTS:
                    raise
        """,
    "a commit on a parent that was read": """
        for attempt in range(3):
            parent = head()
            try:
                return commit(parent_commit=parent)
            except StoreError:
                time.sleep(1)
        """,
    "an error that says what to send": """
        for attempt in range(3):
            try:
                return call(request)
            except Redirect as error:
                request["data"] = look_up(error)
        """,
    "a worker": """
        while True:
            try:
                job = queue.get()
                process(job)
            except Exception:
                log.exception("failed")
                time.sleep(1)
        """,
    "a worker with a way out": """
        while self.running:
            try:
                message = receive()
                if message is None:
                    break
                handle(message)
            except OSError:
                time.sleep(1)
        """,
    "a poll": """
        while True:
            status = get_status()
            if status == "done":
                return status
            time.sleep(1)
        """,
    "a poll that begins before there is something": """
        while True:
            try:
                job = get_job()
            except NotFound:
                job = None
            if job is not None and job.state == "done":
                return job
            time.sleep(1)
        """,
    "the next item after one that failed": """
        for item in items:
            try:
                process(item)
            except ValueError:
                continue
        """,
    "the next server": """
        for host in hosts:
            try:
                return connect(host)
            except OSError:
                log.warning("attempt to connect failed, trying the next one")
        """,
    "the next port": """
        for i in range(100):
            port = first + i
            try:
                return bind(port)
            except OSError:
                pass
        """,
    "the next encoding": """
        for encoding in ("utf-8", "latin-1"):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                continue
        """,
    "pages": """
        while cursor:
            try:
                page = fetch(cursor)
            except NotFound:
                break
            items.extend(page.items)
            cursor = page.next
        """,
    "compare and set": """
        while True:
            try:
                pipe.watch(key)
                pipe.execute()
                break
            except WatchError:
                continue
        """,
    "a question to a person": """
        while True:
            try:
                return int(input("how many? "))
            except ValueError:
                print("a number, please; try again")
        """,
    "a larger buffer": """
        while True:
            try:
                return read(size)
            except BufferTooSmall:
                size *= 2
        """,
    "a queue that is empty for a while": """
        while True:
            try:
                return queue.get(timeout=1)
            except Empty:
                continue
        """,
    "an iterator": """
        while True:
            try:
                item = next(iterator)
            except StopIteration:
                break
            process(item)
        """,
    "a generator of what arrives": """
        while True:
            try:
                message = receive()
            except OSError:
                attempt += 1
                time.sleep(1)
                continue
            attempt = 0
            if message is None:
                return
            yield message
        """,
    "a heartbeat": """
        while True:
            try:
                beat()
            except OSError:
                log.warning("no heartbeat")
            time.sleep(10)
        """,
}


def loops(source, *, name="fetch_it", is_async=False):
    """Return the loops that retry in the body of a function."""
    body = indent(dedent(source).strip(), "    ")
    kind = "async def" if is_async else "def"
    text = f"import asyncio, random, time\n{kind} {name}():\n{body}\n"
    project = Project([read_module(ast.parse(text), "m.py", "m", "")])
    return [each for each in project.sites() if each.library == "loop"]


@pytest.mark.parametrize(("source", "expected"), RETRIES.values(), ids=RETRIES)
def test_a_loop_that_retries_is_found(source, expected):
    [site] = loops(source, is_async="await" in source)
    assert str(site.behavior) == expected


@pytest.mark.parametrize("source", OTHERS.values(), ids=OTHERS)
def test_a_loop_that_looks_alike_is_none(source):
    assert loops(source) == []


@pytest.mark.parametrize(
    "name", ["wait_for_server", "_poll", "wait_until_ready", "_waitForServer"]
)
def test_a_function_that_waits_for_something_polls(name):
    source = """
        for _ in range(30):
            try:
                return ping()
            except OSError:
                time.sleep(1)
        """
    assert loops(source, name=name) == []
    assert len(loops(source)) == 1


ENDINGS = {
    "raises": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError:
                if attempt == 2:
                    raise
        """,
    "raises another error from it": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError as error:
                last = error
        raise Unavailable from last
        """,
    "falls through": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError:
                pass
        """,
    "returns None": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError:
                pass
        log.error("no answer")
        return None
        """,
    "raises an error that knows nothing": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError:
                pass
        raise Unavailable("no answer")
        """,
    "returns the error": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError as error:
                last = error
        return last
        """,
    "raises for some errors alone": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError as error:
                if error.errno != EAGAIN:
                    raise
        raise Unavailable("no answer")
        """,
    "raises what the attempt found": """
        for attempt in range(3):
            try:
                if broken():
                    raise Broken
                return fetch()
            except OSError:
                pass
        return []
        """,
    "raises for some errors and after the last": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError as error:
                if error.errno == EAGAIN:
                    if attempt == 2:
                        raise
        """,
    "returns what is no number": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError:
                pass
        return float("nan")
        """,
    "tells and goes on": """
        for attempt in range(3):
            try:
                fetch()
                break
            except OSError:
                pass
        else:
            print("no answer")
        go_on()
        """,
    "never ends": """
        while True:
            try:
                return fetch()
            except OSError:
                time.sleep(1)
        """,
}
EXPECTED = ["raises", "raises", "hidden", "hidden", "hidden", "raises"]
EXPECTED += ["hidden", "hidden", "raises", "hidden", "hidden", "?"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [*zip(ENDINGS.values(), EXPECTED, strict=True)],
    ids=ENDINGS,
)
def test_what_happens_to_the_last_error(source, expected):
    [site] = loops(source)
    assert site.behavior.ending == expected


def test_a_blocking_sleep_in_a_coroutine_is_found():
    source = """
        for attempt in range(3):
            try:
                return await fetch()
            except OSError:
                time.sleep(1)
        """
    [site] = loops(source, is_async=True)
    assert site.blocking == 7
    [site] = loops(source.replace("await ", ""))
    assert site.blocking == 0


SWALLOWING = [
    ("except BaseException:", True),
    ("except:", True),
    ("except asyncio.CancelledError:", True),
    ("except Exception:", False),
    ("except KeyboardInterrupt:\n            raise\n        except:", False),
]


@pytest.mark.parametrize(("clause", "expected"), SWALLOWING)
def test_a_cancellation_that_is_retried_is_found(clause, expected):
    source = f"""
    for attempt in range(3):
        try:
            return fetch()
        {clause}
            time.sleep(1)
    """
    [site] = loops(source)
    assert site.behavior.swallows == expected


def test_a_block_that_limits_the_time_limits_a_loop():
    source = """
        async with asyncio.timeout(10):
            while True:
                try:
                    return await fetch()
                except OSError:
                    await asyncio.sleep(1)
        """
    [site] = loops(source, is_async=True)
    assert str(site.behavior).startswith("for ? s")
