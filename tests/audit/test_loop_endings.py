"""Endings of loops: what becomes of the last error, and which errors are retried."""

import pytest

from tests.audit.test_loops import loops

AFTER = {
    "": "hidden",
    "return None": "hidden",
    "return -1": "hidden",
    "return float('nan')": "hidden",
    "return []": "hidden",
    "return (None, None)": "hidden",
    "return {}": "hidden",
    "return {'error': 1}": "?",
    "return Answer(500, ok=False)": "hidden",
    "return Answer(fetch())": "?",
    "return code == 0": "hidden",
    "return url, code": "hidden",
    "return self.default": "hidden",
    "return code == fetch()": "?",
    "text = f'{url} failed'; log.error(text); return None": "hidden",
    "text = '%s failed' % url_of(1); log.error(text); return None": "hidden",
    "found = fallback(); return None": "?",
    "self.close(); return None": "hidden",
    "await self.disconnect()": "hidden",
    "await self.fallback()": "?",
    # What was there before the attempts.
    "return url": "hidden",
    "return self": "?",
    "if not urgent: return None\n    run()": "?",
    "sys.exit(1)": "?",
    # Python forgets the name after the handler.
    "raise error": "hidden",
    "return fallback()": "?",
    "log.error('failed')": "hidden",
    "log.error('failed'); return None": "hidden",
    # Outside the handler, it has no context.
    "raise RuntimeError('failed')": "hidden",
    "raise errors[-1]": "raises",
    "raise last": "raises",
}


@pytest.mark.parametrize(("after", "ending"), AFTER.items(), ids=AFTER)
def test_what_follows_the_loop_tells_its_ending(after, ending):
    source = f"""
    errors = []
    for attempt in range(3):
        try:
            return fetch()
        except OSError as error:
            errors.append(error)
            last = error
            time.sleep(1)
    {after}
    """
    [site] = loops(source, is_async="await" in source)
    assert site.behavior.ending == ending


HANDLERS = {
    "if attempt == 2: raise": "raises",
    "if attempt == 2: raise Error() from error": "raises",
    "if attempt == 2: reraise(error)": "raises",
    "if attempt == 2: raise Error(text) from None": "hidden",
    "if attempt == 2: raise Error(str(error)) from None": "raises",
    "self.error = error": "?",
    "self.errors.append((url, str(error)))": "?",
    "self._add_to_history(type(error)(str(error)))": "?",
    "self.links.append(url)": "hidden",
    "if not self.go_on(attempt, error): break": "?",
    "if not self.go_on(attempt): break": "hidden",
    "if attempt == 2: raise Error(error) from None": "raises",
    "if attempt == 2: return error": "raises",
    "if attempt == 2: return None": "hidden",
    "if attempt == 2: break": "hidden",
    "policy.raise_or_wait(error)": "raises",
}
KEPT = {
    "kind, last, trace = sys.exc_info()": "?",
    "answer = Answer(sys.exc_info())": "?",
    "last = OSError()": "hidden",
}


@pytest.mark.parametrize(("kept", "ending"), KEPT.items(), ids=KEPT)
def test_the_error_may_be_kept_without_a_name(kept, ending):
    [site] = loops(f"""
    for attempt in range(3):
        try:
            return fetch()
        except OSError:
            {kept}
            answer = Answer(last)
        time.sleep(1)
    raise RetryError(answer)
    """)
    assert site.behavior.ending == ending


@pytest.mark.parametrize(("handler", "ending"), HANDLERS.items(), ids=HANDLERS)
def test_the_handler_tells_its_ending(handler, ending):
    [site] = loops(f"""
    for attempt in range(3):
        try:
            return fetch()
        except OSError as error:
            {handler}
            time.sleep(1)
    """)
    assert site.behavior.ending == ending


