"""catalog-who, catalog-change-log: settings in the admin, seen by many and changed by few."""

from typing import Any

import pytest
from django.urls import reverse

from settings_catalog.models import SettingChange, SettingValue
from tests.admin_pages import (
    OUTSIDE,
    PEOPLE,
    PLACES,
    SEE,
    body,
    fields,
    list_url,
    place_url,
    row_url,
    send,
    settings_everywhere,
    status_for,
    stored_at,
    visitor,
    words,
)
from tests.worlds import World

MAY_CHANGE = {
    "platform": {"superuser_writer", "superuser", "platform_operator"},
    "workspace": {"superuser_writer", "writer"},
    "agent": {"superuser_writer", "writer"},
}
MISSING = {
    "platform": "settings_catalog.change_platform_settings",
    "workspace": "settings:write",
    "agent": "settings:write",
}
EVERYBODY = tuple(PEOPLE)
WHY = "the auditors asked for it"


@pytest.fixture
def rows(world: World) -> dict[str, SettingValue]:
    """A row at each place."""
    return settings_everywhere(world)


def test_everybody_of_the_matrix_is_somebody(world: World):
    assert {*SEE, *OUTSIDE} < set(EVERYBODY)
    assert set.union(*MAY_CHANGE.values()) <= set(SEE)


@pytest.mark.parametrize("who", EVERYBODY)
def test_who_sees_the_pages(world: World, rows: dict[str, SettingValue], who: str):
    client, change = visitor(world, who), SettingChange.objects.first()
    assert change is not None
    pages = [
        list_url(SettingValue),
        reverse("admin:settings_catalog_settingvalue_catalog"),
        reverse("admin:settings_catalog_settingvalue_add"),
        *(place_url(world, place) for place in PLACES),
        *(row_url(row) for row in rows.values()),
        list_url(SettingChange),
        row_url(change),
    ]
    assert {page: client.get(page).status_code for page in pages} == dict.fromkeys(pages, status_for(who))
    assert client.get(row_url(rows["agent"], "history")).status_code == status_for(who, 302)


