"""A small server on loopback that speaks what models are asked in, as far as a loop with tools needs it.

OpenAI's Chat Completions (whole, and as a stream) and Responses, and Anthropic's Messages. It refuses with a
400 what the real ones refuse: a definition of another form, a call without its answer, an answer without its
call. What it replies is up to a script, which sees the messages alone, in the form of Chat Completions.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import zip_longest
from threading import Thread
from typing import Any

Message = dict[str, Any]
Script = Callable[[list[Message]], Message]

KEY = "sk-loopback"
_FRAGMENT = 7
_STRICT_KEYWORDS = {"type", "description", "enum"}


class RefusedError(Exception):
    """The request breaks a rule of its API."""


class Server(ThreadingHTTPServer):
    """Replies by a script; keeps what it was asked: all bodies, and of the last its tools and messages."""

    daemon_threads = False

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.asked: list[dict[str, Any]] = []
        self.functions: list[dict[str, Any]] = []
        self.messages: list[Message] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving(script: Script) -> Iterator[Server]:
    """A server that runs during a block."""
    with Server(script) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            kind, parts = self._answer(body)
            self._send(200, kind, parts)
        except RefusedError as error:
            told = {"message": str(error), "type": "invalid_request_error", "param": None, "code": None}
            self._send(400, "application/json", [json.dumps({"error": told}).encode()])

    def _answer(self, body: dict[str, Any]) -> tuple[str, Iterable[bytes]]:
        if KEY not in (
            self.headers["X-Api-Key"],
            (self.headers["Authorization"] or "").removeprefix("Bearer "),
        ):
            raise RefusedError("no key")
        messages_of, tool_of, written = _APIS[self.path]
        if "tools" in body and not body["tools"]:
            raise RefusedError("tools: an empty list")
        functions = [{"strict": False, **tool_of(tool)} for tool in body.get("tools", ())]
        for function in functions:
            _check_function(function)
        messages = list(messages_of(body))
        _check_messages(messages)
        self.server.asked.append(body)
        self.server.functions, self.server.messages = functions, messages
        reply = self.server.script(messages)
        if body.get("stream"):
            usage = (body.get("stream_options") or {}).get("include_usage", False)
            return "text/event-stream", _chat_events(reply, usage=usage)
        return "application/json", [json.dumps(written(reply)).encode()]

    def _send(self, status: int, kind: str, parts: Iterable[bytes]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in parts:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *given: Any) -> None:
        """Nothing: a test that fails says why."""


def _check_function(function: dict[str, Any]) -> None:
    if set(function) != {"name", "description", "parameters", "strict"}:
        raise RefusedError(f"tools: {sorted(function)}")
    schema = function["parameters"]
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]) or schema["type"] != "object":
        raise RefusedError(f"tools: {function}")
    if function["strict"] and (
        schema["required"] != list(schema["properties"])
        or schema["additionalProperties"] is not False
        or any(set(said) - _STRICT_KEYWORDS for said in schema["properties"].values())
    ):
        raise RefusedError(f"tools: not strict: {schema}")


def _check_messages(messages: list[Message]) -> None:
    """Each call is answered once, with a text, before anything else is said."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting or not isinstance(message["content"], str):
                raise RefusedError(f"no such call, or no text: {message}")
            waiting.remove(message["tool_call_id"])
        elif waiting:
            break
        else:
            waiting = {call["id"] for call in message.get("tool_calls") or ()}
    if waiting:
        raise RefusedError(f"not answered: {sorted(waiting)}")


def _only(given: dict[str, Any], **expected: Any) -> dict[str, Any]:
    """The rest of an object whose parts are as expected; a RefusedError where one is not."""
    if {name: given.get(name) for name in expected} != expected:
        raise RefusedError(f"{given} is not {expected}")
    return {name: value for name, value in given.items() if name not in expected}