SETTLED = {
    "if once: raise": "hidden",
    "if self.raises: raise": "raises",
    "if once:\n                if again: raise\n                again = True": "raises",
    "if not once: continue\n            raise": "hidden",
    "if once: raise\n            else: continue": "hidden",
    # What may be true in the last attempt only.
    "fatal = is_bug(error)\n            if fatal: raise": "hidden",
    "if attempt == 2: raise": "raises",
    "level = level_of(error, attempt)\n            if level > 2: raise": "raises",
    "if failed > 2: raise": "raises",
    "if stop(): raise": "raises",
    "if tries == 2: raise": "raises",
    "if once:\n                if attempt == 2: raise": "raises",
}


@pytest.mark.parametrize(("handler", "ending"), SETTLED.items(), ids=SETTLED)
def test_a_raise_that_is_the_same_in_each_attempt_is_no_ending(handler, ending):
    [site] = loops(f"""
    for attempt in range(3):
        try:
            return fetch()
        except OSError as error:
            failed = count()
            time.sleep(1)
            {handler}
    """)
    assert site.behavior.ending == ending


ELSE = {
    "log.error('failed')": "hidden",
    "raise RuntimeError": "hidden",
    "raise error_of(3)": "hidden",
    "raise ERROR": "?",
    "found = None": "hidden",
    "found = fallback()": "?",
    "return fallback()": "?",
    "pass": "hidden",
}


@pytest.mark.parametrize(("orelse", "ending"), ELSE.items(), ids=ELSE)
def test_the_else_of_a_loop_tells_its_ending(orelse, ending):
    [site] = loops(f"""
    for attempt in range(3):
        try:
            found = fetch()
            break
        except OSError:
            time.sleep(1)
    else:
        {orelse}
    """)
    assert site.behavior.ending == ending


FILTERS = {
    "log(error)": ("Exception",),
    "if is_bug(error): raise": None,
    "code = error.code\n            if code == 404: raise": None,
    "if error.code == 404: fatal = True\n            if fatal: raise": None,
    "match error.code:\n                case 404: raise": None,
}


@pytest.mark.parametrize(("handler", "retried"), FILTERS.items(), ids=FILTERS)
def test_not_every_exception_is_retried_if_it_is_asked_which_one_it_is(
    handler, retried
):
    [site] = loops(f"""
    for attempt in range(3):
        try:
            return fetch()
        except Exception as error:
            {handler}
            time.sleep(1)
    """)
    assert site.behavior.retried == retried


def test_an_attempt_whose_clean_up_leaves_the_loop_is_not_retried():
    assert not loops("""
    for attempt in range(3):
        try:
            fetch()
        except OSError:
            time.sleep(1)
        finally:
            break
    """)


RESULTS = {
    "if answer: return answer": "hidden",
    "if answer: return answer\n        if attempt == 2: return None": "?",
    "if answer: return answer\n        last = answer": "hidden",
    "if answer: return answer\n        raise_if_last(answer)": "?",
    "if answer: return answer\n        handle_error(answer)": "?",
    "if answer: return True": "?",
    "if answer: break": "?",
}


@pytest.mark.parametrize(("test", "ending"), RESULTS.items(), ids=RESULTS)
def test_a_bad_result_is_hidden_if_only_good_ones_are_returned(test, ending):
    [site] = loops(f"""
    for attempt in range(3):
        answer = fetch()
        {test}
        time.sleep(1)
    """)
    assert site.behavior.ending == ending


ENCLOSING = {
    "return None": "hidden",
    "log.error('failed')": "hidden",
    "fetch(url)": "?",
    "raise last": "raises",
    "return self.errors": "?",
}


BLOCKS = {
    "if urgent:": "",
    "with lock:": "",
    "try:": "except* KeyError: log.error('failed')",
    "match urgent:\n      case True:": "",
}


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("after", "ending"), ENCLOSING.items(), ids=ENCLOSING)
def test_what_follows_the_block_around_a_loop_tells_its_ending(block, after, ending):
    [site] = loops(f"""
    {block}
        for attempt in range(3):
            try:
                return fetch(url)
            except OSError as error:
                last = error
                time.sleep(1)
    {BLOCKS[block]}
    {after}
    """)
    assert site.behavior.ending == ending


