"""refs-per-turn: which submitted strings name a conversation, which break a rule, and which name nobody's.

Scheme, host and port equal, the path as the platform declares it, no query, no fragment, no user info, and
never fetched. `ID` and `AGENT` stand for the right keys; the platform has the frontends of `FRONTENDS`.
"""

import socket
import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from history_access.agent_platform.models import Agent, Session
from history_access.entries import CONVERSATIONS
from history_access.models import TurnReference
from history_access.reach import Handover, handover_of
from history_access.references import ReferencesError, bind_references
from history_access.references.addresses import Address, AddressError, Named, named
from history_access.references.binding import key_named, read_entry
from tests.worlds import World

ID = "019307e0-1c1c-7d3a-9a4e-0b5c6d7e8f90"
AGENT = "019307e0-0000-7000-8000-00000000a9e1"

FRONTENDS = [
    "https://hollowbrook.example/conversations/{id}",
    "https://chat.hollowbrook.example/agents/{agent}/threads/{id}",
    "https://desk.example:8443/open/{id}/",
    "http://localhost:8000/c/{id}",
    "https://Bücher.example:443/c/{id}",
]

BOUND, NOBODY = "the conversation", "no conversation's key"
"""NOBODY: well-formed, and refused with the one answer for whatever cannot be handed over."""

PLATFORM = "of this platform"
WITHOUT = "without query, fragment, backslash, white space and control characters"
PORT = "must have a host, no user info, and a port, if any, that is a plain number"
LETTER = "to the letter"
ENCODED = "percent-encoded"
LENGTH = "1 to 2048 characters"

ENCODED_ID = "".join(f"%{ord(letter):02X}" for letter in ID)