def _called(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


# Chat Completions


def _chat_messages(body: dict[str, Any]) -> Iterable[Message]:
    return body["messages"]


def _chat_tool(tool: dict[str, Any]) -> dict[str, Any]:
    return dict(_only(tool, type="function").pop("function"))


def _chat(reply: Message) -> dict[str, Any]:
    choice = {"index": 0, "message": reply, "logprobs": None, "finish_reason": _ending(reply)}
    return {**_head("chat.completion"), "choices": [choice]}


def _ending(reply: Message) -> str:
    return "tool_calls" if reply.get("tool_calls") else "stop"


def _head(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "scripted"}


def _chat_events(reply: Message, *, usage: bool) -> Iterator[bytes]:
    """A reply as server-sent events: its text, and the arguments of its calls, in fragments."""
    for delta in _deltas(reply):
        yield _event(choices=[{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])
    yield _event(choices=[{"index": 0, "delta": {}, "logprobs": None, "finish_reason": _ending(reply)}])
    if usage:
        yield _event(choices=[], usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})
    yield b"data: [DONE]\n\n"


def _event(**told: Any) -> bytes:
    return b"data: " + json.dumps({**_head("chat.completion.chunk"), **told}).encode() + b"\n\n"


def _deltas(reply: Message) -> Iterator[dict[str, Any]]:
    """The calls begin one after the other, and their fragments come in turns."""
    yield {"role": "assistant", "content": None if reply["content"] is None else ""}
    for text in _fragments(reply["content"] or ""):
        yield {"content": text}
    calls = reply.get("tool_calls") or []
    for index, call in enumerate(calls):
        begun = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield {"tool_calls": [begun]}
    for row in zip_longest(*(_fragments(call["function"]["arguments"]) for call in calls)):
        for index, text in enumerate(row):
            if text is not None:
                yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def _fragments(text: str) -> list[str]:
    return [text[start : start + _FRAGMENT] for start in range(0, len(text), _FRAGMENT)]


# Responses


def _response_messages(body: dict[str, Any]) -> Iterator[Message]:
    calls: list[dict[str, Any]] = []
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "function_call":
            calls.append(_called(item["call_id"], item["name"], item["arguments"]))
            continue
        if calls:
            yield {"role": "assistant", "content": None, "tool_calls": calls}
            calls = []
        if kind == "function_call_output":
            yield {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
        else:
            yield {"role": item["role"], "content": item["content"]}


def _response_tool(tool: dict[str, Any]) -> dict[str, Any]:
    return _only(tool, type="function")


def _response(reply: Message) -> dict[str, Any]:
    output: list[dict[str, Any]] = [
        {"type": "function_call", "id": f"fc-{call['id']}", "call_id": call["id"], **call["function"]}
        for call in reply.get("tool_calls") or ()
    ]
    if reply["content"]:
        text = {"type": "output_text", "text": reply["content"], "annotations": []}
        output.append(
            {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
        )
    return {"id": "r", "object": "response", "created_at": 1, "model": "scripted", "output": output}


# Anthropic's Messages


def _anthropic_messages(body: dict[str, Any]) -> Iterator[Message]:
    for message in body["messages"]:
        if isinstance(message["content"], str):
            yield message
        elif message["role"] == "assistant":
            used = (block for block in message["content"] if block["type"] == "tool_use")
            calls = [_called(block["id"], block["name"], json.dumps(block["input"])) for block in used]
            yield {"role": "assistant", "content": None, "tool_calls": calls}
        else:
            for block in message["content"]:
                result = _only(block, type="tool_result")
                if type(result.get("is_error")) is not bool:
                    raise RefusedError(f"is_error: {block}")
                yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": block["content"]}


def _anthropic_tool(tool: dict[str, Any]) -> dict[str, Any]:
    rest = dict(tool)
    return {"parameters": rest.pop("input_schema"), **rest}


def _anthropic(reply: Message) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply["content"]}] if reply["content"] else []
    for call in reply.get("tool_calls") or ():
        function = call["function"]
        used = {"name": function["name"], "input": json.loads(function["arguments"])}
        content.append({"type": "tool_use", "id": call["id"], **used})
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": "tool_use" if reply.get("tool_calls") else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


_APIS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "/v1/chat/completions": (_chat_messages, _chat_tool, _chat),
    "/v1/responses": (_response_messages, _response_tool, _response),
    "/v1/messages": (_anthropic_messages, _anthropic_tool, _anthropic),
}
"""By path: the messages of a request, the function that a tool is, and a reply, each in its API's form."""