def test_what_follows_a_loop_around_it_is_not_its_end():
    [site] = loops("""
    for url in urls:
        for attempt in range(3):
            try:
                fetch(url)
                break
            except OSError as error:
                time.sleep(1)
    raise Missing
    """)
    assert site.behavior.ending == "hidden"


@pytest.mark.parametrize(
    ("after", "ending"),
    [
        ("raise last", "raises"),
        ("if last: raise last from None", "raises"),
        ("raise Missing", "hidden"),
        ("return last", "hidden"),
    ],
)
def test_the_last_error_may_be_raised_after_a_loop_around_it(after, ending):
    [site] = loops(f"""
    for url in urls:
        for attempt in range(3):
            try:
                return fetch(url)
            except OSError as error:
                last = error
                time.sleep(1)
    {after}
    """)
    assert site.behavior.ending == ending


UNCHANGED = {
    "found = False": "hidden",
    "found = fallback()": "?",
    "pass": "?",
}


@pytest.mark.parametrize(("before", "ending"), UNCHANGED.items(), ids=UNCHANGED)
@pytest.mark.parametrize("failed", ["pass", "found = None", "found = explain()"])
def test_a_constant_from_before_the_loop_is_returned(before, ending, failed):
    [site] = loops(f"""
    {before}
    for attempt in range(3):
        try:
            found = fetch()
            break
        except OSError:
            {failed}
            time.sleep(1)
    return found
    """)
    endings = {"pass": ending, "found = None": "hidden"}
    assert site.behavior.ending == endings.get(failed, "?")


TOLD = {
    "if count > most: return False": "hidden",
    "if count > most: skipped += 1; self.report_skip(url); continue": "hidden",
    "if count > most: return fallback()": "?",
    "if count > most: store(url)": "?",
    "if urgent: return False": "?",
}


@pytest.mark.parametrize(("after", "ending"), TOLD.items(), ids=TOLD)
def test_a_test_of_the_count_after_the_loop_tells_its_ending(after, ending):
    [site] = loops(f"""
    for url in urls:
        count = 0
        while count <= most:
            try:
                fetch(url)
                break
            except OSError:
                count += 1
                time.sleep(1)
        {after}
        store(url)
    """)
    assert site.behavior.ending == ending


def test_a_finally_follows_a_loop():
    [site] = loops("""
    try:
        for attempt in range(3):
            try:
                return fetch()
            except OSError as error:
                runner.failed(error)
                time.sleep(1)
    finally:
        runner.close()
    return runner.result()
    """)
    assert site.behavior.ending == "raises"


@pytest.mark.parametrize(("last", "ending"), [("url", "?"), ("other", "hidden")])
def test_the_same_call_after_the_loop_may_raise(last, ending):
    [site] = loops(f"""
    for attempt in range(3):
        try:
            fetch(url)
            return
        except OSError:
            time.sleep(1)
    fetch({last})
    raise Unavailable
    """)
    assert site.behavior.ending == ending


@pytest.mark.parametrize(("given", "ending"), [("left", "?"), ("url", "hidden")])
def test_an_attempt_that_gets_the_count_may_raise_the_last_error(given, ending):
    [site] = loops(f"""
    left = 3
    while left >= 0:
        try:
            return fetch({given})
        except RetryError:
            time.sleep(1)
            left -= 1
    """)
    assert site.behavior.ending == ending