TABLE: dict[str, str] = {
    # Ids, in their one exact spelling
    "ID": BOUND,
    ID.upper(): NOBODY,
    ID.replace("-", ""): NOBODY,
    "{ID}": NOBODY,
    "urn:uuid:ID": NOBODY,
    " ID": NOBODY,
    "ID ": NOBODY,
    "ID\n": NOBODY,
    "\tID": NOBODY,
    "ID\0": NOBODY,
    "\0": NOBODY,
    "ID\ud800": NOBODY,
    "\ud800\udc00": NOBODY,
    "\u202eID": NOBODY,
    "\u200bID": NOBODY,
    "ID\ufeff": NOBODY,
    ID.replace("0", "０"): NOBODY,
    ID.replace("a", "а"): NOBODY,
    ID.replace("-", "‐"): NOBODY,
    ENCODED_ID: NOBODY,
    "ID,ID": NOBODY,
    "ID?": NOBODY,
    "ID#": NOBODY,
    "*": NOBODY,
    "%": NOBODY,
    "' OR 1=1 --": NOBODY,
    "7": NOBODY,
    "None": NOBODY,
    "": LENGTH,
    " ": NOBODY,
    "x" * 2_048: NOBODY,
    "x" * 2_049: LENGTH,
    # Addresses as they are shown
    "https://hollowbrook.example/conversations/ID": BOUND,
    "https://chat.hollowbrook.example/agents/AGENT/threads/ID": BOUND,
    "https://desk.example:8443/open/ID/": BOUND,
    "http://localhost:8000/c/ID": BOUND,
    "https://bücher.example/c/ID": BOUND,
    "https://xn--bcher-kva.example/c/ID": BOUND,
    # Scheme and host: ASCII case does not count, the scheme's own port may be written
    "HTTPS://hollowbrook.example/conversations/ID": BOUND,
    "https://HollowBrook.EXAMPLE/conversations/ID": BOUND,
    "https://hollowbrook.example:443/conversations/ID": BOUND,
    "https://xn--bcher-kva.example:443/c/ID": BOUND,
    "https://XN--BCHER-KVA.example/c/ID": BOUND,
    "https://Bücher.Example/c/ID": BOUND,
    "https://BÜCHER.example/c/ID": PLATFORM,
    "https://bu\u0308cher.example/c/ID": PLATFORM,
    "https://bucher.example/c/ID": PLATFORM,
    "https://xn--bcher-kvb.example/c/ID": PLATFORM,
    # Another origin
    "http://hollowbrook.example/conversations/ID": PLATFORM,
    "ftp://hollowbrook.example/conversations/ID": PLATFORM,
    "wss://hollowbrook.example/conversations/ID": PLATFORM,
    "https://hollowbrook.example:80/conversations/ID": PLATFORM,
    "https://hollowbrook.example:8443/conversations/ID": PLATFORM,
    "https://desk.example/open/ID/": PLATFORM,
    "https://desk.example:443/open/ID/": PLATFORM,
    "http://localhost/c/ID": PLATFORM,
    "http://127.0.0.1:8000/c/ID": PLATFORM,
    "https://www.hollowbrook.example/conversations/ID": PLATFORM,
    "https://example/conversations/ID": PLATFORM,
    "https://hollowbrook.example.evil.example/conversations/ID": PLATFORM,
    "https://evil-hollowbrook.example/conversations/ID": PLATFORM,
    "https://hollowbrook.example./conversations/ID": PLATFORM,
    "https://.hollowbrook.example/conversations/ID": PLATFORM,
    "https://hollowbrook..example/conversations/ID": PLATFORM,
    "https://%68ollowbrook.example/conversations/ID": PLATFORM,
    "https://hollowbrook%2Eexample/conversations/ID": PLATFORM,
    "https://evil.example/https://hollowbrook.example/conversations/ID": PLATFORM,
    # Look-alikes
    "https://hоllowbrook.example/conversations/ID": PLATFORM,
    "https://ｈollowbrook.example/conversations/ID": PLATFORM,
    "https://hollowbroo\u212a.example/conversations/ID": PLATFORM,
    "https://hollowbrook。example/conversations/ID": PLATFORM,
    "https://hollowbrook\u2024example/conversations/ID": PLATFORM,
    "https://hollow\u00adbrook.example/conversations/ID": PLATFORM,
    "https://hollow\u200dbrook.example/conversations/ID": PLATFORM,
    "https://\u202ehollowbrook.example/conversations/ID": PLATFORM,
    "https://hollowbrook.example\u2215conversations/ID": PLATFORM,
    "ｈttps://hollowbrook.example/conversations/ID": NOBODY,
    # Ports that are no plain numbers
    "https://hollowbrook.example:/conversations/ID": PORT,
    "https://hollowbrook.example:0443/conversations/ID": PORT,
    "https://hollowbrook.example:+443/conversations/ID": PORT,
    "https://hollowbrook.example:４４３/conversations/ID": PORT,
    "https://hollowbrook.example:443:443/conversations/ID": PORT,
    "https://hollowbrook.example:https/conversations/ID": PORT,
    # User info and hosts that are none
    "https://mara@hollowbrook.example/conversations/ID": PORT,
    "https://mara:secret@hollowbrook.example/conversations/ID": PORT,
    "https://@hollowbrook.example/conversations/ID": PORT,
    "https://hollowbrook.example@evil.example/conversations/ID": PORT,
    "https://evil.example%40hollowbrook.example/conversations/ID": PLATFORM,
    "https:///conversations/ID": PORT,
    "https://[::1]/conversations/ID": PORT,
    "file:///conversations/ID": PORT,
    # Query and fragment, even empty ones
    "https://hollowbrook.example/conversations/ID?view=all": WITHOUT,
    "https://hollowbrook.example/conversations/ID?": WITHOUT,
    "https://hollowbrook.example/conversations/ID#message-3": WITHOUT,
    "https://hollowbrook.example/conversations/ID#": WITHOUT,
    "https://hollowbrook.example/conversations?id=ID": WITHOUT,
    "https://evil.example?https://hollowbrook.example/conversations/ID": WITHOUT,
    "https://evil.example#https://hollowbrook.example/conversations/ID": WITHOUT,
    "https://hollowbrook.example/conversations/ID%3F": NOBODY,
    "https://hollowbrook.example/conversations/ID%23": NOBODY,
    # Backslashes, white space, control characters
    "https://hollowbrook.example\\conversations\\ID": WITHOUT,
    "https://evil.example\\@hollowbrook.example/conversations/ID": WITHOUT,
    "https:\\\\hollowbrook.example/conversations/ID": NOBODY,
    " https://hollowbrook.example/conversations/ID": NOBODY,
    "https://hollowbrook.example/conversations/ID ": WITHOUT,
    "https://hollowbrook.example/conversations/ID\n": WITHOUT,
    "https://hollowbrook.example/conversations/ID\r\nHost: evil.example": WITHOUT,
    "https://hollow\tbrook.example/conversations/ID": WITHOUT,
    "https://hollowbrook.example/conversations/\0ID": WITHOUT,
    "https://hollowbrook.example/conversations/ID\x7f": WITHOUT,
    "https://hollowbrook.example/conversations/ID\x85": WITHOUT,
    "https://hollowbrook.example/conversations/ID\u00a0": WITHOUT,
    "https://hollowbrook.example/conversations/ID\u2028": WITHOUT,
    "https://hollowbrook.example/conversations/ID\u3000": WITHOUT,
    "https://hollowbrook.example/conversations/ID\udc80": WITHOUT,
    "https://hollowbrook.example/conversations/\u202eID": NOBODY,
    # The path, to the letter
    "https://hollowbrook.example/conversations/ID/": LETTER,
    "https://desk.example:8443/open/ID": LETTER,
    "https://hollowbrook.example//conversations/ID": LETTER,
    "https://hollowbrook.example/Conversations/ID": LETTER,
    "https://hollowbrook.example/conversation/ID": LETTER,
    "https://hollowbrook.example/%63onversations/ID": LETTER,
    "https://hollowbrook.example/x/../conversations/ID": LETTER,
    "https://hollowbrook.example/./conversations/ID": LETTER,
    "https://hollowbrook.example/conversations/x/../ID": LETTER,
    "https://hollowbrook.example/conversations/%2e%2e/conversations/ID": LETTER,
    "https://hollowbrook.example/conversations/ID/..": LETTER,
    "https://hollowbrook.example/conversations/ID;v=1": NOBODY,
    "https://hollowbrook.example/conversations/": LETTER,
    "https://hollowbrook.example/conversations": LETTER,
    "https://hollowbrook.example/": LETTER,
    "https://hollowbrook.example": LETTER,
    "https://hollowbrook.example/agents/AGENT/threads/ID": LETTER,
    "https://chat.hollowbrook.example/conversations/ID": LETTER,
    "https://chat.hollowbrook.example/agents/threads/ID": LETTER,
    "https://chat.hollowbrook.example/agents//threads/ID": LETTER,
    # Percent-encoding, read once, in the id and in the agent
    f"https://hollowbrook.example/conversations/{ENCODED_ID}": BOUND,
    f"https://hollowbrook.example/conversations/{ENCODED_ID.lower()}": BOUND,
    f"https://hollowbrook.example/conversations/{ENCODED_ID.replace('%', '%25')}": NOBODY,
    "https://hollowbrook.example/conversations/ID%20": NOBODY,
    "https://hollowbrook.example/conversations/ID%00": NOBODY,
    "https://hollowbrook.example/conversations/x%2FID": NOBODY,
    "https://hollowbrook.example/conversations%2FID": LETTER,
    "https://hollowbrook.example/conversations/%5CID": NOBODY,
    "https://hollowbrook.example/conversations/ID%": ENCODED,
    "https://hollowbrook.example/conversations/ID%4": ENCODED,
    "https://hollowbrook.example/conversations/ID%zz": ENCODED,
    "https://hollowbrook.example/conversations/ID%u0041": ENCODED,
    "https://hollowbrook.example/conversations/ID%FF": ENCODED,
    "https://hollowbrook.example/conversations/ID%C0%AE": ENCODED,
    "https://hollowbrook.example/conversations/ID%ED%A0%80": ENCODED,
    "https://hollowbrook.example/conversations/ID%E2%80%AE": NOBODY,
    f"https://hollowbrook.example/conversations/{ID.upper()}": NOBODY,
    "https://hollowbrook.example/conversations/{ID}": NOBODY,
    "https://hollowbrook.example/conversations/{id}": NOBODY,
    # The agent that an address says
    f"https://chat.hollowbrook.example/agents/{AGENT.upper()}/threads/ID": NOBODY,
    f"https://chat.hollowbrook.example/agents/{AGENT[:-1]}2/threads/ID": NOBODY,
    "https://chat.hollowbrook.example/agents/ID/threads/AGENT": NOBODY,
    "https://chat.hollowbrook.example/agents/./threads/ID": NOBODY,
    f"https://chat.hollowbrook.example/agents/%30{AGENT[1:]}/threads/ID": BOUND,
    "https://chat.hollowbrook.example/agents/%FF/threads/ID": ENCODED,
    # What is no address at all is an id, and nobody's
    "//hollowbrook.example/conversations/ID": NOBODY,
    "/conversations/ID": NOBODY,
    "conversations/ID": NOBODY,
    "../ID": NOBODY,
    "hollowbrook.example/conversations/ID": NOBODY,
    "https:hollowbrook.example/conversations/ID": NOBODY,
    "https:/hollowbrook.example/conversations/ID": NOBODY,
    "https//hollowbrook.example/conversations/ID": NOBODY,
    "javascript:alert(1)": NOBODY,
    "javascript://hollowbrook.example/conversations/ID": PLATFORM,
    "data:text/plain,ID": NOBODY,
    "file:/etc/passwd": NOBODY,
    "mailto:mara@hollowbrook.example": NOBODY,
    "://hollowbrook.example/conversations/ID": NOBODY,
    "https://https://hollowbrook.example/conversations/ID": PORT,
    "<https://hollowbrook.example/conversations/ID>": NOBODY,
    "[digest](https://hollowbrook.example/conversations/ID)": NOBODY,
    "https://hollowbrook.example/conversations/" + "x" * 3_000: LENGTH,
}


