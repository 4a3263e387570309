"""Look-alikes: polls, workers and guesses, each beside the retry that it looks like."""

import pytest

from tests.audit.test_loops import loops

POLLS = {
    "a database that answers a ping": (
        """
        for attempt in range(30):
            try:
                if client.{0}(timeout=5):
                    return attempt
            except ServerError as error:
                log.debug(error)
            time.sleep(1)
        """,
        ("ping2", "fetch"),
    ),
    "a server that answers at all": (
        """
        for attempt in range(30):
            try:
                if {0}:
                    break
            except Exception:
                pass
            time.sleep(1)
        """,
        ("requests.get(url)", "save(requests.get(url))"),
    ),
    "a status that is expected": (
        """
        for attempt in range(30):
            try:
                status = self.fetch_status()
            except Exception:
                status = None
            if {0}:
                return True
            time.sleep(1)
        """,
        ("status == expected", "status"),
    ),
    "a row that another program writes": (
        """
        tries = 5
        while True:
            try:
                return fetch()
            except Order.{0}:
                log.warning("retrying")
                tries -= 1
                if not tries:
                    return None
                time.sleep(1)
        """,
        ("DoesNotExist", "ServerError"),
    ),
    "a server that has been connected to": (
        """
        for number in range(9):
            try:
                link = loop.run_until_complete({0}(url))
            except OSError:
                time.sleep(1)
            else:
                loop.run_until_complete(link.close())
                break
        """,
        ("connect", "fetch"),
    ),
    "an item that is looked for": (
        """
        tries = 9
        while tries:
            try:
                found = {0}
                break
            except Exception:
                time.sleep(1)
                tries -= 1
        """,
        ("next(x for x in shop.list() if x.name == name)", "next(shop.list(), name)"),
    ),
    "a log that is not there yet": (
        """
        for attempt in range(9):
            text = fetch_log()
            if text:
                return text
            log.debug("{0} (attempt %d)", attempt)
            time.sleep(1)
        """,
        ("Log not on disk yet", "No log"),
    ),
    "a group of processes that ends": (
        """
        for retries in range(9):
            if {0}(group):
                return True
            time.sleep(1)
        """,
        ("all_dead", "fetch"),
    ),
    "the state of a job": (
        """
        while retries > 0:
            answer = fetch()
            if answer["status"] == {0}:
                return True
            time.sleep(1)
            retries -= 1
        """,
        ("JOB_STATUS_SUCCESS", "GOOD"),
    ),
    "a reader that lives": (
        """
        while {0}:
            if time.time() > end:
                return None
            try:
                return fetch()
            except Exception:
                log.debug("again")
            time.sleep(1)
        """,
        ("reader.is_alive()", "reader.is_new()"),
    ),
    "a file that another program writes": (
        """
        file = None
        while not file:
            try:
                file = {0}(path)
            except Exception as error:
                log.warning(error)
                time.sleep(1)
        """,
        ("open", "fetch"),
    ),
    "data that are received bit by bit": (
        """
        for attempt in range(9):
            try:
                data += link.{0}(4096)
            except:
                pass
            log.debug("attempt %d", attempt)
            if pattern.search(data):
                break
            time.sleep(1)
        """,
        ("recv", "fetch"),
    ),
    "a server whose answer is thrown away": (
        """
        for number in range(9):
            try:
                {0}requests.get(url)
            except ConnectionError:
                if number == 8:
                    raise
                time.sleep(3)
            else:
                break
        """,
        ("", "answer = "),
    ),
    "a page that a browser opens": (
        """
        for number in range(9):
            try:
                {0}.get(url)
            except ConnectionError:
                log.warning("failed")
                time.sleep(3)
            else:
                break
        """,
        ("session", "driver"),
    ),
    "a wait that is logged before": (
        """
        log.info("{0}")
        while True:
            try:
                shop.send(order)
            except LoadingError:
                log.debug("> busy")
                time.sleep(2)
            else:
                break
        """,
        (".. awaiting the end of the load", ".. sending the order"),
    ),
    "conditions that are asserted": (
        """
        while True:
            try:
                found = count()
                {0}
            except Exception:
                time.sleep(1)
            else:
                break
        """,
        ("assert len(found) == 7", "assert found.ok"),
    ),
    "devices that are polled": (
        """
        for attempt in range(9):
            try:
                devices = list_devices()
                log.debug("{0} devices, %s", attempt)
                return find(devices)
            except ShopError:
                time.sleep(1)
        """,
        ("Polled", "Asked for"),
    ),
    "a queue that is not waited for": (
        """
        while True:
            source = wait_for_source()
            try:
                retries = 0
                return {0}
            except TimeoutError:
                continue
        """,
        ("source.get(block=False)", "source.fetch(block=False)"),
    ),
    "a page that tells whether a server is up": (
        """
        attempt = 0
        while attempt < 9:
            attempt += 1
            try:
                answer = requests.get("http://shop/{0}", timeout=9)
                break
            except Exception:
                time.sleep(5)
        """,
        ("ping", "prices"),
    ),
    "a wait whose end is told": (
        """
        attempt = 0
        while attempt < 9:
            attempt += 1
            try:
                return receipt(order)
            except ShopError:
                time.sleep(5)
        raise TimeoutError("Timed out {0}")
        """,
        ("when waiting for the order", "after 9 attempts"),
    ),
    "a server that is told not to be ready": (
        """
        for attempt in range(9):
            try:
                fetch()
                break
            except OSError:
                log.warning("{0}, attempt %s", attempt)
                time.sleep(9)
        """,
        ("Server not ready", "Server not found"),
    ),
    "a program that did not boot": (
        """
        done = False
        for attempt in range(9):
            try:
                greet(port)
            except ShopError:
                time.sleep(1)
            else:
                done = True
                break
        if not done:
            raise ShopError("the shop did not {0} in time")
        """,
        ("boot", "answer"),
    ),
    "an operation that goes on": (
        """
        for attempt in range(9):
            try:
                answer = {0}(work, time_out=300)
            except ShopTimeout:
                continue
            break
        """,
        ("wait_operation", "start_operation"),
    ),
    "a message of a queue, which is put back for others": (
        """
        for attempt in range(99):
            try:
                message = await asyncio.wait_for(inbox.{0}(), timeout=1)
                if is_mine(message):
                    return message
                inbox.put_nowait(message)
            except asyncio.TimeoutError:
                continue
        """,
        ("get", "send"),
    ),
    "a device without data": (
        """
        attempt = 0
        while attempt < 9:
            try:
                return os.read(device, 256)
            except OSError as error:
                if error.errno == errno.{0}:
                    log.debug("no data")
                else:
                    log.debug("failed")
            attempt += 1
            time.sleep(0.15)
        """,
        ("EAGAIN", "EIO"),
    ),
    "a pipe without data": (
        """
        for attempt in range(9):
            try:
                return self.process.{0}.readline()
            except IOError:
                time.sleep(0.1)
        """,
        ("stdout", "shop"),
    ),
    "a file that is not written yet": (
        """
        for attempt in range(9):
            try:
                return int({0}(path))
            except (FileNotFoundError, ValueError):
                time.sleep(1)
        """,
        ("util.load_text_file", "util.ask"),
    ),
    "a state with the name of its end": (
        """
        for _ in range(max_retries):
            try:
                work.refresh()
                if work.{0}:
                    break
            except Exception:
                log.info("failed")
            time.sleep(2)
        """,
        ("status == 'ready'", "answer == 'yes'"),
    ),
    "a handler that tells what cannot be reached yet": (
        """
        reached = False
        while not reached:
            try:
                greet(url)
                reached = True
            except Exception:
                log.debug("the shop {0}")
                time.sleep(3)
        """,
        ("is not reachable yet", "has failed"),
    ),
    "a queue that is full": (
        """
        while True:
            try:
                return await self.put(item)
            except {0}:
                await asyncio.sleep(0.1)
        """,
        ("asyncio.QueueFull", "asyncio.QueueError"),
    ),
    "a prompt of a program": (
        """
        child = spawn(command)
        for attempt in range(9):
            try:
                return child.{0}(PROMPTS, timeout=0.1)
            except pexpect.TIMEOUT:
                continue
        """,
        ("expect", "ask"),
    ),
    "a server that has just been started": (
        """
        self.process = {0}
        for attempt in range(9):
            try:
                return urlopen(url)
            except OSError:
                time.sleep(1)
        """,
        ("subprocess.Popen(command)", "find(command)"),
    ),
    "a server that a function has started": (
        """
        server = {0}(command)
        for attempt in range(9):
            try:
                return connect(server)
            except OSError:
                time.sleep(1)
        """,
        ("launch_shop_server", "find_shop_server"),
    ),
    "what another program uses": (
        """
        process = subprocess.Popen(command)
        for attempt in range(9):
            try:
                return {0}(folder)
            except OSError:
                time.sleep(1)
        """,
        ("request", "rmtree"),
    ),
    "what is read while a program runs": (
        """
        process = subprocess.Popen(command)
        for attempt in range(9):
            try:
                return read(url)
            except {0}:
                time.sleep(1)
        """,
        ("ConnectionError", "SheetError"),
    ),
    "a queue that is full, if it is asked a few times": (
        """
        for retry in range(retries):
            try:
                return send(item)
            except {0}:
                time.sleep(1)
        """,
        ("queue.Full", "queue.Broken"),
    ),
    "a port that another program still has": (
        """
        for attempt in range(9):
            try:
                return self.listen()
            except OSError as error:
                if error.errno == errno.{0}:
                    time.sleep(1)
                    continue
                raise
        """,
        ("EADDRINUSE", "ECONNREFUSED"),
    ),
    "a port that another program has": (
        """
        for attempt in range(9):
            try:
                return self.try_bind()
            except OSError as error:
                if attempt == 8:
                    raise
                if error.errno != errno.{0} and error.errno != in_use:
                    raise
        """,
        ("EADDRINUSE", "ECONNREFUSED"),
    ),
    "an error that tells of work that goes on": (
        """
        while True:
            try:
                return read(url)
            except OSError:
                print(f"Waiting {pause} s for the report to {0}")
                time.sleep(30)
        """,
        ("finish", "download again"),
    ),
    "an end that tells what has not started": (
        """
        for _ in range(25):
            try:
                greet(url)
            except ConnectionError:
                time.sleep(1)
            else:
                break
        else:
            raise RuntimeError("the shop {0}")
        """,
        ("did not start in time", "refused all attempts"),
    ),
    "an end that tells what never started": (
        """
        for _ in range(25):
            try:
                greet(url)
            except ConnectionError:
                time.sleep(1)
            else:
                break
        else:
            warn("the shop {0}")
        """,
        ("never started listening", "never answered"),
    ),
    "a handler that tells what is not yet open": (
        """
        for attempt in range(25):
            try:
                greet(url)
                break
            except ConnectionError:
                print("the shop is {0} connections")
                time.sleep(1)
        """,
        ("not (yet) accepting", "refusing all"),
    ),
    "an attempt that waits in its turn": (
        """
        waited = 0
        while waited < limit:
            waited += 10
            try:
                Wait(page, 10).{0}(is_solved)
                break
            except Exception:
                time.sleep(15)
        """,
        ("until", "solve"),
    ),
    "the waiter of a client": (
        """
        for attempt in range(9):
            try:
                return {0}.wait(job)
            except JobError:
                time.sleep(15)
        """,
        ("waiter", "shop"),
    ),
    "a state in the condition": (
        """
        state = None
        attempts = 0
        while {0}:
            try:
                state = look()
            except OSError:
                attempts += 1
        """,
        ("state != State.Finished", "state is None"),
    ),
    "a state that comes before others": (
        """
        while {0}:
            try:
                send()
                break
            except OSError:
                time.sleep(1)
        """,
        ("self.status < Status.DONE", "self.faults < Fault.MANY"),
    ),
    "a lock of a file": (
        """
        while True:
            try:
                if WINDOWS:
                    lock(file)
                else:
                    fcntl.flock(file, fcntl.{0})
                break
            except OSError:
                time.sleep(0.05)
        """,
        ("LOCK_NB", "LOCK_EX"),
    ),
    "tasks that are awaited for some time": (
        """
        while True:
            try:
                for each in {0}(tasks, timeout=86400):
                    tell(each)
                return
            except TimeoutError:
                pass
        """,
        ("as_completed", "call"),
    ),
    "a number of polls": (
        """
        for _attempt in range({0}):
            length = read_length()
            if length == 0:
                time.sleep(1)
                continue
            break
        """,
        ("POLL_MAX_ATTEMPTS", "MAX_ATTEMPTS"),
    ),
    "a number of a state": (
        """
        tries = 3
        while tries > 0:
            if look().{0} == 7:
                return move()
            time.sleep(2)
            tries -= 1
        """,
        ("state_code", "status_code"),
    ),
    "a sleep before each question": (
        """
        tries = 9
        while tries >= 0:
            tries -= 1
            {0}
            found = look()
            if found:
                break
        """,
        ("time.sleep(15)", "log.info('again'); time.sleep(15)"),
    ),
    "an end that tells what has not started, after the loop": (
        """
        tries = 0
        while tries < 99:
            try:
                return greet(url)
            except ConnectionError:
                time.sleep(0.5)
                tries += 1
        raise RuntimeError("the shop {0}")
        """,
        ("did not start in time", "refused all attempts"),
    ),
    "a sleep before the first question": (
        """
        for _ in range(9):
            {0}
            try:
                parcel = find(number)
            except ParcelError:
                continue
            break
        """,
        ("time.sleep(5)", "log.info('looking')"),
    ),
    "things that are looked at in each turn": (
        """
        for attempt in range(9):
            {0}:
                found = look_at(shelf)
                if found:
                    return found
            time.sleep(5)
        """,
        ("for shelf in shelves", "if shelf"),
    ),
    "a page that must be gone": (
        """
        retries = 9
        for _ in range(9):
            try:
                page = read(url)
            except PageError as error:
                if error.code == 404:
                    break
                raise
            {0}
            retries = retries - 1
            time.sleep(5)
        """,
        ("log.info('there')", "if page.status_code == 200: break"),
    ),
    "a value that another part of the program writes": (
        """
        for attempt in range(9):
            try:
                if read("order") == "paid":
                    break
            except {0}:
                pass
            time.sleep(5)
        """,
        ("OrderNotFound", "ConnectionError"),
    ),
    "a connection that is opened to be closed": (
        """
        while time.monotonic() < end:
            probe = socket.socket()
            probe.settimeout(2)
            try:
                probe.connect((host, int(port)))
                probe.{0}
                break
            except OSError:
                time.sleep(1)
        """,
        ("close()", "sendall(order)"),
    ),
    "a connection that is opened for nothing": (
        """
        while True:
            try:
                with socket.create_connection(address, timeout=2) as link:
                    {0}
                return True
            except OSError:
                time.sleep(0.1)
        """,
        ("pass", "link.sendall(order)"),
    ),
    "a process that was started": (
        """
        for attempt in range(30):
            {0}
            try:
                greet(url)
                break
            except OSError:
                pass
            if server.poll() is not None:
                return False
            time.sleep(1)
        """,
        ("log.info('asking')", "server = subprocess.Popen(command)"),
    ),
    "work that is awaited": (
        """
        for _ in range(9):
            try:
                read_number()
            except NoDataError:
                log.info("{0}")
                time.sleep(9)
            else:
                break
        """,
        ("waiting 9 s until the job has run", "another 9 s"),
    ),
    "a person who has not logged in yet": (
        """
        while time.time() < end:
            try:
                answer = fetch_token()
            except BadRequest as error:
                if error.reason != "{0}":
                    raise
                time.sleep(5)
                continue
            break
        """,
        ("AuthorizationPendingException", "slow"),
    ),
    "something that is made elsewhere": (
        """
        while time.time() - begun < 300:
            try:
                return images.get(name)
            except {0}:
                time.sleep(2)
        """,
        ("errors.ImageNotFound", "errors.ServerError"),
    ),
    "a process that was started, and a result": (
        """
        count = 0
        while count < max_attempts:
            count += 1
            if {0}:
                raise ServerError
            if check(url):
                break
            time.sleep(2)
        """,
        ("server.poll()", "server.failed()"),
    ),
    "a queue that may be empty": (
        """
        while True:
            try:
                return take()
            except ServerError:
                if clock() > end:
                    raise {0}
                time.sleep(0.1)
        """,
        ("QueueEmptyError(name)", "ShopError(name)"),
    ),
    "a process that was started, which must go on": (
        """
        while True:
            assert {0}
            try:
                greet(url)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(1)
        """,
        ("server.poll() is None", "server.returncode == 0"),
    ),
    "the end of a process": (
        """
        while True:
            try:
                code = {0}
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() > end:
                    request_stop()
        """,
        ("server.wait(timeout=1)", "subprocess.run(command, timeout=1)"),
    ),
    "a result that is used afterwards": (
        """
        while True:
            try:
                result = self._future_result(future)
            except TimeoutError:
                {0}
            self.write(result)
            break
        """,
        ("continue", "self.send(future); continue"),
    ),
    "a socket that is full": (
        """
        while True:
            try:
                link.send(order)
                return
            except SocketError as error:
                if error.errno not in (errno.{0}, errno.EINTR):
                    raise
            time.sleep(0)
        """,
        ("EAGAIN", "ECONNRESET"),
    ),
    "a socket that is full, for what is not answered": (
        """
        while True:
            try:
                link.send(order)
                return {0}
            except SocketError as error:
                if error.errno != errno.EAGAIN:
                    raise
            time.sleep(0)
        """,
        ("True", "link.recv(10)"),
    ),
    "a socket that must read first": (
        """
        sent = 0
        while not sent:
            try:
                self._send(order)
                sent = 1
            except OSError as error:
                if self.{0}(error, "waiting to retry"):
                    continue
                raise
        """,
        ("check_pending", "check_retries"),
    ),
    "a pause between polls": (
        """
        found = None
        while found is None:
            try:
                found = find(number)
            except Exception:
                log.debug("{0}")
            if found is not None:
                break
            time.sleep(self.polling_interval)
        """,
        ("failed", "retrying"),
    ),
    "a record that is not listed yet": (
        """
        tries = 0
        while tries < 9:
            answer = fetch(url)
            if answer.json().get("{0}"):
                break
            time.sleep(1)
            tries += 1
        """,
        ("records", "ok"),
    ),
    "work that is watched as long as it runs": (
        """
        tries = 0
        {0} = True
        while {0}:
            time.sleep(tries)
            try:
                {0} = look()
            except ShopError:
                tries += 1
                time.sleep(1)
                continue
        """,
        ("is_running", "is_bad"),
    ),
    "something that must be gone": (
        """
        failures = 0
        while time.time() < end:
            try:
                if order.{0}:
                    return
            except Exception:
                failures += 1
                if failures > max_attempts:
                    break
            time.sleep(1)
        """,
        ("is_deleted()", "send()"),
    ),
    "something that is awaited": (
        """
        while True:
            try:
                return read(number)
            except ShopError:
                print(f"  {0} ... {number}")
                time.sleep(1)
        """,
        ("Awaiting the order", "No order"),
    ),
    "a session that is told to stop": (
        """
        while not stop_requested and self.link.running:
            try:
                {0}:
                    stop_requested = True
                    break
            except Exception:
                pass
            time.sleep(0.1)
        """,
        ("if self.look() == 'gone'", "with self.look()"),
    ),
}

