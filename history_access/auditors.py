"""Who may audit: asked of the platform at every request, on the primary database, never remembered.

The platform-wide Django permission `history_access.audit_reads` opens every workspace; `reads:audit`, which
the platform's authority answers for, opens one workspace. REST and the admin both ask here.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.db import router
from django.db.models import Model, OuterRef, QuerySet

from history_access.authority import AUDIT_READS, condition, is_active, person_holds, platform_authority
from settings_catalog.authority import has_django_permission
from settings_catalog.conf import conf as catalog_conf
from settings_catalog.keys import exact_key

PLATFORM_PERMISSION = "history_access.audit_reads"

Rows = TypeVar("Rows", bound="QuerySet[Any, Any]")


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What one person may audit: a workspace, or (None) all of them, if they may audit `everywhere`."""

    person_id: Any
    workspace: str | None
    everywhere: bool

    def of(self, rows: "Rows") -> "Rows":
        """Those of the rows that the person may see, the right looked at in the same statement."""
        rows = rows.using(router.db_for_write(rows.model))
        if self.workspace is not None:
            rows = rows.filter(workspace_id=self.workspace)
        if not self.everywhere:
            rows = rows.filter(
                condition(platform_authority(), self.person_id, AUDIT_READS, self.workspace, None)
            )
        return rows

    def still_holds(self) -> bool:
        """Whether the person may still see all of it now, for what takes longer than one statement."""
        if self.everywhere:
            return audits_everywhere(self.person_id)
        return self.workspace is not None and audits_workspace(self.person_id, self.workspace)


def scope_of(person_id: Any, workspace: str | None) -> Scope | None:
    """What the person may audit of what they ask for; None where that is nothing.

    Without a workspace it is None for everybody who may not audit all of them. An unknown workspace is
    nothing, as a foreign one is.
    """
    if audits_everywhere(person_id):
        return Scope(person_id=person_id, workspace=workspace, everywhere=True)
    if workspace is None or not audits_workspace(person_id, workspace):
        return None
    return Scope(person_id=person_id, workspace=workspace, everywhere=False)


def audits_everywhere(person_id: Any) -> bool:
    """Whether the person holds the platform-wide permission now."""
    person = fresh_person(person_id)
    return person is not None and has_django_permission(person, PLATFORM_PERMISSION)


def audits_workspace(person_id: Any, workspace: str) -> bool:
    """Whether an active person holds `reads:audit` for the workspace now.

    Another spelling of a key (capitals, braces, a leading zero) is no key: the record would not know it.
    """
    key = exact_key(catalog_conf.workspace_model._meta.pk, workspace)
    return key is not None and person_holds(platform_authority(), person_id, AUDIT_READS, key)


def audited_workspaces(person_id: Any) -> "QuerySet[Any]":
    """The workspaces that the person may audit now, to choose from, in the order of their keys.

    It offers, and opens nothing: what is chosen goes through `scope_of`.
    """
    model, authority = catalog_conf.workspace_model, platform_authority()
    rows = model._base_manager.using(router.db_for_write(model)).order_by("pk")
    if audits_everywhere(person_id):
        return rows
    holds = condition(authority, person_id, AUDIT_READS, OuterRef("pk"), None)
    return rows.filter(is_active(authority, person_id)).filter(holds)


def fresh_person(person_id: Any) -> Any | None:
    """The person as the database knows them now; None where they are gone or not active."""
    if person_id is None:
        return None
    people: type[Model] = get_user_model()
    rows = people._base_manager.using(router.db_for_write(people))
    return rows.filter(platform_authority().active, pk=person_id).first()
