"""Streams of tokens of OpenAI and Anthropic, which a server on loopback cuts."""

import asyncio
import json
from contextlib import aclosing, closing
from dataclasses import replace

import anthropic
import openai
import pytest

from retrykit import StopReason, retry, state_of, streams
from retrykit.integrations import anthropic as for_anthropic, openai as for_openai
from tests._support.scripted_server import answer, close, reset, serve
from tests._support.sdk_clients import MESSAGES, SECRET

QUICK = {"schedule": [0] * 3, "max_attempts": 4}
TOKENS = ["Be", "cause", " of", " it"]


def sse(event, **data):
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


class OpenAI:
    """The stream of a chat completion."""

    policy = staticmethod(for_openai.policy)
    overload = sse("", error={"type": "server_error", "message": "no"})
    refusal = sse("", error={"type": "invalid_request_error", "message": "no"})
    head = b""
    tail = sse("", id="1", choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    tail += b"data: [DONE]\n\n"

    @staticmethod
    def token(text):
        return sse("", id="1", choices=[{"index": 0, "delta": {"content": text}}])

    @staticmethod
    def read(url):
        def tokens():
            with (
                openai.OpenAI(
                    api_key=SECRET, base_url=f"{url}/v1", max_retries=0, timeout=5
                ) as client,
                client.chat.completions.create(
                    model="m", messages=MESSAGES, stream=True
                ) as stream,
            ):
                for chunk in stream:
                    if text := chunk.choices[0].delta.content:
                        yield text

        return tokens

    @staticmethod
    def aread(url):
        async def tokens():
            async with openai.AsyncOpenAI(
                api_key=SECRET, base_url=f"{url}/v1", max_retries=0, timeout=5
            ) as client:
                stream = await client.chat.completions.create(
                    model="m", messages=MESSAGES, stream=True
                )
                async with stream:
                    async for chunk in stream:
                        if text := chunk.choices[0].delta.content:
                            yield text

        return tokens


MESSAGE = {
    "id": "1",
    "type": "message",
    "role": "assistant",
    "content": [],
    "model": "m",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


class Anthropic:
    """The stream of a message, of which the text is read."""

    policy = staticmethod(for_anthropic.policy)
    overload = sse("error", type="error", error={"type": "overloaded_error"})
    refusal = sse("error", type="error", error={"type": "invalid_request_error"})
    head = sse("message_start", type="message_start", message=MESSAGE) + sse(
        "content_block_start",
        type="content_block_start",
        index=0,
        content_block={"type": "text", "text": ""},
    )
    tail = (
        sse("content_block_stop", type="content_block_stop", index=0)
        + sse(
            "message_delta",
            type="message_delta",
            delta={"stop_reason": "end_turn"},
            usage={"output_tokens": 4},
        )
        + sse("message_stop", type="message_stop")
    )

    @staticmethod
    def token(text):
        return sse(
            "content_block_delta",
            type="content_block_delta",
            index=0,
            delta={"type": "text_delta", "text": text},
        )

    @staticmethod
    def read(url):
        def tokens():
            with (
                anthropic.Anthropic(
                    api_key=SECRET, base_url=url, max_retries=0, timeout=5
                ) as client,
                client.messages.stream(
                    model="m", max_tokens=9, messages=MESSAGES
                ) as stream,
            ):
                yield from stream.text_stream

        return tokens

    @staticmethod
    def aread(url):
        async def tokens():
            async with (
                anthropic.AsyncAnthropic(
                    api_key=SECRET, base_url=url, max_retries=0, timeout=5
                ) as client,
                client.messages.stream(
                    model="m", max_tokens=9, messages=MESSAGES
                ) as stream,
            ):
                async for text in stream.text_stream:
                    yield text

        return tokens


@pytest.fixture(params=[OpenAI, Anthropic])
def api(request):
    return request.param


@pytest.fixture(params=["sync", "async"])
def read(request, api):
    """Return a function that reads a stream: its tokens, its state and its error."""

    def collect(url):
        got, error = [], None
        decorate = retry(api.policy(**QUICK), stream="until-first-item")
        with closing(decorate(api.read(url))()) as stream:
            try:
                got.extend(stream)
            except Exception as raised:  # noqa: BLE001  what it is, is tested
                error = raised
        return got, stream.state, error

    async def acollect(url):
        got, error = [], None
        decorate = retry(api.policy(**QUICK), stream="until-first-item")
        async with aclosing(decorate(api.aread(url))()) as stream:
            try:
                async for token in stream:
                    got.append(token)  # noqa: PERF401  kept if there is an error
            except Exception as raised:  # noqa: BLE001  what it is, is tested
                error = raised
        return got, stream.state, error

    def run(url):
        return collect(url) if request.param == "sync" else asyncio.run(acollect(url))

    return run


def events(api, tokens=(), *, begun=True, end=b""):
    """Return the bytes of the events of an answer."""
    return (api.head if begun else b"") + b"".join(map(api.token, tokens)) + end


def streamed(data, *, cut=False):
    """Answer with events; or with these, and close the connection before the end."""
    head = [("Content-Type", "text/event-stream")]
    step = answer(headers=head, body=data, chunked=True)
    if cut:
        # The last chunk is missing.
        body = step.body.removesuffix(b"0\r\n\r\n")
        step = replace(step, body=body, end="closed")
    return step


def whole(api):
    return streamed(events(api, TOKENS, end=api.tail))


BEFORE = {
    "no answer": lambda _: close(),
    "a reset": lambda _: reset(),
    "503": lambda _: answer(503, body=b"{}"),
    "529": lambda _: answer(529, body=b"{}"),
    "429": lambda _: answer(429, body=b"{}"),
    "cut before the first event": lambda api: streamed(
        events(api, begun=False, end=b": a comment\n\n"), cut=True
    ),
    "cut before the first token": lambda api: streamed(
        events(api, end=b": a comment\n\n"), cut=True
    ),
    "an event of an overload": lambda api: streamed(events(api, end=api.overload)),
}


@pytest.mark.parametrize("fault", BEFORE.values(), ids=BEFORE)
def test_a_stream_that_fails_before_its_first_token_is_retried(api, read, fault):
    with serve(fault(api), fault(api), whole(api)) as server:
        got, state, error = read(server.url)
    assert (got, error) == (TOKENS, None)
    assert (len(server.seen), state.attempt, state.stream.items) == (3, 3, 4)


AFTER = {
    "cut": lambda api: streamed(events(api, TOKENS[:2]), cut=True),
    "an event of an overload": lambda api: streamed(
        events(api, TOKENS[:2], end=api.overload)
    ),
}


@pytest.mark.parametrize("fault", AFTER.values(), ids=AFTER)
def test_a_stream_that_fails_after_a_token_raises_its_error(api, read, fault):
    with serve(close(), fault(api), whole(api)) as server:
        got, state, error = read(server.url)
    assert (got, len(server.seen)) == (TOKENS[:2], 2)
    # It would have been retried before.
    assert api.policy().on(error)
    assert state_of(error).attempt == state.attempt == 2
    assert (state.stop_reason, state.stop_detail) == (
        StopReason.NOT_RETRYABLE,
        "2 items had been handed out",
    )


def test_a_permanent_event_is_not_retried(api, read):
    with serve(streamed(events(api, end=api.refusal)), whole(api)) as server:
        got, state, error = read(server.url)
    assert (got, len(server.seen), state.attempt) == ([], 1, 1)
    assert isinstance(error, (openai.APIError, anthropic.APIStatusError))


def test_a_stream_that_ends_without_its_last_event_raises_nothing(api, read):
    """The SDKs do not notice, so the function must look for the reason of the end."""
    with serve(streamed(events(api, TOKENS[:2]))) as server:
        got, state, error = read(server.url)
    assert (got, error, state.status) == (TOKENS[:2], None, "succeeded")


def test_the_exceptions_of_a_cut_are_those_of_each_sdk(api, read):
    with serve(streamed(events(api, TOKENS[:1]), cut=True)) as server:
        _, _, error = read(server.url)
    kind = "APIConnectionError" if api is OpenAI else "RemoteProtocolError"
    assert type(error).__name__ == kind


RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 0,
    "model": "m",
    "output": [],
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
}


def background(*numbers):
    """Return the events of a response in the background, by their numbers."""
    created = sse(
        "response.created",
        type="response.created",
        sequence_number=0,
        response=RESPONSE,
    )
    deltas = [
        sse(
            "response.output_text.delta",
            type="response.output_text.delta",
            sequence_number=number,
            delta=TOKENS[number - 1],
            item_id="1",
            output_index=0,
            content_index=0,
            logprobs=[],
        )
        for number in numbers
        if number
    ]
    return b"".join([created] * (0 in numbers) + deltas)


def behind(last_item, _state):
    response_id, event = last_item
    return {"response_id": response_id, "behind": event.sequence_number}


def paths(server):
    return [f"{each.method} {each.path}" for each in server.seen]


EXPECTED = [
    "POST /v1/responses",
    "POST /v1/responses",
    "GET /v1/responses/resp_1?starting_after=2&stream=true",
    "GET /v1/responses/resp_1?starting_after=2&stream=true",
    "GET /v1/responses/resp_1?starting_after=3&stream=true",
]


def cuts():
    return (
        close(),
        streamed(background(0, 1, 2), cut=True),
        reset(),
        streamed(background(3), cut=True),
        streamed(background(4)),
    )


def test_a_response_in_the_background_goes_on_behind_its_last_event():
    """It is generated, and paid for, once."""
    with (
        serve(*cuts()) as server,
        openai.OpenAI(
            api_key=SECRET, base_url=f"{server.url}/v1", max_retries=0, timeout=5
        ) as client,
    ):

        @retry(for_openai.policy(**QUICK), stream=streams.resume(behind))
        def ask(question, response_id=None, behind=None):
            if response_id is None:
                stream = client.responses.create(
                    model="m", input=question, background=True, stream=True
                )
            else:
                stream = client.responses.retrieve(
                    response_id, stream=True, starting_after=behind
                )
            with stream:
                for event in stream:
                    if event.type == "response.created":
                        response_id = event.response.id
                    yield response_id, event

        numbers = [event.sequence_number for _, event in ask("Why?")]
    assert numbers == [0, 1, 2, 3, 4]
    assert paths(server) == EXPECTED


def test_an_async_response_in_the_background_goes_on_behind_its_last_event():
    async def main(url):
        async with openai.AsyncOpenAI(
            api_key=SECRET, base_url=f"{url}/v1", max_retries=0, timeout=5
        ) as client:

            @retry(for_openai.policy(**QUICK), stream=streams.resume(behind))
            async def ask(question, response_id=None, behind=None):
                if response_id is None:
                    stream = await client.responses.create(
                        model="m", input=question, background=True, stream=True
                    )
                else:
                    stream = await client.responses.retrieve(
                        response_id, stream=True, starting_after=behind
                    )
                async with stream:
                    async for event in stream:
                        if event.type == "response.created":
                            response_id = event.response.id
                        yield response_id, event

            return [event.sequence_number async for _, event in ask("Why?")]

    with serve(*cuts()) as server:
        assert asyncio.run(main(server.url)) == [0, 1, 2, 3, 4]
    assert paths(server) == EXPECTED
