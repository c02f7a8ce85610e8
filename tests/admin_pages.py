"""Visitors of the admin, and what a test needs to read its pages as a browser does."""

import re
from collections import deque
from collections.abc import Callable, Iterator
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urldefrag, urljoin

from django.contrib.auth.models import Permission
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from history_access.agent_platform.models import Authority, Workspace
from history_access.models import TurnConversationRead
from settings_catalog.models import SettingValue
from tests.worlds import World

HOSTILE = "<img src=x onerror=alert(1)>\u202egnp\nline"
"""A name as nobody wants it: markup, an override of the text's direction, and a line break."""

SHOWN_HOSTILE = "&lt;img src=x onerror=alert(1)&gt;[U+202E]gnp[U+000A]line"

ODD_VALUES = (
    "%00",
    "x%00y",
    "%ED%A0%80",
    "%FF",
    "",
    "%20",
    "'",
    '"',
    "x" * 10_000,
    "a+" * 5_000,
    "9" * 400,
    "-1",
    "{}",
)
"""What a browser never sends: NUL, a lone surrogate, broken UTF-8, and values far too long."""


def staff(world: World, name: str, *codenames: str) -> Any:
    person = world.person(name, is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return person


def _viewer(world: World, name: str, *more: str) -> Any:
    views = Permission.objects.filter(codename__startswith="view_").values_list("codename", flat=True)
    return staff(world, name, *views, *more)


def _writer(world: World) -> Any:
    person = _viewer(world, "writer")
    world.grant(person, "settings:write")
    return person


def _writer_elsewhere(world: World) -> Any:
    person, elsewhere = _viewer(world, "writer_elsewhere"), Workspace.objects.create(name="Elsewhere")
    Authority.objects.create(workspace=elsewhere, person=person, permission="settings:write")
    return person


def _blind_writer(world: World) -> Any:
    person = staff(world, "blind_writer")
    world.grant(person, "settings:write")
    return person


def _superuser(world: World) -> Any:
    return world.person("superuser", is_staff=True, is_superuser=True)


PEOPLE: dict[str, Callable[[World], Any]] = {
    "superuser_writer": lambda world: world.operator,
    "superuser": _superuser,
    "platform_operator": lambda world: _viewer(world, "platform_operator", "change_platform_settings"),
    "writer": _writer,
    "writer_elsewhere": _writer_elsewhere,
    "viewer": lambda world: _viewer(world, "viewer"),
    "blind_writer": _blind_writer,
    "staff": lambda world: staff(world, "staff"),
    "person": lambda world: world.mara,
    "anonymous": lambda world: None,
}
SEE = ("superuser_writer", "superuser", "platform_operator", "writer", "writer_elsewhere", "viewer")
"""Those who may look: superusers, and staff with Django's permissions to view."""

OUTSIDE = ("person", "anonymous")


def visitor(world: World, who: str) -> Client:
    """A client of one of `PEOPLE`."""
    client, person = Client(), PEOPLE[who](world)
    if person is not None:
        client.force_login(person)
    return client


def status_for(who: str, seen: int = 200) -> int:
    """What a page answers: `seen` to those who may look, 403 to other staff, the login to everybody else."""
    if who in SEE:
        return seen
    return 302 if who in OUTSIDE else 403


def list_url(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def row_url(row: Any, page: str = "change") -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{page}", args=[row.pk])


def body(response: HttpResponse) -> str:
    return response.content.decode()


def words(response: HttpResponse) -> str:
    """The text of a page as people read it, on one line."""
    content = re.sub(r"<(script|style).*?</\1>", " ", body(response), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", content)).split())


class _Fields(HTMLParser):
    """The fields of a page's forms as a browser would send them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self.links: list[str] = []
        self._open: str | None = None
        self._select: str | None = None

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        name = given.get("name")
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "textarea":
            self._open, self.found[name] = name, ""
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and "selected" in given:
            self.found[self._select] = given.get("value", "")
        elif tag == "input" and name:
            self._input(name, given)

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._open = None
        elif tag == "select":
            self._select = None

    def handle_data(self, data: str) -> None:
        if self._open:
            self.found[self._open] += data.removeprefix("\n") if not self.found[self._open] else data

    def _input(self, name: str, given: dict[str, str]) -> None:
        kind = given.get("type", "text")
        if kind in ("radio", "checkbox") and "checked" not in given:
            return
        if kind not in ("submit", "button"):
            self.found[name] = given.get("value", "")


def fields(response: HttpResponse) -> dict[str, str]:
    """What a browser would send back of the form on a page, if nobody touched it."""
    parser = _Fields()
    parser.feed(body(response))
    return {name: value for name, value in parser.found.items() if name not in ("csrfmiddlewaretoken", "q")}


def send(client: Client, url: str, **changes: str) -> Any:
    """Open a form, change some of its fields, and send it."""
    return client.post(url, {**fields(client.get(url)), **changes})


def crawl(client: Client, start: str) -> Iterator[tuple[str, HttpResponse]]:
    """Every page that can be reached by links within the admin, `start` first; each filter by itself.

    The page of a row is one page, whichever filters the list had that leads to it.
    """
    waiting, seen = deque([start]), {start}
    while waiting:
        url = waiting.popleft()
        response = client.get(url)
        yield url, response
        if response.status_code != 200 or "text/html" not in response["Content-Type"]:
            continue
        parser = _Fields()
        parser.feed(body(response))
        for link in parser.links:
            found = re.sub(r"\?_changelist_filters=[^&]*$", "", urldefrag(urljoin(url, link)).url)
            filtered_again = "?" in url and found.partition("?")[0] == url.partition("?")[0]
            if found.startswith("/admin/") and found not in seen and not filtered_again:
                seen.add(found)
                waiting.append(found)


PLACES = ("platform", "workspace", "agent")


def place_url(world: World, place: str, entry: str = "history_access") -> str:
    key = {"workspace": world.hollowbrook.pk, "agent": world.agent.pk}.get(place, "")
    return f"{reverse('admin:settings_catalog_settingvalue_add')}?entry={entry}&{place}={key}"


def stored_at(place: str) -> SettingValue | None:
    return SettingValue.objects.filter(entry="history_access", level=place).first()


def settings_everywhere(world: World) -> dict[str, SettingValue]:
    """A row of history access at each place."""
    world.set(platform=True, value="same_account", ceiling="all_accounts")
    world.set(workspace=world.hollowbrook, value="all_accounts", ceiling="same_account")
    world.set(agent=world.agent, value="all_accounts")
    return {place: row for place in PLACES if (row := stored_at(place))}


def read_row(**given: Any) -> TurnConversationRead:
    """A row of the record: by default, of a title, within the account "acme"."""
    row = {
        "workspace_id": "w",
        "agent_id": "a",
        "turn_id": "t",
        "turn_account_id": "acme",
        "reader_id": "7",
        "session_id": "s",
        "session_account_id": "acme",
        "setting": "same_account",
        "how": "history",
        "what": "title",
        "characters": 5,
        "read_at": timezone.now(),
    }
    return TurnConversationRead.objects.create(**{**row, **given})
