"""Loops that retry, and loops that look alike."""

import ast
import math
from textwrap import dedent, indent

import pytest

from retrykit.audit._module_reader import read_module
from retrykit.audit._project import Project
from retrykit.audit._rules import RULES, check_site

RETRIES = {
    "a counted loop with a delay that doubles": (
        """
        for attempt in range(4):
            try:
                return fetch()
            except ConnectionError:
                time.sleep(2 ** attempt)
        """,
        "4 calls; 1 s, 2 s, 4 s, no jitter, 7 s in all; retries ConnectionError",
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
        ("3 calls; 1 s, 3 s, no jitter, 4 s in all; retries OSError, TimeoutError"),
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
        "3 calls; 100 ms, no jitter, 200 ms in all; retries OSError",
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
        "3 calls; 1 s, 5 s, no jitter, 6 s in all; retries OSError",
    ),
    "delays in equal steps": (
        """
        for attempt in range(1, 5):
            try:
                return fetch()
            except OSError:
                time.sleep(5 * attempt)
        """,
        "4 calls; 5 s, 10 s, 15 s, no jitter, 30 s in all; retries OSError",
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
        "calls without a limit; 5 s, no jitter; retries OSError",
    ),
    "a helper that sleeps": (
        """
        for attempt in range(3):
            try:
                return fetch()
            except OSError:
                self._backoff(attempt)
        """,
        "3 calls; delays: ?; retries OSError",
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
        "calls without a limit; delays: ?; retries OSError",
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
        "3 calls; delays: ?; retries ?",
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
        "3 calls; 1 s, no jitter, 2 s in all; retries ?",
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
        "3 calls; delays: ?; retries TimeoutError",
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
    "a terminal that is opened again": """
        retries = 0
        while True:
            try:
                terminal = open_terminal()
                retries = 0
                terminal.join(True)
                return
            except OSError:
                retries += 1
                time.sleep(retries / 2)
        """,
    "protocols, until none is left": """
        success = False
        while not success and len(protocols):
            protocol = protocols.pop()
            scheme = protocol["scheme"]
            try:
                upload(scheme)
                success = True
            except OSError:
                log.warning("attempt failed")
        """,
    "earlier and earlier dates": """
        tries = 30
        while tries > 0:
            name = find_name(date)
            try:
                download(name)
                tries = 0
            except NotFound:
                tries -= 1
                date = date - timedelta(1)
        """,
    "a buffer of the size that the error tells": """
        retries = 1
        while True:
            try:
                return request(b" " * size)
            except MoreData as error:
                if retries > 1:
                    raise
                size = error.get_size()
        """,
    "other flags": """
        tries = 0
        while tries < 2:
            send(packet)
            try:
                return receive()
            except ServerError:
                packet["flags"] |= MORE
            tries += 1
        """,
    "another port, by the state of a program": """
        for attempt in range(3):
            port = random.randint(1024, 65534)
            program = start(port)
            time.sleep(2)
            if program.poll() is None:
                break
        """,
    "as many results as are expected": """
        attempts = 0
        while len(results) < 1:
            time.sleep(0.1)
            attempts += 1
            if attempts == 1200:
                break
        """,
    "data of a socket, by the number of its error": """
        while True:
            if time.time() - start > timeout:
                raise TimeoutError
            try:
                return peer.recv(1024)
            except OSError as error:
                if error.errno == 11:
                    time.sleep(0.001)
                else:
                    raise
        """,
    "functions that are tried in turn": """
        for attempt in [from_history, from_name, from_folder]:
            try:
                return attempt()
            except NotFound:
                continue
        """,
    "a program that runs until it is told to stop": """
        while not exit_event.is_set():
            try:
                run(exit_event)
            except Exception as error:
                log.exception("restarting after %s", error)
                time.sleep(1)
                continue
            break
        """,
    "work from a queue": """
        while True:
            done, call = self._queue.get()
            try:
                done(call())
            except Exception as error:
                if self._give_up(error):
                    break
                continue
            if done.last:
                break
        """,
    "a port that is free, by a longer name": """
        for attempt in range(max_attempts):
            to_port = self._get_free_udp_port()
            try:
                return create(to_port)
            except PortInUse:
                log.debug("trying the next one")
        """,
    "another source, which a method opens": """
        while True:
            try:
                return next(self.source.parts)
            except ChunkReadTimeout:
                if not self._replace_source("(retrying)"):
                    raise
        """,
    "a query with other columns": """
        attempts = 5
        while attempts:
            attempts -= 1
            try:
                return query(connection, without)
            except OperationalError as error:
                if not attempts:
                    raise
                without.update(missing(error))
        """,
    "a write, by the version of what was written": """
        for _ in range(4):
            try:
                update(data)
                return
            except Aborted as error:
                if find_etag(error) != known:
                    self.sync()
                    continue
                raise
        """,
    "a question to a person, in a function of its own": """
        attempts = 0
        while attempts < 5:
            attempts += 1
            try:
                return parse(ask_for_number("How many?"))
            except RangeError:
                show("too many")
        """,
    "a prompt of a library": """
        while True:
            try:
                return parse(click.prompt("How many attempts?"))
            except RangeError:
                pass
        """,
    "a confirmation, again until it is valid": """
        tries = 0
        while True:
            answer = Prompt.ask("Go on?")
            tries += 1
            if answer in CHOICES:
                return answer
            time.sleep(0.1)
        """,
    "a result that another thread puts": """
        while True:
            try:
                return work.result(timeout=1)
            except FutureTimeoutError:
                log.debug("internal retry")
        """,
    "an item of a queue": """
        for attempt in range(10):
            try:
                return inbox.get(timeout=1)
            except TimedOut:
                pass
        """,
    "a result for which a client waits until a deadline": """
        while True:
            try:
                return self._get(ids, short_timeout)
            except GetTimeoutError:
                if time.monotonic() > deadline:
                    raise
        """,
    "data of a socket": """
        for attempt in range(attempts):
            try:
                return peer.recv(1024)
            except BlockingIOError:
                time.sleep(0.1)
            except socket.timeout:
                pass
        """,
    "other servers, with their numbers": """
        for attempt, server in enumerate(servers, start=1):
            address = find_address(server)
            try:
                return fetch(address)
            except OSError:
                if attempt == len(servers):
                    raise
                log.warning("Retrying")
        """,
    "other keys, of which each turn makes one": """
        for i in range(600):
            key, place = make_key(i)
            if not free(key):
                continue
            try:
                create(key)
            except ServiceError as error:
                if error.code != "Duplicate":
                    raise
                continue
            break
        """,
    "larger and larger parts of data": """
        for start in reversed(range(0, end, 100)):
            download(start, end)
            try:
                check(data)
            except BadFormat:
                pass
            else:
                break
        """,
    "another port that is free": """
        server = None
        retries = 0
        while server is None and retries < 5:
            port = find_free_port()
            try:
                server = start_server(port=port)
            except CannotBind:
                pass
            retries += 1
        """,
    "another name for a file": """
        retry = 0
        while retry < 5:
            name = tempfile.mktemp(dir=folder)
            try:
                os.symlink(source, name)
                break
            except OSError:
                retry += 1
        """,
    "the next port, which is an attribute": """
        for i in range(self.port_retries):
            try:
                return listen(self.host, self.port)
            except OSError:
                self.port += 1
        """,
    "the next zone, by its index": """
        for attempt in range(1, tries + 1):
            try:
                zone = zones[index % len(zones)]
                return create(zone)
            except NoCapacity:
                index += 1
        """,
    "the next host, which a method finds": """
        for i in range(self.retries):
            try:
                return self.send(self.host)
            except ConnectionError:
                self._next_host()
        """,
    "a lock that another one has": """
        while True:
            try:
                lock.acquire(timeout=0)
                return
            except TimeoutError:
                await asyncio.sleep(0.1)
        """,
    "a lock, by its error": """
        while time.time() - start < 5:
            try:
                return repository.checkout()
            except GitLockError:
                time.sleep(0.1)
        """,
    "a condition that is not there yet": """
        ready = False
        while not ready:
            try:
                ready = is_up(get_states())
            except Exception:
                pass
            time.sleep(0.2)
        """,
    "a program that starts": """
        while True:
            try:
                return connect()
            except ConnectionError:
                if process.poll() is not None:
                    raise Ended from None
                time.sleep(0.1)
        """,
    "a command that asks for health": """
        while True:
            try:
                subprocess.check_call(["tool", "health-check"])
                break
            except CalledProcessError:
                time.sleep(5)
        """,
    "a poll by its counter": """
        polls = 0
        while True:
            try:
                return find_actor()
            except Unavailable:
                polls += 1
                time.sleep(5)
        """,
    "a counter that begins again in each turn": """
        while True:
            tries = 0
            try:
                state = read()
            except UnpackError:
                if tries > 10:
                    return
                tries += 1
                time.sleep(1)
                continue
            if state.paused:
                time.sleep(1)
            else:
                return
        """,
    "a state that is compared": """
        retry_count = 0
        while True:
            status = get_status()
            if status == "rst/exec":
                time.sleep(find_interval(retry_count))
                retry_count += 1
            elif status == "snap/active":
                break
            else:
                raise Failed
        """,
    "a machine of states": """
        failed_attempts = 0
        while True:
            match self.state:
                case State.WAITING:
                    sleep(failed_attempts)
                    failed_attempts += 1
                    self.state = State.CONNECTING
                case State.CONNECTING:
                    if connect():
                        return
        """,
    "a file that appears": """
        tries = 0
        while not os.path.exists(path):
            tries += 1
            if tries > 60:
                break
            time.sleep(1)
        """,
    "tries in an inner loop": """
        while True:
            tries = 0
            while not data and tries < 5:
                tries += 1
                data = accept()
                time.sleep(0.1)
            if handle(data):
                break
        """,
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
    "name", ["wait", "wait_for_server", "_poll", "wait_until_ready", "_waitForServer"]
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


CHECKS = """
    attempts = 3
    while attempts > 0:
        attempts -= 1
        if name in names():
            return True
        time.sleep(1)
    return False
    """


@pytest.mark.parametrize(("name", "expected"), [("_check_volume", 0), ("create", 1)])
def test_a_function_that_checks_something_polls(name, expected):
    assert len(loops(CHECKS, name=name)) == expected


def test_a_thread_that_is_stopped_by_an_event_does_not_retry():
    source = """
        attempts = 0
        while True:
            stop_event.wait(5)
            try:
                return find_server()
            except Unreachable:
                attempts += 1
        """
    assert loops(source, name="reconnect_loop") == []
    assert len(loops(source)) == 1


LIMITS = {
    "an event of another object, which stops the program": (
        """
        while not self.scan.stopped:
            try:
                self.send()
                break
            except OSError:
                log.warning("retrying")
                time.sleep(1)
        """,
        "calls without a limit; 1 s, no jitter; retries OSError",
    ),
    "a result that is made from the error": (
        """
        for attempt in range(3):
            try:
                answer = send()
            except OSError as error:
                answer = Answer(error)
            if is_good(answer):
                return answer
        """,
        "3 calls; no delay; retries OSError",
    ),
    "a way that is taken once, beside one that is not": (
        """
        once = True
        while True:
            try:
                return read()
            except OSError as error:
                if error.errno == EBUSY:
                    time.sleep(3)
                elif once:
                    time.sleep(3)
                    once = False
                else:
                    raise
        """,
        "calls without a limit; 3 s, no jitter; retries OSError",
    ),
    "a path that is joined within the attempt": (
        """
        for attempt in range(3):
            try:
                return read(os.path.join(folder, name))
            except OSError:
                pass
        """,
        "3 calls; no delay; retries OSError",
    ),
    "a function that decides": (
        """
        while True:
            try:
                return send()
            except OSError:
                log.debug("retrying")
                if not self._has_budget():
                    raise
        """,
        "? calls; no delay; retries OSError",
    ),
    "an event that is asked for": (
        """
        while True:
            try:
                return send()
            except OSError:
                log.debug("retrying")
                if self.stop.is_set():
                    raise
        """,
        "calls without a limit; no delay; retries OSError",
    ),
    "time that is left": (
        """
        waited, delay = 0.0, 1.0
        while True:
            try:
                return send()
            except OSError:
                delay = min(delay, max_wait_seconds - waited)
                if delay <= 0:
                    raise
                time.sleep(delay)
                waited += delay
        """,
        "for ? s; exponential delays, no jitter; retries OSError",
    ),
    "a way that is taken once, and then what follows": (
        """
        once = True
        while True:
            try:
                send()
            except NotFound as error:
                if error.code == 404:
                    if once:
                        log.debug("retrying")
                        once = False
                        continue
                    log.error("not found, even now")
                else:
                    raise
            break
        """,
        "2 calls; no delay; retries NotFound",
    ),
    "a sleep by another name": (
        """
        while True:
            try:
                return send()
            except OSError:
                yield asyncSleep(self.retry_delay)
        """,
        "calls without a limit; constant delays, no jitter; retries OSError",
    ),
    "a number of attempts of two": (
        """
        attempts = 2 if again else 1
        for attempt in range(attempts):
            try:
                return send()
            except OSError:
                if attempt == attempts - 1:
                    raise
        """,
        "2 calls; no delay; retries OSError",
    ),
    "a function that is given a delay": (
        """
        for attempt in range(5):
            try:
                return send()
            except OSError:
                backoff = find_backoff(attempt)
                wait_for_disconnect(device, backoff)
        """,
        "5 calls; delays: ?; retries OSError",
    ),
    "a function that is given a delay by its name": (
        """
        for attempt in range(5):
            try:
                return send()
            except OSError as error:
                close(error, sleep_sec=5)
        """,
        "5 calls; delays: ?; retries OSError",
    ),
    "a function that is given something else by its name": (
        """
        for attempt in range(5):
            try:
                return send()
            except OSError as error:
                close(error, level=5)
        """,
        "5 calls; no delay; retries OSError",
    ),
    "a connection that another part of the program makes": (
        """
        for attempt in range(5):
            link = await self.when_connected()
            try:
                return link.send()
            except OSError:
                log.info("sending again")
        """,
        "5 calls; delays: ?; retries OSError",
    ),
    "a connection that is there": (
        """
        for attempt in range(5):
            link = self.get_connection()
            try:
                return link.send()
            except OSError:
                log.info("sending again")
        """,
        "5 calls; no delay; retries OSError",
    ),
    "a request that is sent again after a timeout": (
        """
        for attempt in range(5):
            self.send_request(data)
            try:
                return await asyncio.wait_for(answer, timeout=1)
            except TimeoutError:
                pass
        """,
        "5 calls; no delay; retries TimeoutError",
    ),
    "a sleep whose length is computed within the attempt": (
        """
        for retry in range(4):
            try:
                seconds = random.uniform(0, 2 * retry)
                time.sleep(seconds)
                return send()
            except OSError:
                pass
        """,
        "4 calls; 0 s, 2 s, 4 s, with jitter, 6 s in all; retries OSError",
    ),
    "a way that is taken once": (
        """
        renewed = False
        while True:
            try:
                return send()
            except Expired:
                log.debug("retrying")
                if renewed:
                    raise
                renewed = True
        """,
        "2 calls; no delay; retries Expired",
    ),
    "a way that is taken once after each success": (
        """
        retried = False
        while True:
            try:
                return send()
            except Broken:
                log.debug("retrying")
                if restarted():
                    retried = False
                    continue
                if not retried:
                    retried = True
                    continue
                raise
        """,
        "? calls; delays: ?; retries Broken",
    ),
    "two calls, counted down": (
        """
        tries_left = 2
        while tries_left > 0:
            try:
                return send()
            except OSError:
                tries_left -= 1
                login()
        """,
        "2 calls; delays: ?; retries OSError",
    ),
    "counted down to one": (
        """
        tries_left = 4
        while tries_left >= 2:
            try:
                return send()
            except OSError:
                tries_left -= 1
        """,
        "3 calls; no delay; retries OSError",
    ),
    "an event that stops a program": (
        """
        while not self._shutting_down:
            try:
                return send()
            except OSError:
                await asyncio.sleep(1)
        """,
        "calls without a limit; 1 s, no jitter; retries OSError",
    ),
    "an error whose name has to do with time": (
        """
        while True:
            try:
                return send()
            except RpcError as error:
                if error.code() in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED):
                    time.sleep(2)
                    continue
                raise
        """,
        "calls without a limit; 2 s, no jitter; retries RpcError",
    ),
    "a function that makes delays random": (
        """
        for n in range(5):
            if n > 0:
                self._sleep(self._rand() * 2 ** n)
            try:
                return send()
            except OSError:
                pass
        """,
        "5 calls; exponential delays, with jitter; retries OSError",
    ),
    "an object that counts and sleeps": (
        """
        for attempt in RetryManager(3):
            try:
                return send()
            except OSError as error:
                attempt.error = error
        """,
        "? calls; delays: ?; retries OSError",
    ),
    "an iterator that sleeps": (
        """
        while True:
            try:
                return send()
            except OSError:
                log.debug("retrying")
                next(retries)
        """,
        "? calls; delays: ?; retries OSError",
    ),
    "a sleep of its own, in milliseconds": (
        """
        for attempt in range(3):
            try:
                return send()
            except OSError:
                exchange.sleep((attempt + 1) * 1000)
        """,
        "3 calls; linear delays, no jitter; retries OSError",
    ),
    "a sleep of its own, which is given something else": (
        """
        for attempt in range(3):
            try:
                return send()
            except OSError:
                self.sleep(settings, transport)
        """,
        "3 calls; delays: ?; retries OSError",
    ),
    "a sleep within the attempt": (
        """
        tries = 0
        while True:
            tries += 1
            if tries > 10:
                break
            try:
                os.rename(one, other)
                time.sleep(1)
                os.rename(other, one)
                break
            except OSError:
                continue
        """,
        "11 calls; no delay; retries OSError",
    ),
}


@pytest.mark.parametrize(("source", "expected"), LIMITS.values(), ids=LIMITS)
def test_limits_and_delays_that_are_not_plain_are_read(source, expected):
    [site] = loops(source, is_async="await" in source)
    assert str(site.behavior) == expected


def only(source):
    """Return the only site of a module."""
    text = f"import time\n{dedent(source)}"
    project = Project([read_module(ast.parse(text), "m.py", "m", "")])
    [site] = project.sites()
    return site


def module(source):
    """Return what the only loop of a module does."""
    return str(only(source).behavior)


def test_a_success_that_tells_that_something_is_ready_ends_a_poll():
    source = """
        retries = 0
        while retries < 9:
            try:
                search(index)
                log.info("Index %s is ready", index)
                return
            except Exception:
                retries += 1
                time.sleep(1)
        """
    assert loops(source) == []
    assert len(loops(source.replace("is ready", "was searched"))) == 1


RESULTS = {
    "by its status, without a delay": (
        """
        for attempt in range(4):
            response = post(url)
            if response.status_code < 300:
                break
            log.info("failed")
        """,
        "4 calls; no delay; retries results",
    ),
    "by what it holds, asked for again": (
        """
        tries = 0
        response = get(url)
        while "message" in response:
            if tries >= 3:
                return None
            tries += 1
            response = get(url)
        return response
        """,
        "3 calls; no delay; retries results",
    ),
    "by a flag that a function returns": (
        """
        for attempt in range(3):
            succeeded, result, error = send()
            if succeeded:
                return result
            time.sleep(1)
        """,
        "3 calls; 1 s, no jitter, 2 s in all; retries results",
    ),
}


@pytest.mark.parametrize(("source", "expected"), RESULTS.values(), ids=RESULTS)
def test_results_are_retried(source, expected):
    [site] = loops(source)
    assert str(site.behavior) == expected


def test_a_bad_status_that_is_raised_is_not_retried():
    source = """
        for attempt in range(4):
            response = post(url)
            if response.status_code == 200:
                return response
            else:
                raise Failed(response)
        """
    assert loops(source) == []


def test_a_helper_that_sleeps_makes_a_loop_over_results_retry():
    source = """
        def fetch():
            for attempt in range(4):
                response = post()
                if response.done:
                    return response
                handle(attempt)

        def handle(attempt):
            time.sleep(2)
        """
    assert module(source) == "4 calls; 2 s, no jitter, 6 s in all; retries results"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [("time.sleep(2)", "2 s, no jitter, 6 s in all"), ("log.info('bad')", "no delay")],
)
def test_a_function_whose_result_is_tested_may_sleep(statement, expected):
    source = f"""
        def fetch():
            for retry in range(max_retries):
                if works(retry):
                    break

        def works(retry):
            try:
                post()
                return True
            except OSError:
                {statement}
                return False

        max_retries = 4
        """
    assert module(source) == f"4 calls; {expected}; retries results"


SOME = {
    "ConnectionError": True,
    "TimeoutError": False,
    "InterruptedError": False,
    "TokenExpired": False,
}


@pytest.mark.parametrize(("error", "expected"), SOME.items(), ids=SOME)
@pytest.mark.parametrize("statement", ["continue", "log.info('again')", "reset()"])
def test_some_errors_are_retried_at_once(error, expected, statement):
    source = f"""
        for attempt in range(5):
            try:
                return send()
            except {error} as error:
                if attempt == 4:
                    raise Failed(str(error))
                {statement}
            except ServerError:
                time.sleep(1)
        """
    [site] = loops(source)
    assert site.behavior.some_at_once is (expected and statement != "reset()")


@pytest.mark.parametrize(("test", "found"), [("aborted", False), ("empty", True)])
def test_after_a_stop_no_error_is_retried_at_once(test, found):
    source = f"""
        for attempt in range(5):
            try:
                return send()
            except ConnectionError:
                if not self.{test}:
                    raise
            except ServerError:
                time.sleep(1)
        """
    [site] = loops(source)
    assert site.behavior.some_at_once is found


def test_no_error_is_retried_at_once_after_a_sleep_that_all_share():
    source = """
        for attempt in range(5):
            if attempt:
                time.sleep(1)
            try:
                return send()
            except ConnectionError:
                continue
        """
    [site] = loops(source)
    assert not site.behavior.some_at_once


USUAL = {
    "def send(limit=4)": 4,
    "def send(*, limit=4)": 4,
    "def send(first, limit=4, last=5)": 4,
    "def send(limit)": None,
    "def send(limit=None)": None,
    "def send(other)": None,
}


@pytest.mark.parametrize(("head", "expected"), USUAL.items(), ids=USUAL)
def test_the_usual_limit_is_the_default_of_a_parameter(head, expected):
    source = f"""
        {head}:
            for attempt in range(limit):
                try:
                    return fetch()
                except OSError:
                    time.sleep(2 ** attempt)
        """
    assert only(source).behavior.usual == expected


def test_the_usual_limit_is_what_replaces_none():
    source = """
        def send(limit=None):
            limit = limit or 4
            for attempt in range(limit):
                try:
                    return fetch()
                except OSError:
                    time.sleep(2 ** attempt)
        """
    assert only(source).behavior.usual == 4


def test_the_usual_limit_may_be_an_attribute():
    source = """
        class Client:
            def __init__(self, limit=4):
                self.limit = limit

            def fetch(self):
                attempt = 0
                while True:
                    try:
                        return self.send()
                    except OSError:
                        attempt += 1
                        if attempt >= self.limit:
                            raise
                        time.sleep(2 ** attempt)
        """
    assert only(source).behavior.usual == 4
    assert only(source.replace("limit=4", "limit")).behavior.usual is None


OTHERS_END = {
    "policy.exhausted()": "? calls",
    "not is_transient(error)": "calls without a limit",
    "stop_event.is_set()": "calls without a limit",
    "isinstance(error, Closed)": "calls without a limit",
}


@pytest.mark.parametrize(("test", "expected"), OTHERS_END.items(), ids=OTHERS_END)
def test_another_function_may_tell_when_to_give_up(test, expected):
    source = f"""
        while True:
            try:
                return send()
            except OSError as error:
                if {test}:
                    raise
                log.info("retrying")
                time.sleep(1)
        """
    [site] = loops(source)
    assert str(site.behavior) == f"{expected}; 1 s, no jitter; retries OSError"


def test_a_limit_of_one_retry_in_a_condition_of_several_parts():
    source = """
        retries = 0
        while True:
            try:
                return send()
            except OSError:
                if self.off or retries >= 1:
                    raise
                retries += 1
        """
    [site] = loops(source)
    assert site.behavior.calls == 2


@pytest.mark.parametrize(
    ("test", "calls"),
    [
        ("attempt == 1", 2),
        ("attempt == 1 and user is not None", 2),
        ("other == 1", math.inf),
        ("attempt == 1 or user is not None", None),
    ],
)
def test_an_error_may_be_retried_in_one_turn_only(test, calls):
    source = f"""
        attempt = 0
        while True:
            attempt += 1
            try:
                return send()
            except OSError as error:
                if error.errno == 7:
                    if {test}:
                        continue
                    else:
                        raise
                raise
        """
    [site] = loops(source)
    assert site.behavior.calls == calls


HIDDEN = {
    "only logs after a test": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError as error:
                last = error
        if attempt:
            log.error("failed: %s", last)
        """,
    "raises an error of another kind": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError:
                time.sleep(1)
            except Exception:
                raise
        log.error("failed")
        """,
    "returns False after a bad status": """
        for attempt in range(3):
            response = fetch()
            if response.status == 200:
                return True
            time.sleep(1)
        return False
        """,
}


@pytest.mark.parametrize("source", HIDDEN.values(), ids=HIDDEN)
def test_the_last_error_is_hidden(source):
    [site] = loops(source)
    assert site.behavior.ending == "hidden"


KNOWN = {
    "raises another error with its text": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError as error:
                last = error
        raise Failed(f"failed: {last}")
        """,
    "gives the error to another one": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError as error:
                last = error
        raise Failed(f"failed: {last}", last)
        """,
    "returns the last response": """
        for attempt in range(3):
            response = fetch()
            if response.status == 200:
                return True
            time.sleep(1)
        return response
        """,
    "raises after a bad status": """
        for attempt in range(3):
            response = fetch()
            if response.status == 200:
                return True
            if attempt == 2:
                raise Failed(response)
            time.sleep(1)
        return False
        """,
    "returns no more than whether it was done": """
        for attempt in range(3):
            if fetch():
                return True
            time.sleep(1)
        return False
        """,
}


@pytest.mark.parametrize("source", KNOWN.values(), ids=KNOWN)
def test_the_last_error_may_be_told(source):
    [site] = loops(source)
    assert site.behavior.ending == "?"


BROAD = {
    "except ParseError: raise": "?",
    "except ParseError as error: raise Failed from error": "?",
    "except OldError as e:\n                if e: return\n                raise": "?",
    "except Refused as e: log.error(e); return": "?",
    "except Refused as e: print(e); break": "?",
    "except Refused as e: notify(str(e)); return": "?",
    "except Refused as e: return Answer(400)": "?",
    "except Refused as e: log.debug(e); return": "Exception",
    "except NotFound: return None": "Exception",
    "except asyncio.CancelledError: raise": "Exception",
    "except KeyboardInterrupt: raise": "Exception",
}


@pytest.mark.parametrize(("handler", "retried"), BROAD.items(), ids=BROAD)
def test_a_handler_before_the_broad_one_sorts_errors_out(handler, retried):
    source = f"""
        for attempt in range(3):
            try:
                return send()
            {handler}
            except Exception:
                time.sleep(1)
        """
    [site] = loops(source)
    assert str(site.behavior).endswith(f"retries {retried}")


@pytest.mark.parametrize(
    ("test", "retried"), [('"locked" in text', "?"), ("attempt", "Exception")]
)
def test_the_error_that_is_handled_may_have_no_name(test, retried):
    source = f"""
        for attempt in (2, 1, 0):
            try:
                return send()
            except Exception:
                text = str(sys.exc_info()[1])
                if {test}:
                    time.sleep(1)
                    continue
                return False
        """
    [site] = loops(source)
    assert str(site.behavior).endswith(f"retries {retried}")


HELPERS = {
    "time.sleep(1)": "1 s, no jitter, 4 s in all",
    "time.sleep(self.delay)": "constant delays, no jitter",
    "time.sleep(2 ** attempt)": "exponential delays, no jitter",
    "time.sleep(number)": "0 s, 1 s, 2 s ..., no jitter, 6 s in all",
    "time.sleep(number + 1)": "delays: ?, no jitter",
    "time.sleep(random.random() * number)": "constant delays, with jitter",
    "self.pause(1)": "delays: ?",
    "while busy(): time.sleep(1)": "delays: ?",
    "print(error)": "no delay",
}


@pytest.mark.parametrize(("statement", "expected"), HELPERS.items(), ids=HELPERS)
def test_a_helper_that_sleeps_delays_the_next_attempt(statement, expected):
    source = f"""
        class Client:
            def fetch(self):
                for attempt in range(5):
                    try:
                        return self.send()
                    except OSError as error:
                        self.on_failure(error, number=attempt)

            def on_failure(self, error, number):
                {statement}

            def pause(self, seconds):
                time.sleep(seconds)
        """
    assert module(source) == f"5 calls; {expected}; retries OSError"


WAITS = {
    "stop_event.wait": "1 s, no jitter, 4 s in all",
    "limiter.pause": "delays: ?",
    "await session.renew": "delays: ?",
    "handle": "delays: ?",
    "cache.append": "no delay",
    "counter.reset": "no delay",
    "os.remove": "no delay",
    "print": "no delay",
}


@pytest.mark.parametrize(("function", "expected"), WAITS.items(), ids=WAITS)
def test_what_is_not_known_may_wait(function, expected):
    source = f"""
        for attempt in range(5):
            try:
                return send()
            except OSError:
                {function}(1)
        """
    [site] = loops(source, is_async="await" in function)
    assert str(site.behavior) == f"5 calls; {expected}; retries OSError"


COMPUTED = {
    "return 2 ** number": "exponential delays, no jitter",
    "return min(2 ** number, 60)": "exponential delays at most 1 min, no jitter",
    "return 2 ** number + random.random()": "exponential delays, with jitter",
    "return draw(number)": "delays: ?",
    "print(number)": "delays: ?",
    "return find_delay(number)": "delays: ?",
}


@pytest.mark.parametrize(("statement", "expected"), COMPUTED.items(), ids=COMPUTED)
def test_a_function_computes_the_delays(statement, expected):
    source = f"""
        def find_delay(number):
            {statement}

        def fetch():
            for attempt in range(5):
                try:
                    return send()
                except OSError:
                    time.sleep(find_delay(attempt))
        """
    assert module(source) == f"5 calls; {expected}; retries OSError"


def test_a_function_computes_the_delays_step_by_step():
    source = """
        def find_delay(number):
            delay = 2 ** number
            delay = min(delay, 60)
            delay = delay * random.random()
            return delay

        def fetch():
            for attempt in range(5):
                try:
                    return send()
                except OSError:
                    time.sleep(find_delay(attempt))
        """
    expected = "exponential delays at most 1 min, with jitter"
    assert module(source) == f"5 calls; {expected}; retries OSError"


def test_a_helper_that_counts_limits_the_attempts():
    source = """
        class Client:
            def fetch(self):
                while True:
                    try:
                        return self.send()
                    except OSError:
                        self.note()
                        time.sleep(1)

            def note(self):
                if self.failures > MAX_FAILURES:
                    raise Unavailable
        """
    assert module(source) == "? calls; 1 s, no jitter; retries OSError"
    plain = source.replace("self.failures > MAX_FAILURES", "self.broken")
    expected = "calls without a limit; 1 s, no jitter; retries OSError"
    assert module(plain) == expected


ENDINGS = {
    "tries once more without catching": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError:
                pass
        try:
            return fetch()
        except OSError as error:
            raise Unavailable(str(error))
        """,
    "returns a constant": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError:
                pass
        log.warning("no answer")
        return answers.NO_ANSWER
        """,
    "puts the error into a queue": """
        for attempt in range(3):
            try:
                return fetch()
            except OSError as error:
                last = error
        self._error_queue.put(Failure(str(last)))
        """,
    "counts with an object of its own": """
        for attempt in RetryManager(3):
            try:
                return fetch()
            except OSError as error:
                attempt.error = error
        return None
        """,
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
EXPECTED = [
    "?",
    "hidden",
    "?",
    "?",
    "raises",
    "raises",
    "hidden",
    "hidden",
    "hidden",
    "raises",
]
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
    # Expected, as of a call of `main`.
    ("except SystemExit:", False),
    ("except (SystemExit, KeyboardInterrupt):", True),
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


GROWING = {
    "limit": None,
    "limit=20": "growth-without-cap",
    "limit=5": None,
    "limit=None": None,
}


@pytest.mark.parametrize(("parameter", "expected"), GROWING.items(), ids=GROWING)
def test_delays_that_double_need_a_cap_if_callers_may_set_many_retries(
    parameter, expected
):
    source = f"""
        def send({parameter}):
            for attempt in range(limit):
                try:
                    return fetch()
                except OSError:
                    time.sleep(2 ** attempt)
        """
    found = {each.rule for each in check_site(only(source), RULES)}
    assert found & {"growth-without-cap"} == ({expected} if expected else set())


def test_delays_that_grow_by_a_step_need_no_cap():
    source = """
        def send(limit):
            for attempt in range(limit):
                try:
                    return fetch()
                except OSError:
                    time.sleep(3 * attempt)
        """
    found = {each.rule for each in check_site(only(source), RULES)}
    assert "growth-without-cap" not in found


def test_some_errors_that_are_retried_at_once_are_told():
    source = """
        def send():
            for attempt in range(5):
                try:
                    return fetch()
                except ConnectionError:
                    continue
                except ServerError:
                    time.sleep(1)
        """
    found = {each.rule: each for each in check_site(only(source), RULES)}
    assert "after some errors" in found["retries-at-once"].message
    assert "no-jitter" in found


ENDLESS_HANDLERS = {
    "except ConnectionError: pass": "calls without a limit; no delay",
    "except (requests.Timeout, URLError): print('again')": "calls without a limit",
    "except KeyError: pass": None,
    "except (ConnectionError, ValueError): pass": None,
}


@pytest.mark.parametrize(("handler", "expected"), ENDLESS_HANDLERS.items())
def test_an_endless_loop_over_a_connection(handler, expected):
    source = f"""
        def fetch(url):
            while True:
                try:
                    return requests.get(url)
                {handler}
        """
    found = [str(each.behavior) for each in loops(source)]
    assert [each.startswith(expected or "") for each in found] == [True] * bool(
        expected
    )


VARIABLES = {
    "a constant": ("RETRYABLE", "Timeout, ConnectionError"),
    "constants and a class": (
        "(RETRYABLE, KeyError)",
        "Timeout, ConnectionError, KeyError",
    ),
    "a sum": ("RETRYABLE + (KeyError,)", "Timeout, ConnectionError, KeyError"),
    "another name": ("ALIAS", "Timeout"),
    "a parameter": ("errors", "OSError"),
    "a parameter without a class by default": ("others", "others"),
    "an attribute": ("Client.ERRORS", "OSError, KeyError"),
    "a class with a short name": ("error", "error"),
    "an unknown one": ("settings.ERRORS", "ERRORS"),
}


@pytest.mark.parametrize(("caught", "expected"), VARIABLES.values(), ids=VARIABLES)
def test_errors_that_are_caught_by_a_variable_are_named(caught, expected):
    text = f"""
        from requests import Timeout
        from socket import error

        RETRYABLE = (Timeout, ConnectionError)
        ALIAS = Timeout

        class Client:
            ERRORS = OSError, KeyError

        def load(settings, errors=OSError, others=()):
            for attempt in range(3):
                try:
                    return fetch()
                except {caught}:
                    time.sleep(1)
        """
    assert module(text).endswith(f"retries {expected}")


def test_a_parameter_that_is_any_error_by_default_is_sorted_as_such():
    source = """
        def load(errors=Exception):
            for attempt in range(3):
                try:
                    return fetch()
                except errors as error:
                    {}
                    time.sleep(1)
        """
    assert only(source.format("pass")).behavior.retried == ("Exception",)
    sorted_out = "if error.args:\n                        raise"
    assert only(source.format(sorted_out)).behavior.retried is None