@pytest.mark.parametrize(
    ("handler", "ending"), [("continue", "?"), ("if urgent: continue", "hidden")]
)
def test_what_a_result_raises_is_not_the_end_of_errors(handler, ending):
    [site] = loops(f"""
    while True:
        try:
            answer = fetch()
        except OSError as error:
            spend(budget)
            time.sleep(1)
            {handler}
        if answer.good:
            return answer
        log.info("no retries")
        raise RefusedError(answer)
    """)
    assert site.behavior.ending == ending


@pytest.mark.parametrize(
    ("place", "ending"), [("trace['reason']", "?"), ("reason", "hidden")]
)
def test_an_error_may_be_put_into_a_dictionary(place, ending):
    [site] = loops(f"""
    for attempt in range(3):
        try:
            return fetch()
        except OSError as error:
            {place} = str(error)
            send(trace)
            time.sleep(1)
    """)
    assert site.behavior.ending == ending


@pytest.mark.parametrize(("method", "ending"), [("finalize", "?"), ("note", "hidden")])
def test_an_error_may_be_handed_over(method, ending):
    [site] = loops(f"""
    while True:
        try:
            return fetch()
        except OSError as error:
            if self.attempts > 3:
                self.{method}(error)
                break
            time.sleep(1)
    """)
    assert site.behavior.ending == ending


@pytest.mark.parametrize(
    ("other", "ending"), [("raise Error(str(error))", "raises"), ("pass", "hidden")]
)
def test_each_kind_of_error_may_be_raised(other, ending):
    [site] = loops(f"""
    for attempt in range(3):
        try:
            return fetch()
        except (OSError, ShopError) as error:
            if attempt == 2:
                if isinstance(error, ShopError):
                    raise
                else:
                    {other}
            time.sleep(1)
    raise Error("failed")
    """)
    assert site.behavior.ending == ending


@pytest.mark.parametrize(
    ("test", "ending"), [("timer.runs()", "?"), ("n < 9", "hidden")]
)
def test_a_condition_may_raise_the_error_that_it_has_got(test, ending):
    [site] = loops(f"""
    n = 0
    while {test}:
        try:
            answer = fetch()
            break
        except OSError as error:
            timer.set_exception(error)
            time.sleep(1)
            n += 1
    if not answer:
        raise RuntimeError("nothing")
    """)
    assert site.behavior.ending == ending


TOLD_BY_CALL = {
    "reply_text(text=f'no answer: {error}')": "?",
    "show_text(text=f'no answer: {error}')": "hidden",
    "self._set_error_status(error.reason)": "?",
    "self._set_timer(error.reason)": "hidden",
    "yield {'status': 'error', 'message': str(error)}": "?",
    "yield {'status': 'error'}": "hidden",
}


@pytest.mark.parametrize(
    ("told", "ending"), TOLD_BY_CALL.items(), ids=[*map(str, range(len(TOLD_BY_CALL)))]
)
def test_an_object_or_an_iterator_may_get_the_error(told, ending):
    [site] = loops(f"""
    for attempt in range(3):
        try:
            send()
            break
        except OSError as error:
            {told}
            time.sleep(1)
    """)
    assert site.behavior.ending == ending


@pytest.mark.parametrize(("name", "ending"), [("output", "?"), ("number", "hidden")])
def test_the_output_of_a_program_tells_of_its_error(name, ending):
    [site] = loops(f"""
    for attempt in range(3):
        try:
            return run(process)
        except TimeoutExpired:
            {name} = stop(process)
        time.sleep(1)
    raise DeviceError(f"failed: {{{name}}}")
    """)
    assert site.behavior.ending == ending


@pytest.mark.parametrize(("kept", "ending"), [("answer", "?"), ("FAILED", "hidden")])
def test_a_bad_answer_is_returned_after_the_last_attempt(kept, ending):
    [site] = loops(f"""
    status = FAILED
    for attempt in range(3):
        answer = send()
        if answer:
            try:
                return receive()
            except TimeoutError:
                log.debug("retrying")
        else:
            status = {kept}
    return status
    """)
    assert site.behavior.ending == ending
