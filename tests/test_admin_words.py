"""case 15, case 36: no word of a conversation is on any page of the admin, whoever looks."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from history_access.agent_platform import services
from history_access.agent_platform.models import Account, Message, Session, Turn
from history_access.models import TurnConversationRead
from tests.admin_pages import body, crawl, list_url, row_url, send, visitor
from tests.worlds import World, listed, pages

MARK = "unspeakable"


@pytest.fixture
def sessions(world: World) -> list[Session]:
    """A session that was read, one that was not, and a deleted one: each full of the mark."""
    world.allow("all_accounts")
    given: dict[str, Any] = {"person": world.mara, "account": world.acme, "title": f"{MARK} title"}
    made = [world.session(f"{MARK} question", f"{MARK} answer", **given) for _ in range(3)]
    for session in made:
        calls = [{"name": f"{MARK}_tool", "arguments": {"text": MARK}}]
        services.add_message(session, "agent", f"{MARK} again", tool_calls=calls)
        services.summarize_session(session, f"{MARK} summary", through=2)
    tools = world.tools(world.mara, account=world.acme)
    assert listed(tools)
    for session in made[1:]:
        pages(tools, session.pk)
        pages(tools, session.pk, view="summary")
    services.delete_session(made[2])
    assert TurnConversationRead.objects.count() > len(made)
    return made


@pytest.mark.parametrize("who", ["superuser_writer", "viewer"])
def test_no_page_that_can_be_reached_has_a_word(world: World, sessions: list[Session], who: str):
    visited = 0
    for url, response in crawl(visitor(world, who), "/admin/"):
        assert response.status_code < 500, url
        assert MARK not in response.content.decode(errors="replace"), url
        visited += 1
    assert visited > 100


def test_no_page_of_a_session_or_a_turn_has_a_word(world: World, sessions: list[Session]):
    client = visitor(world, "superuser_writer")
    rows = [*sessions, *Turn.objects.all(), *TurnConversationRead.objects.all()]
    for row in rows:
        for page in ("change", "history", "delete"):
            for response in (client.get(row_url(row, page)), client.post(row_url(row, page), {"title": "x"})):
                assert MARK not in body(response)


def test_a_deleted_session_is_absent(world: World, sessions: list[Session]):
    client, deleted = visitor(world, "superuser_writer"), sessions[2]
    shown = client.get(list_url(Session)).context["cl"].result_list
    assert deleted not in shown
    assert sessions[0] in shown
    assert client.get(list_url(Session), {"q": str(deleted.pk)}).context["cl"].result_count == 0
    assert client.get(row_url(deleted)).status_code == 302


def test_no_list_can_be_asked_about_words(world: World, sessions: list[Session]):
    client = visitor(world, "superuser_writer")
    for model in (Session, Turn, Account):
        assert _found(client, model, {"q": MARK}) == 0
        assert _found(client, model, {"q": f"{MARK} title"}) == 0
    for lookup in ("title", "title__startswith", "summary__contains", "messages__text__contains"):
        assert client.get(list_url(Session), {lookup: MARK}).status_code == 400, lookup
        assert client.get(list_url(Turn), {f"session__{lookup}": MARK}).status_code == 400, lookup
    assert client.get(list_url(Account), {"session__title__startswith": MARK}).status_code == 400


def _found(client: Client, model: Any, query: dict[str, str]) -> int:
    count: int = client.get(list_url(model), query).context["cl"].result_count
    return count


def test_the_words_of_a_session_stay_in_the_database(world: World, sessions: list[Session]):
    client = visitor(world, "superuser_writer")
    for row in client.get(list_url(Session)).context["cl"].result_list:
        assert row.get_deferred_fields() == {"title", "summary"}


def test_messages_are_nowhere(world: World, sessions: list[Session]):
    client = visitor(world, "superuser_writer")
    assert client.get(f"/admin/{Message._meta.label_lower.replace('.', '/')}/").status_code == 404
    asked = f"{reverse('admin:autocomplete')}?app_label=agent_platform&model_name=message&field_name=session"
    assert MARK not in body(client.get(asked))


def test_an_error_of_a_form_has_no_word(world: World, sessions: list[Session]):
    client = visitor(world, "superuser_writer")
    response = send(client, row_url(world.agent), name="")
    assert response.status_code == 200
    assert MARK not in body(response)
