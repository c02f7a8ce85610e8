"""Whoever looks at the record is recorded too, before the answer; and questions are bounded."""

from typing import Any

import pytest
from django.core.cache import cache
from django.db import DatabaseError, IntegrityError, connection
from django.test import Client
from django.utils import timezone

from history_access.api import audit
from history_access.models import AuditQuery
from tests.audits import API, ROUTES, body, in_workspace, many_rows, problem, read_row, routes, visitor
from tests.worlds import World


@pytest.fixture
def auditor(world: World) -> Client:
    return visitor(world, "platform_auditor")


@pytest.mark.parametrize("who", ["platform_auditor", "workspace_auditor"])
def test_every_question_is_logged_with_who_what_and_when(world: World, who: str) -> None:
    client, began = visitor(world, who), timezone.now()
    person = type(world.mara).objects.get(username=who)
    for name, url in routes(world, read_row(world)).items():
        if name != "seals":
            body(client.get(in_workspace(world, url)))
    logged = list(AuditQuery.objects.order_by("id").values_list("asked", "filters"))
    workspace = {"workspace": str(world.hollowbrook.pk)}
    read = str(read_row(world).__class__.objects.order_by("id").first().pk)
    assert logged == [
        ("reads", workspace),
        ("reads/{id}", workspace | {"read": read}),
        ("turns/{id}/conversations", workspace | {"turn": "t"}),
        ("turns/{id}/references", workspace | {"turn": "t"}),
        ("conversations/{id}/turns", workspace | {"conversation": "s"}),
        ("refusals", workspace),
        ("agents/{id}/history-access", workspace | {"agent": str(world.agent.pk)}),
        ("reads/export.csv", workspace),
        ("reads/export.jsonl", workspace),
    ]
    assert {row.by_id for row in AuditQuery.objects.all()} == {str(person.pk)}
    assert all(began <= row.asked_at <= timezone.now() for row in AuditQuery.objects.all())


def test_filters_and_pages_are_logged_as_they_were_given(world: World, auditor: Client) -> None:
    many_rows(world, 3)
    first = auditor.get(f"{API}/reads/", {"turn": "t", "crossed": "false", "limit": 2}).json()
    auditor.get(first["next"])
    logged = list(AuditQuery.objects.order_by("id").values_list("filters", flat=True))
    assert logged[0] == {"turn": "t", "crossed": "false", "limit": "2"}
    assert set(logged[1]) == {"turn", "crossed", "limit", "cursor"}


def test_what_is_not_there_is_logged_too_and_options_are_no_question(world: World, auditor: Client) -> None:
    problem(auditor.get(f"{API}/reads/019adf00-0000-7000-8000-000000000000/"), 404)
    assert AuditQuery.objects.count() == 1
    for url in routes(world, read_row(world)).values():
        auditor.options(url), auditor.post(url)
    assert AuditQuery.objects.count() == 1
    auditor.head(f"{API}/reads/")
    assert AuditQuery.objects.count() == 2


class BrokenLog:
    """A log that cannot be written, for whatever reason the database gives."""

    error: type[Exception] = DatabaseError

    def __init__(self, error: type[Exception] = DatabaseError) -> None:
        self.error = error

    def __call__(self, *_: Any, **__: Any) -> None:
        raise self.error("no room for names like Zq7Mark")


@pytest.mark.parametrize("error", [DatabaseError, IntegrityError])
@pytest.mark.parametrize("name", ROUTES)
def test_where_the_question_cannot_be_logged_nothing_is_answered(
    world: World, auditor: Client, monkeypatch: Any, name: str, error: type[Exception]
) -> None:
    url = routes(world, read_row(world))[name]
    monkeypatch.setattr(AuditQuery, "save", BrokenLog(error))
    found = problem(auditor.get(url), 503)
    assert found["detail"] == "What you asked could not be logged, so it is not answered."
    assert "Zq7Mark" not in str(found)


def test_a_log_that_the_database_refuses_leaves_the_transaction_usable(world: World, auditor: Client) -> None:
    """Under ATOMIC_REQUESTS the refused insert must not break what follows; here, the test's own."""
    table = AuditQuery._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER TABLE "{table}" RENAME TO elsewhere')
        problem(auditor.get(f"{API}/reads/"), 503)
        cursor.execute(f'ALTER TABLE elsewhere RENAME TO "{table}"')
    assert auditor.get(f"{API}/reads/").status_code == 200


def test_the_log_is_committed_before_the_answer(open_world: World) -> None:
    """Also where the answer then fails: what was asked stays."""
    client = visitor(open_world, "platform_auditor")

    def fails(*_: Any) -> None:
        assert not connection.in_atomic_block
        raise DatabaseError("the rows cannot be read")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit.audited, "shown_reads", fails)
        with pytest.raises(DatabaseError):
            client.get(f"{API}/reads/")
    assert AuditQuery.objects.count() == 1


@pytest.fixture
def throttled(settings: Any) -> Any:
    cache.clear()

    def rate(value: str | None) -> None:
        rates = {} if value is None else {"DEFAULT_THROTTLE_RATES": {"history_access_audit": value}}
        kept = {
            name: said for name, said in settings.REST_FRAMEWORK.items() if name != "DEFAULT_THROTTLE_RATES"
        }
        settings.REST_FRAMEWORK = kept | rates

    yield rate
    cache.clear()


def test_questions_are_throttled_at_the_hosts_rate(world: World, auditor: Client, throttled: Any) -> None:
    throttled("3/min")
    urls = list(routes(world, read_row(world)).values())
    assert [auditor.get(url).status_code for url in urls[:3]] == [200] * 3
    for url in urls:
        answer = auditor.get(url)
        assert problem(answer, 429)
        assert 0 < int(answer["Retry-After"]) <= 60
    assert AuditQuery.objects.count() == 3
    assert visitor(world, "workspace_auditor").get(urls[0]).status_code == 400, "others are not held up"


def test_without_a_rate_of_the_hosts_the_default_holds(world: World, auditor: Client, throttled: Any) -> None:
    throttled(None)
    codes = [auditor.get(f"{API}/reads/").status_code for _ in range(122)]
    assert codes == [200] * 120 + [429] * 2