OTHERS = {
    "an endpoint that is only kept": (
        """
        endpoints = find_endpoints()
        for endpoint in endpoints:
            try:
                if is_down({0}):
                    raise ConnectionError("down")
                used = {0}
                break
            except ConnectionError:
                continue
        """,
        ("endpoint", "shop"),
    ),
    "environments, one of which may know it": (
        """
        for {0} in environments:
            client = connect({0})
            try:
                return client.fetch()
            except ClientError:
                log.info("retrying")
        """,
        ("attempt_env", "attempt"),
    ),
    "one of two ports": (
        """
        for attempt_{0} in (hint, 0) if hint else (0,):
            try:
                server = serve(attempt_{0})
                break
            except OSError:
                continue
        """,
        ("port", "number"),
    ),
    "another route, without what has failed": (
        """
        while time.time() < end:
            route = find_route(target, {0}=failed)
            try:
                return send(route)
            except RouteError as error:
                failed.append(error.channel)
                log.warning("attempt failed: %s", error)
        """,
        ("exclude", "show"),
    ),
    "a password that a person gives": (
        """
        for attempt in range(3):
            try:
                return unlock({0}())
            except Exception:
                log.warning("no success")
        """,
        ("session.ui.get_password", "session.fetch"),
    ),
    "a person who is told to try again": (
        """
        for attempt in range(3):
            try:
                return unlock(read())
            except Exception:
                print("{0}, try again?")
        """,
        ("Incorrect", "No answer"),
    ),
    "a session that runs until it breaks": (
        """
        while True:
            try:
                await self.open()
                task = asyncio.create_task(self.client.{0}())
                await task
                return
            except ConnectionError:
                log.warning("retrying")
        """,
        ("run", "fetch"),
    ),
    "a folder with the next number": (
        """
        for i in range(9):
            path = root.joinpath(prefix + str(highest(root) + 1))
            try:
                path.{0}(mode)
            except Exception:
                pass
            else:
                return path
        """,
        ("mkdir", "send"),
    ),
    "a function that makes such a folder": (
        """
        for i in range(9):
            try:
                path = {0}(root, prefix)
                lock(path)
            except Exception as error:
                last = error
            else:
                return path
        """,
        ("make_numbered_dir", "make_answer"),
    ),
    "missing parts of a page": (
        """
        while tries < 9:
            time.sleep(2)
            page = fetch()
            try:
                total = page.find("total").value
                break
            except ({0}, KeyError):
                tries += 1
        """,
        ("AttributeError", "OSError"),
    ),
    "an error after which the program exits": (
        """
        while number < 9:
            try:
                number = update(number)
            except Exception as error:
                log.{0}(error)
                time.sleep(1)
        """,
        ("log_error_and_exit", "log_error"),
    ),
    "one of as many as there are": (
        """
        for _ in range({0}):
            host = choose()
            try:
                return fetch(host)
            except OSError:
                log.warning("failed")
        """,
        ("len(self.points)", "len(self.delays)"),
    ),
    "as many turns as were counted before": (
        """
        attempts = {0}
        while attempts:
            try:
                return fetch()
            except Exception as error:
                log.warning(error)
                use_next()
                attempts -= 1
        """,
        ("len(list_cookies()) or 1", "len(RETRY_DELAYS)"),
    ),
    "another proxy in each turn": (
        """
        tries = 0
        while tries < 5:
            routes = {"https": self.{0}()}
            try:
                return requests.get(url, proxies=routes)
            except Exception as error:
                print(error)
                tries += 1
        """,
        ("get_proxy", "get_routes"),
    ),
    "a random name of a user": (
        """
        user, attempts = None, 0
        while user is None:
            try:
                name = "shop-" + {0}
                create_user(name)
                user = name
            except Exception:
                attempts += 1
                if attempts > 5:
                    raise
        """,
        ("str(uuid.uuid4())[:8]", "self.name"),
    ),
    "a random name of a socket": (
        """
        for _ in range(99):
            name = {0}
            path = os.path.join(folder, name)
            try:
                sock.bind(path)
            except OSError:
                continue
            else:
                return path
        """,
        ("os.urandom(8).hex()", "self.name"),
    ),
    "a larger range in each turn": (
        """
        for attempt in range(9):
            found = search(base, size)
            if len(found) < needed:
                size = {0}
                time.sleep(1)
                continue
            return found
        """,
        ("min(size * 2, 5_000)", "first"),
    ),
    "old messages that are left out": (
        """
        send(request)
        for attempt in range(retries + 1):
            message = {0}()
            if message.number == number:
                return message
            log.warning("stale message, attempt %d", attempt)
        """,
        ("receive", "fetch"),
    ),
    "a person who is asked in a method": (
        """
        while True:
            try:
                download()
                break
            except Exception:
                if not self.{0}():
                    log.error("cancelled")
                    sys.exit(0)
                time.sleep(1)
        """,
        ("confirm_retry", "counts"),
    ),
    "work that has only been accepted": (
        """
        while True:
            answer = fetch()
            if answer.status == 200:
                return answer.json()
            elif answer.status == {0}:
                time.sleep(int(answer.headers["retry-after"]))
            else:
                raise ShopError(answer)
        """,
        ("202", "429"),
    ),
    "a user who edits a text again": (
        """
        found = None
        while not found:
            text = {0}(text)
            try:
                found = parse(text)
            except Exception as error:
                print(error)
                time.sleep(1)
        """,
        ("edit_with_editor", "fetch"),
    ),
    "a port that another function picks": (
        """
        done = False
        attempt = 0
        while not done:
            try:
                sock.bind((host, self.{0}()))
                done = True
            except Exception:
                attempt += 1
                if attempt > 9:
                    raise
        """,
        ("_get_candidate_port", "address"),
    ),
    "one of several texts": (
        """
        for name_try in {0}:
            try:
                if matches(part, name_try):
                    return True
            except Exception:
                continue
        """,
        ('("EVENT", "ALARM")', "range(9)"),
    ),
    "a session that lasts until it is stopped": (
        """
        while True:
            try:
                start()
                while {0}:
                    process()
                break
            except ShopError as error:
                log.error(str(error))
                time.sleep(5)
        """,
        ("self.running", "pages(7)"),
    ),
    "an attempt that cannot succeed": (
        """
        while True:
            answer = fetch()
            if answer.done:
                break
            time.sleep(1)
            if time.time() > end:
                try:
                    process.terminate()
                    {0} TooSlow(answer)
                except OSError:
                    pass
        """,
        ("raise", "return"),
    ),
    "another form of a request": (
        """
        attempt = 0
        while attempt < 9:
            try:
                return fetch(point, self.several)
            except OSError as error:
                attempt += 1
                if "several" in str(error):
                    {0} = False
                    continue
                raise
        """,
        ("self.several", "self.told"),
    ),
    "the file of another kind": (
        """
        for retried_kind in kinds:
            url = f"files/{{0}}"
            answer = fetch(url)
            if answer.status_code == 200:
                return answer.json()
        """,
        ("retried_kind", "day"),
    ),
    "the file of an earlier day": (
        """
        while True:
            url = f"files/{day}"
            answer = fetch(url)
            if answer.status_code == 200:
                return answer.json()
            {0} -= month
        """,
        ("day", "wait"),
    ),
    "another port in settings": (
        """
        for attempt in range(9):
            if attempt > 0:
                settings["Port"] = str(random.{0}(1025, 65535))
            try:
                launch(settings)
            except OSError:
                continue
            else:
                break
        """,
        ("randint", "wait"),
    ),
    "a shorter text": (
        """
        for attempt in range(9):
            try:
                return await send(text={0})
            except TooLong as error:
                {0} = await shorten(error, {0})
        """,
        ("messages", "last_message"),
    ),
    "one of the servers that are left": (
        """
        for _ in range(len({0})):
            server = others.pop(pick({0}))
            try:
                return connect(server)
            except ShopError:
                pass
        """,
        ("others", "attempts"),
    ),
    "one part after another": (
        """
        for start in range(0, size, {0}):
            answer = send(parts[start], start)
            if answer.status_code == 404:
                return None
            if answer.status_code != 204:
                return answer.status_code
        """,
        ("200", "-1"),
    ),
    "one server after another": (
        """
        for {0} in (FIRST, SECOND):
            answer = fetch({0})
            if answer.status_code == 429:
                break
            if answer.status_code == 200:
                return answer.json()
            time.sleep(1)
        """,
        ("url", "attempt"),
    ),
    "where a redirect leads": (
        """
        for retry in range(9):
            answer = fetch(url)
            if answer.status_code not in [{0}]:
                break
            url = answer.headers.get("Location")
        """,
        ("301, 307", "502, 503"),
    ),
    "requests until there are too many": (
        """
        while status_code {0} 429:
            status_code = fetch()
            count += 1
            if count > 20:
                break
            time.sleep(1)
        """,
        ("!=", "=="),
    ),
    "a dialog that may appear": (
        """
        turn = 0
        while turn < 3:
            turn += 1
            try:
                click(find(button))
                break
            except ({0}, NoSuchElementException):
                time.sleep(1)
        """,
        ("ElementNotVisibleException", "ShopError"),
    ),
    "another draw": (
        """
        maker = Maker(numbers, {0})
        for attempt in range(9):
            try:
                return maker.make()
            except Infeasible:
                pass
        """,
        ("seed", "url"),
    ),
    "what is drawn in each turn": (
        """
        for attempt in range(9):
            places = [{0}(9) for _ in numbers]
            try:
                return split(numbers, places)
            except Failed:
                pass
        """,
        ("randint", "last"),
    ),
    "a name that is taken, of many": (
        """
        names = candidates()
        for attempt in range(9):
            name = {0}(names)
            file = os.path.join(folder, name)
            try:
                return os.open(file, flags)
            except (FileExistsError, PermissionError):
                continue
        """,
        ("next", "first_of"),
    ),
    "another draw, but not another answer": (
        """
        for attempt in range(9):
            try:
                return answer(numbers, seed=seed)
            except {0}:
                pass
        """,
        ("Infeasible", "RateLimitError"),
    ),
    "another draw, but not another request": (
        """
        for attempt in range(9):
            try:
                return make(numbers, seed)
            except {0}:
                pass
        """,
        ("Infeasible", "ConnectionError"),
    ),
    "a folder that another program has made": (
        """
        for attempt in range(9):
            try:
                return make(name_of(now))
            except OSError as error:
                if attempt == 8 or error.errno != errno.{0}:
                    raise
        """,
        ("EEXIST", "ECONNRESET"),
    ),
    "a number that nobody has": (
        """
        attempts = 0
        while attempts < 9:
            try:
                number = draw_number()
                add(number)
                return number
            except ShopError:
                attempts += 1
        raise ShopError("Could not {0}")
        """,
        ("generate a free order id", "reach the shop"),
    ),
    "a result that is graded": (
        """
        for attempt in range(max_retries + 1):
            text = write(topic)
            if {0}:
                return text
        """,
        ("score_of(text) >= least", "is_there(text)"),
    ),
    "a choice without those that have failed": (
        """
        retries = 9
        failed = set()
        while retries > 0:
            shop = best({0})
            try:
                return buy(shop)
            except ShopError as error:
                failed.add(error.shop)
                retries -= 1
        """,
        ("shops - failed", "shops"),
    ),
    "the next one of an iterator": (
        """
        for attempt in itertools.count():
            try:
                buy(shop)
                break
            except ShopError:
                if attempt == 9:
                    raise
                {0} = next(others)
        """,
        ("shop", "number"),
    ),
    "data that is read in another way": (
        """
        for number in range(5):
            log.debug("try %d", number + 1)
            try:
                self.counter += 1
                return self.{0}(message)
            except InvalidTag:
                pass
        """,
        ("decrypt", "send"),
    ),
    "redirects": (
        """
        for _ in range({0}):
            answer = fetch(url)
            if answer.ok:
                return answer
            url = answer.next
        """,
        ("MAX_REDIRECTS", "MAX_RETRIES"),
    ),
    "a name that nobody has": (
        """
        retries = 9
        name = draw()
        while {0} and retries:
            name = draw()
            retries -= 1
        """,
        ("name in taken", "name is None"),
    ),
    "a file with the name of this attempt": (
        """
        for _ in range(2):
            number = {0}()
            path = os.path.join(folder, number)
            try:
                os.replace(done, path)
                return
            except OSError:
                log.warning("retrying")
        """,
        ("make_timestamp", "find_shop"),
    ),
    "the next server, which is asked for": (
        """
        for failed in count():
            server = self.{0}()
            try:
                return fetch(server)
            except OSError:
                if failed > 9:
                    raise
        """,
        ("_next", "server"),
    ),
    "one of several servers": (
        """
        for number in range(9):
            try:
                server = random.choice(servers)
                return fetch({0})
            except OSError:
                time.sleep(0.5)
        """,
        ("server.url", "url, server"),
    ),
    "one of several forms, which is chosen before": (
        """
        for number in range(3):
            {0}
            try:
                fill()
                break
            except MissingError:
                pass
        """,
        ("page.choose(form=number)", "log.debug(number)"),
    ),
    "each of several mirrors": (
        """
        for {0} in mirrors:
            url = {0}.lower()
            answer = fetch(url)
            if answer.status_code == 503:
                log.info("retries")
                time.sleep(5)
            else:
                return answer
        """,
        ("mirror", "attempt"),
    ),
    "what a person types": (
        """
        while True:
            name = {0}(text)
            try:
                return check(name)
            except Invalid:
                time.sleep(0.5)
        """,
        ("safe_input", "first_name"),
    ),
    "an answer to a poll": (
        """
        while time.time() < end:
            time.sleep(pause)
            {0} = fetch()
            if {0}.status_code == 200:
                return {0}.json()
            if {0}.status_code == 429:
                pause += 1
        """,
        ("polling_answer", "answer"),
    ),
    "a key that another writer has": (
        """
        for attempt in range(9):
            try:
                return add(last() + 1)
            except Exception as error:
                if isinstance(error, {0}):
                    if attempt == 8:
                        raise
                    continue
                raise
        """,
        ("UniqueViolation", "ConnectionError"),
    ),
    "a row that another writer has added": (
        """
        for attempt in range(9):
            try:
                return add()
            except Exception as error:
                if not ("UNIQUE rows" in str(error) or "{0}" in str(error)):
                    raise
        """,
        ("duplicate key", "is locked"),
    ),
    "a value that a person gives": (
        """
        while True:
            value = read()
            try:
                store(value)
                click.{0}()
                return
            except Exception:
                log.info("store attempt failed")
        """,
        ("pause", "beep"),
    ),
    "the next line": (
        """
        tries = 0
        line = {0}()
        while not line and tries < 9:
            tries += 1
            line = {0}()
        """,
        ("read_next", "look"),
    ),
    "the next server, which answers or does not": (
        """
        attempt = 0
        server = first()
        works = use(server)
        while not works and attempt < 9:
            works = use(server)
            attempt += 1
            {0} = following(server)
        """,
        ("server", "told"),
    ),
    "the next server, which is set before": (
        """
        for host in hosts:
            {0}
            try:
                return begin()
            except ConnectionError:
                log.error("failed")
        """,
        ("self.use(host)", "log.info(host)"),
    ),
    "a worker that is stopped in the middle of its work": (
        """
        while True:
            try:
                for each in find():
                    if {0}:
                        return
                    each.attempts += 1
                    if each.attempts > 9:
                        forget(each)
            except Exception:
                log.error("failed")
            await asyncio.sleep(1)
        """,
        ("self._shut_down", "use(each)"),
    ),
    "what a person writes in an editor": (
        """
        while True:
            subprocess.call([{0}, path])
            try:
                return check(path)
            except Invalid:
                await asyncio.sleep(1)
        """,
        ("editor", "command"),
    ),
    "a connection that is served until a stop": (
        """
        retries = 0
        while True:
            try:
                if {0}:
                    return
                await self.read_all()
            except OSError:
                retries += 1
                await asyncio.sleep(1)
        """,
        ("not self._should_run", "self.read_all is None"),
    ),
    "a stream that is opened again": (
        """
        while True:
            try:
                node = await self.open()
                async for each in node:
                    {0}
            except StreamError:
                if self._is_closing():
                    return
                await asyncio.sleep(1)
                continue
            return
        """,
        ("self.events.put(each)", "return each"),
    ),
    "an error that is awaited": (
        """
        tries = 0
        order = 1
        while order is not None:
            try:
                order = find()
                tries += 1
                if tries > 9:
                    raise TimeoutError
            except OSError:
                order = {0}
            else:
                time.sleep(1)
        """,
        ("None", "order"),
    ),
    "a transaction whose key another writer has changed": (
        """
        for _ in range(3):
            try:
                pipe.watch(key)
                pipe.multi()
                pipe.set(key, change(pipe.get(key)))
                pipe.execute()
                return True
            except {0}():
                continue
        return False
        """,
        ("_watch_error", "_server_error"),
    ),
    "a record that another writer has changed": (
        """
        for attempt in range(9):
            try:
                return store(change(load()))
            except ShopError as error:
                {0} = any(x in str(error) for x in HINTS)
                if not {0} or attempt == 8:
                    raise
        """,
        ("stale", "busy"),
    ),
    "a record of which another writer tells by an error": (
        """
        for _ in range(9):
            record = load()
            try:
                store(change(record))
            except {0}:
                continue
            return record
        """,
        ("RecordChangedError", "RecordError"),
    ),
    "a random range of addresses": (
        """
        for number in range(4):
            {0} = f"{random.randint(1, 99)}.0.0.0/26"
            try:
                return create("net", {0})
            except Exception:
                if number == 3:
                    raise
        """,
        ("subnet", "order_number"),
    ),
    "a port that is free, and the next one": (
        """
        for _ in range(100):
            first = begin()
            try:
                return first, begin(first + 1)
            except OSError:
                continue
        raise ShopError("Could not {0}")
        """,
        ("find two free ports", "begin"),
    ),
    "each of several numbers of errors": (
        """
        for status, retryable in {0}:
            if check(error, status):
                return retryable
        """,
        ("STATUSES.items()", "retries_of(3)"),
    ),
    "each of several texts of errors": (
        """
        for {0} in messages:
            if text.find({0}) >= 0:
                log.debug("retry %s", {0})
                again = 1
                time.sleep(1)
                break
        """,
        ("retry_message", "attempt"),
    ),
    "the next session": (
        """
        while True:
            try:
                return self.session.get(path)
            except RequestException:
                self.{0}()
        """,
        ("_next_session", "_new_session"),
    ),
    "a number of a port": (
        """
        tries = 9
        while tries:
            guess = random.randint(low, high)
            try:
                link.{0}(("", guess))
                return guess
            except OSError:
                tries -= 1
        """,
        ("bind", "ask"),
    ),
    "a name that a registry has": (
        """
        tries = 0
        name = draw()
        while {0} and tries < 9:
            name = draw()
            tries += 1
        """,
        ("registry.has(name)", "is_bad(name)"),
    ),
    "the next node of a cluster": (
        """
        for number in range({0}):
            try:
                answer = fetch(url)
            except OSError:
                if number + 1 == {0}:
                    raise
                connect()
                continue
            break
        """,
        ("node_cnt", "max_count"),
    ),
    "as many turns as there are servers": (
        """
        for _ in range(len({0})):
            try:
                return self.fetch(url)
            except OSError:
                self.choose()
        """,
        ("self.hosts", "self.pauses"),
    ),
    "the next index": (
        """
        attempts = 0
        while attempts < 9:
            try:
                return fetch(self.url)
            except OSError:
                attempts += 1
                self.index = (self.index + 1) % {0}
        """,
        ("len(self.urls)", "2"),
    ),
    "the next index, after a sleep": (
        """
        attempts = 0
        while attempts < 9:
            try:
                return fetch(url, headers[index])
            except OSError:
                attempts += 1
                index = (index + 1) % len(headers)
                {0}(attempts)
        """,
        ("log.info", "time.sleep"),
    ),
    "the number of a server": (
        """
        for number in range(10, 30):
            url = "https://stream{number}".format(number={0})
            try:
                size = url_info(url)
                break
            except OSError:
                continue
        """,
        ("number", "20"),
    ),
    "a redirect to another address": (
        """
        hops = 0
        while True:
            answer = put(url)
            if answer.status_code not in codes:
                return answer
            hops += 1
            if hops > {0}:
                raise TooMany
            url = answer.address
        """,
        ("MAX_REDIRECTS", "MAX_ANSWERS"),
    ),
    "a length that must fit": (
        """
        for attempt in range(max_retries + 1):
            text = join(parts)
            difference = {0}
            if difference == 0:
                return text
            parts = change(parts, difference)
        """,
        ("len(text) - length", "check(text)"),
    ),
    "a smaller size in each turn": (
        """
        for number in range(retries):
            size = [0, 0]
            for index in range(2):
                size[index] = random.uniform(1, {0})
            try:
                result = compute(size)
                break
            except ShopError:
                continue
        """,
        ("9 - number", "9"),
    ),
    "a heartbeat until a stop": (
        """
        while not self._kill_wanted.is_set():
            if self.silent:
                await self.reconnect()
            await self.send_heartbeat()
            try:
                await asyncio.wait_for({0}.wait(), timeout=9)
            except asyncio.TimeoutError:
                continue
            else:
                return
        """,
        ("self._kill_wanted", "self.answer"),
    ),
}