def filled(text: str) -> str:
    return text.replace("AGENT", AGENT).replace("ID", ID)


NOT_TEXT: list[Any] = [None, 7, 7.0, True, b"ID", ["ID"], {"id": "ID"}, uuid.UUID(ID)]


@dataclass
class Submitting:
    """A running turn of Mara's, to which she may hand one conversation, the one with the key `ID`."""

    turn: Any

    def answer(self, text: Any) -> tuple[str, int]:
        """What binding a string came to, and how many references there were then; it is undone again."""
        with transaction.atomic():
            answer = self._bind(text), TurnReference.objects.count()
            transaction.set_rollback(True)
        return answer

    def _bind(self, text: Any) -> str:
        try:
            [bound] = bind_references(self.turn, [text])
        except ReferencesError as error:
            assert (error.status, error.field) == (422, "conversation_references[0]")
            assert str(error) == f"conversation_references[0]: {error.rule}"
            return NOBODY if error.code == "conversation_unavailable" else error.rule
        assert bound.conversation_id == ID
        return BOUND


@pytest.fixture
def submitting(world: World, settings: Any) -> Submitting:
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "REFERENCE_URLS": FRONTENDS}
    agent = Agent.objects.create(pk=AGENT, workspace=world.hollowbrook, name="Desk")
    world.allow_references(agent=agent)
    world.session("hello", agent=agent, person=world.mara, pk=ID)
    # What a careless comparison could take instead.
    Agent.objects.create(pk=f"{AGENT[:-1]}2", workspace=world.hollowbrook, name="Other")
    world.session("hello", agent=agent, person=world.mara)
    return Submitting(world.turn(world.mara, agent=agent))


