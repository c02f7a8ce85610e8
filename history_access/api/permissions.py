"""Who may audit: asked of the platform at every request, on the primary database, never remembered.

The platform-wide Django permission `history_access.audit_reads` opens every workspace; `reads:audit`, which
the platform's authority answers for, opens one workspace, which the request then has to name.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import router
from django.db.models import Model, QuerySet
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.throttling import UserRateThrottle
from rest_framework.views import APIView

from history_access.api.filters import ParameterError
from history_access.api.problems import nothing_here
from history_access.authority import AUDIT_READS, condition, person_holds, platform_authority
from settings_catalog.authority import has_django_permission
from settings_catalog.conf import conf as catalog_conf
from settings_catalog.keys import key_text

PLATFORM_PERMISSION = "history_access.audit_reads"
DEFAULT_RATE = "120/min"

Rows = TypeVar("Rows", bound="QuerySet[Any, Any]")


class IsActivePerson(BasePermission):
    """Somebody who is known and active now, whatever the session or the token remembers of them."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Whether the person is still there and active."""
        return fresh_person(request.user.pk) is not None


class NamedRate:
    """A throttle whose rate the host may set under its `scope`."""

    scope: str

    def get_rate(self) -> str | None:
        """The host's rate, else the default; None switches it off."""
        rates: Any = api_settings.DEFAULT_THROTTLE_RATES
        rate: str | None = rates.get(self.scope, DEFAULT_RATE)
        return rate


class AuditThrottle(NamedRate, UserRateThrottle):
    """So many questions of one person; `DEFAULT_THROTTLE_RATES["history_access_audit"]` says otherwise."""

    scope = "history_access_audit"


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


def scope_of(person_id: Any, workspace: str | None) -> Scope:
    """What the person may audit of what they ask for.

    A ParameterError where they have to name a workspace; NotFound where they may not audit the one that they
    name, which is the same whether or not it exists.
    """
    if audits_everywhere(person_id):
        return Scope(person_id=person_id, workspace=workspace, everywhere=True)
    if workspace is None:
        raise ParameterError({"workspace": "is required of everybody who may not audit all workspaces"})
    if not audits_workspace(person_id, workspace):
        raise nothing_here()
    return Scope(person_id=person_id, workspace=workspace, everywhere=False)


def audits_everywhere(person_id: Any) -> bool:
    """Whether the person holds the platform-wide permission now."""
    person = fresh_person(person_id)
    return person is not None and has_django_permission(person, PLATFORM_PERMISSION)


def audits_workspace(person_id: Any, workspace: str) -> bool:
    """Whether an active person holds `reads:audit` for the workspace now.

    Another spelling of a key (capitals, braces, a leading zero) is no key: the record would not know it.
    """
    try:
        if key_text(catalog_conf.workspace_model._meta.pk.to_python(workspace)) != workspace:
            return False
        return person_holds(platform_authority(), person_id, AUDIT_READS, workspace)
    except (ValueError, ValidationError, OverflowError):  # a key that is none of this platform's
        return False


def fresh_person(person_id: Any) -> Any | None:
    """The person as the database knows them now; None where they are gone or not active."""
    if person_id is None:
        return None
    people: type[Model] = get_user_model()
    rows = people._base_manager.using(router.db_for_write(people))
    return rows.filter(platform_authority().active, pk=person_id).first()
