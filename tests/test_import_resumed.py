"""An import can be run again, after an interruption or beside another one: nothing is doubled or lost."""

import io
import itertools
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connections, transaction

from history_access.agent_platform import import_format, imports, services
from history_access.agent_platform.models import Account, Message, Session
from tests.import_files import Run, conversation, stored, summary, write


@pytest.mark.parametrize(
    "change",
    [
        lambda session: services.add_message(session, "person", "Thanks"),
        lambda session: services.trim_session(session, before=3),
        lambda session: services.trim_session(session, before=90),
        services.delete_session,
    ],
    ids=["moved on", "trimmed", "emptied", "deleted"],
)
def test_a_conversation_that_lived_on_since_is_there_already_and_stays_as_it_is(world, tmp_path, change):
    file = write(tmp_path, conversation())
    Run.of(file)
    change(Session.objects.get())
    before = stored()
    assert Run.of(file) == Run(summary(there=1), [], failed=False)
    assert stored() == before


@pytest.mark.parametrize("breaks_at", [1, 6, 11, 24])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_import_goes_on_where_it_ended_with_nothing_half_done(
    open_world, tmp_path, monkeypatch, error, breaks_at
):
    monkeypatch.setattr(imports, "_BATCH", 4)
    file = write(tmp_path, *(conversation(str(number), account=str(number)) for number in range(4)))
    with monkeypatch.context() as patch, pytest.raises((error, CommandError)):
        patch.setattr(imports, "_messages", interrupted(imports._messages, error, breaks_at))
        call_command("import_conversations", file, agent="Digest", stderr=io.StringIO())
    whole = (breaks_at - 1) // 6
    assert (Session.objects.count(), Message.objects.count()) == (whole, whole * 6)
    assert Account.objects.filter(name__in="0123").count() == whole
    assert Run.of(file).summary == summary(imported=4 - whole, there=whole, messages=(4 - whole) * 6)
    assert Run.of(file) == Run(summary(there=4), [], failed=False)
    assert (Session.objects.count(), Message.objects.count()) == (4, 24)


def test_an_interruption_by_hand_says_what_is_done_and_how_to_go_on(world, tmp_path, monkeypatch):
    monkeypatch.setattr(imports, "_messages", interrupted(imports._messages, KeyboardInterrupt, 7))
    with pytest.raises(CommandError) as caught:
        call_command(
            "import_conversations", write(tmp_path, conversation(), conversation("two")), agent="Digest"
        )
    assert str(caught.value) == f"Interrupted: {summary(imported=1, messages=6)}. Run it again to go on."
    assert caught.value.returncode == 130


def interrupted(messages: Any, error: type[BaseException], breaks_at: int) -> Any:
    """The same messages, but at the given one of all that come the error is raised."""
    count = itertools.count(1)

    def until(*given: Any) -> Iterator[Message]:
        for message in messages(*given):
            if next(count) == breaks_at:
                raise error
            yield message

    return until


def test_imports_of_one_file_at_once_double_nothing(open_world, tmp_path):
    file = write(tmp_path, *(conversation(str(number), account=f"{number % 7}") for number in range(60)))
    runs: list[Run] = []

    def work() -> None:
        runs.append(Run.of(file))
        connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [run.failed for run in runs] == [False] * 3
    assert (Session.objects.count(), Message.objects.count()) == (60, 360)
    assert Account.objects.filter(name__in="0123456").count() == 7
    assert get_user_model().objects.filter(username="guest").count() == 1


def test_an_account_that_another_import_is_opening_is_waited_for(open_world):
    opened = threading.Event()

    def other() -> None:
        with transaction.atomic():
            imports.import_conversation(open_world.agent, given("one"))
            opened.set()
            time.sleep(0.3)
        connections.close_all()

    thread = threading.Thread(target=other)
    thread.start()
    assert opened.wait(20)
    assert imports.import_conversation(open_world.agent, given("two"))
    thread.join()
    assert Account.objects.get(name="Calder").session_set.count() == 2


def given(name: str) -> import_format.GivenConversation:
    """A conversation of an account and of nobody, ready to be imported."""
    content = json.dumps(conversation(name, person=None)).encode()
    return import_format.conversation_of(import_format.Line(1, len(content), content))