def test_refs_per_turn_every_address_has_its_answer(submitting: Submitting, monkeypatch: Any) -> None:
    """The whole table, by what binding asks for each entry; nothing is looked up, let alone fetched."""
    monkeypatch.setattr(socket, "getaddrinfo", None)
    handover = handover_of(submitting.turn, CONVERSATIONS)
    with CaptureQueriesContext(connection) as captured:
        found = {text: outcome(handover, filled(text)) for text in TABLE}
    assert {text: (found[text], right) for text, right in TABLE.items() if right not in found[text]} == {}
    assert len(captured) == 0
    assert len(TABLE) > 150


def outcome(handover: Handover, text: str) -> str:
    try:
        key = key_named(handover, read_entry(text, "field"))
    except ReferencesError as error:
        return error.rule
    if key is None:
        return NOBODY
    assert str(key) == ID
    return BOUND


SOME = [
    *(text for text, right in TABLE.items() if right == BOUND),
    *({right: text for text, right in TABLE.items() if right != BOUND}.values()),
]


def test_refs_per_turn_binding_gives_that_answer(submitting: Submitting) -> None:
    """One of each refusal and all that are bound, by the function that a platform calls."""
    for text in SOME:
        found, bound = submitting.answer(filled(text))
        assert (TABLE[text] in found, bound) == (True, TABLE[text] == BOUND), (text, found)