@pytest.mark.parametrize(("source", "words"), POLLS.values(), ids=POLLS)
def test_a_poll_is_no_retry(source, words):
    for found, word in enumerate(words):
        assert len(loops(source.replace("{0}", word))) == found, word


@pytest.mark.parametrize(("source", "words"), OTHERS.values(), ids=OTHERS)
def test_a_look_alike_is_no_retry(source, words):
    for found, word in enumerate(words):
        assert len(loops(source.replace("{0}", word), is_async=True)) == found, word


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("check_server_ready", 0),
        ("check_startup_success", 0),
        ("check_until_timeout", 0),
        ("verify_shop_is_up", 0),
        ("acquire_lock", 0),
        ("take_shop_lock", 0),
        ("eventually_answers", 0),
        ("use_server", 1),
        ("startup", 1),
        ("check_updates", 1),
        ("acquire_token", 1),
        ("retry_until_server_ready", 1),
    ],
)
def test_a_function_may_be_named_by_what_is_ready(name, found):
    source = """
    for attempt in range(9):
        try:
            return greet(url)
        except OSError:
            time.sleep(1)
    """
    assert len(loops(source, name=name)) == found


@pytest.mark.parametrize(
    ("name", "result", "found"),
    [
        ("ping", "True", 0),
        ("_probe_server", "", 0),
        ("ping", "answer", 1),
        ("ask", "True", 1),
    ],
)
def test_a_function_that_pings_returns_only_if_there_is_an_answer(name, result, found):
    source = f"""
    for attempt in range(9):
        try:
            answer = greet(url)
            return {result}
        except OSError:
            time.sleep(1)
    """
    assert len(loops(source, name=name)) == found


