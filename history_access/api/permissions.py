"""How REST asks who may audit: `history_access.auditors` says, and what it says no to is refused here.

Who may not audit everywhere has to name a workspace in the request.
"""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.throttling import UserRateThrottle
from rest_framework.views import APIView

from history_access import auditors
from history_access.api.filters import ParameterError
from history_access.api.problems import nothing_here
from history_access.auditors import Scope

DEFAULT_RATE = "120/min"


class IsActivePerson(BasePermission):
    """Somebody who is known and active now, whatever the session or the token remembers of them."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Whether the person is still there and active."""
        return auditors.fresh_person(request.user.pk) is not None


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


def scope_of(person_id: Any, workspace: str | None) -> Scope:
    """What the person may audit of what they ask for.

    A ParameterError where they have to name a workspace; NotFound where they may not audit the one that they
    name, which is the same whether or not it exists.
    """
    scope = auditors.scope_of(person_id, workspace)
    if scope is not None:
        return scope
    if workspace is None:
        raise ParameterError({"workspace": "is required of everybody who may not audit all workspaces"})
    raise nothing_here()