@pytest.mark.parametrize("given", NOT_TEXT, ids=lambda given: type(given).__name__)
def test_refs_per_turn_what_is_no_text_is_refused(submitting: Submitting, given: Any) -> None:
    assert submitting.answer(given) == ("must be text: a conversation's id, or its address", 0)


DECLARED_WRONG = [
    "https://hollowbrook.example/conversations/",
    "https://hollowbrook.example/{id}/{id}",
    "https://hollowbrook.example/{agent}/{agent}/{id}",
    "https://{id}.hollowbrook.example/",
    "https://{agent}.hollowbrook.example/{id}",
    "https://hollowbrook.example/?id={id}",
    "https://hollowbrook.example/#{id}",
    "https://mara@hollowbrook.example/{id}",
    "https://hollow brook.example/{id}",
    "https://hollowbrook.example:0443/{id}",
    "ftp://hollowbrook.example/{id}",
    "javascript:{id}",
    "//hollowbrook.example/{id}",
    "/conversations/{id}",
    "https://Ünder_score.example/{id}",
    "{id}",
    "",
]


@pytest.mark.parametrize("pattern", DECLARED_WRONG)
def test_refs_per_turn_a_platform_cannot_declare_nonsense(pattern: str) -> None:
    with pytest.raises(ValueError):
        Address.declared(pattern)


def test_refs_per_turn_without_declared_addresses_every_address_is_foreign() -> None:
    with pytest.raises(AddressError, match="of this platform"):
        named(filled("https://hollowbrook.example/conversations/ID"), ())
    assert named(ID, ()) == Named(ID)


def test_refs_per_turn_the_link_that_is_shown_is_an_address(settings: Any, world: World) -> None:
    """Where no addresses are declared, it is the one that links have."""
    settings.HISTORY_ACCESS = {
        **settings.HISTORY_ACCESS,
        "CONVERSATION_URL": "https://shown.example/at/{id}",
    }
    assert read_entry("https://shown.example/at/a%2Fb%20c", "field") == Named("a/b c")
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "CONVERSATION_URL": None}
    with pytest.raises(ReferencesError, match="field: must be an address of this platform"):
        read_entry("https://shown.example/at/a", "field")
    assert Session.objects.count() == 0