@pytest.mark.parametrize(
    ("name", "condition", "ending", "found"),
    [
        ("_reconnect", "True", "pass", 0),
        ("_do_reconnect", "True", "pass", 0),
        ("auto_reconnect", "not self.link.must_disconnect", "pass", 0),
        ("reconnect_forever", "True", "pass", 0),
        ("reconnect", "True", "if attempt == 9: raise", 1),
        ("reconnect", "attempt < 9", "pass", 1),
        ("connect", "True", "pass", 1),
    ],
)
def test_a_lost_connection_is_opened_again_without_an_end(
    name, condition, ending, found
):
    source = f"""
    attempt = 1
    while {condition}:
        try:
            await self.connect()
        except CommunicationError:
            {ending}
            attempt += 1
            await asyncio.sleep(3)
        else:
            break
    """
    assert len(loops(source, name=name, is_async=True)) == found


@pytest.mark.parametrize(("place", "found"), [("except", 0), ("else", 1)])
def test_a_connection_that_a_user_ends_is_no_retry(place, found):
    """In a handler within the attempt, the flag means no success."""
    end = "except KeyboardInterrupt" if place == "except" else "else"
    source = f"""
    done = False
    while not done:
        try:
            with log_in() as mailbox:
                try:
                    show(mailbox.idle())
                except ValueError:
                    pass
                {end}:
                    done = True
        except ConnectionError:
            log.warning("again in a minute")
            time.sleep(60)
    """
    assert len(loops(source)) == found