@pytest.mark.parametrize("by_row", [True, False], ids=["row", "place"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("who", EVERYBODY)
def test_who_changes_what(world: World, rows: dict[str, SettingValue], who: str, place: str, by_row: bool):
    client, logged = visitor(world, who), SettingChange.objects.count()
    url = row_url(rows[place]) if by_row else place_url(world, place)
    sent = {"value": "none", "initial-value": rows[place].value, "why": WHY}
    response = client.post(url, sent)
    changed = stored_at(place)
    assert changed is not None
    if who in MAY_CHANGE[place]:
        assert (response.status_code, changed.value) == (302, "none")
        log = SettingChange.objects.latest("pk")
        assert SettingChange.objects.count() == logged + 1
        assert (log.why, log.value_after, log.level) == (WHY, "none", place)
        assert log.by_id == client.session["_auth_user_id"]
    else:
        assert (changed.value, SettingChange.objects.count()) == (rows[place].value, logged)
        assert response.status_code == (403 if who not in OUTSIDE else 302)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("who", SEE)
def test_the_page_says_which_permission_is_missing(
    world: World, rows: dict[str, SettingValue], who: str, place: str
):
    client, sentence = visitor(world, who), f"you lack the permission {MISSING[place]} ."
    for response in (client.get(row_url(rows[place])), client.post(row_url(rows[place]), {"why": WHY})):
        may = who in MAY_CHANGE[place]
        assert (sentence in words(response)) is not may
        assert ('name="why"' in body(response)) is may


@pytest.mark.parametrize("who", EVERYBODY)
def test_nobody_deletes_or_acts_in_bulk(world: World, rows: dict[str, SettingValue], who: str):
    client, row = visitor(world, who), rows["agent"]
    refused = 302 if who in OUTSIDE else 403
    action = {"action": "delete_selected", "_selected_action": str(row.pk), "post": "yes"}
    change = SettingChange.objects.first()
    assert change is not None
    answers = [
        client.get(row_url(row, "delete")),
        client.post(row_url(row, "delete"), {"post": "yes"}),
        client.post(list_url(SettingValue), action),
        client.post(list_url(SettingChange), {**action, "_selected_action": str(change.pk)}),
        client.post(row_url(change), {"why": "another reason"}),
        client.post(row_url(change, "delete"), {"post": "yes"}),
        client.get(reverse("admin:settings_catalog_settingchange_add")),
        client.post(reverse("admin:settings_catalog_settingchange_add"), {"why": "invented"}),
    ]
    assert [answer.status_code for answer in answers] == [refused] * len(answers)
    assert SettingValue.objects.filter(pk=row.pk).exists()
    assert set(SettingChange.objects.values_list("why", flat=True)) == {"a test"}


def test_an_unknown_stored_value_stays_until_somebody_chooses_another(world: World):
    row = SettingValue.objects.create(entry="history_access", level="platform", value="ALL", ceiling="none")
    client = visitor(world, "superuser")
    assert "“ALL”, unknown" in words(client.get(row_url(row)))
    assert send(client, row_url(row), ceiling="all_accounts", why=WHY).status_code == 302
    row.refresh_from_db()
    assert (row.value, row.ceiling) == ("ALL", "all_accounts")
    send(client, row_url(row), value="", why=WHY)
    row.refresh_from_db()
    assert row.value is None


def test_clearing_value_and_ceiling_removes_the_row_and_says_why(world: World, rows: dict[str, SettingValue]):
    send(visitor(world, "writer"), row_url(rows["workspace"]), value="", ceiling="", why=WHY)
    assert stored_at("workspace") is None
    log = SettingChange.objects.latest("pk")
    assert (log.value_before, log.value_after, log.ceiling_before, log.ceiling_after, log.why) == (
        "all_accounts",
        None,
        "same_account",
        None,
        WHY,
    )


def test_what_was_not_touched_keeps_what_somebody_else_set_meanwhile(world: World, rows: dict[str, Any]):
    client, url = visitor(world, "writer"), row_url(rows["workspace"])
    opened = fields(client.get(url))
    world.set(workspace=world.hollowbrook, value="none")
    client.post(url, {**opened, "ceiling": "all_accounts", "why": WHY})
    row = stored_at("workspace")
    assert row is not None
    assert (row.value, row.ceiling) == ("none", "all_accounts")


@pytest.mark.parametrize(
    ("sent", "field", "error"),
    [
        ({"value": "none", "why": ""}, "why", "This field is required."),
        ({"value": "none", "why": " \t "}, "why", "This field is required."),
        ({"value": "none", "why": "x" * 1001}, "why", "at most 1000 characters"),
        ({"value": "none", "why": "a\0b"}, "why", "Null characters are not allowed."),
        ({"value": "ALL", "why": WHY}, "value", "Select a valid choice."),
        ({"ceiling": "(kept)", "why": WHY}, "ceiling", "Select a valid choice."),
        ({"why": WHY}, None, "Choose another value or another ceiling first."),
    ],
)
def test_a_wrong_form_says_where(
    world: World, rows: dict[str, Any], sent: dict[str, str], field: Any, error: str
):
    logged = SettingChange.objects.count()
    response = send(visitor(world, "writer"), row_url(rows["workspace"]), **sent)
    assert response.status_code == 200
    assert SettingChange.objects.count() == logged
    found = response.context["form"].errors[field or "__all__"]
    assert error in " ".join(found)
    assert error in words(response)


def test_an_agent_has_no_ceiling_field(world: World):
    response = send(
        visitor(world, "writer"), place_url(world, "agent"), value="none", ceiling="none", why=WHY
    )
    row = stored_at("agent")
    assert response.status_code == 302
    assert row is not None
    assert row.ceiling is None


def test_a_refusal_of_the_one_write_function_becomes_an_error_of_the_form(
    world: World, rows: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    from settings_catalog.admin import forms
    from settings_catalog.changes import SettingError, SettingForbiddenError

    client, url = visitor(world, "writer"), row_url(rows["workspace"])
    for error, field in (
        (SettingError("ceiling", "too high"), "ceiling"),
        (SettingError("place", "there is no such workspace"), "__all__"),
        (SettingForbiddenError("settings:write", rows["workspace"].place), "__all__"),
    ):
        monkeypatch.setattr(forms, "set_at", _raising(error))
        response = send(client, url, value="none", why=WHY)
        assert response.context["form"].errors == {field: [error.message]}
        assert error.message in words(response)


def _raising(error: Exception) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise error

    return refuse
