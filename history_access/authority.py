"""The port: what a person may open. The platform answers; everything else asks here."""

from abc import abstractmethod
from typing import Any, ClassVar

from django.contrib.auth import get_user_model
from django.db.models import Exists, Q
from django.db.models.expressions import Combinable

from history_access.conf import conf
from history_access.models.platform import primary
from settings_catalog.authority import SettingsAuthority

READ_SESSIONS = "sessions:read"
WRITE_SETTINGS = "settings:write"
AUDIT_READS = "reads:audit"
RUN_READS = "runs:read"

Condition = Q | Combinable


class AuthorityError(Exception):
    """The platform's authority gave an answer that is no condition; nothing is read on it."""


class Authority(SettingsAuthority):
    """What a platform answers about its own people: one method, named by `HISTORY_ACCESS["AUTHORITY"]`.

    The answer is a condition in SQL, so that a right is looked at in the very statement that fetches text
    (`reach-now`), and so that one definition serves a single person and a whole query.
    """

    compiled_once: ClassVar[bool] = False
    """Whether SQL may be kept between calls, which makes a call several times faster.

    True promises that `holds`, `active` and what your models say of their rows give the same SQL for
    everybody at every time: they put each argument into the query without a look at it (`None` aside), and
    ask the database, not Python, for the time or for who is asking.
    """

    @abstractmethod
    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any | None) -> Condition:
        """A condition that is true while the person holds `permission`.

        `permission` is one of the four names above. With an `agent_id` the question is of that agent; with
        None, of the whole workspace. `workspace_id` is a key, or an `OuterRef` where the question is of
        which workspaces: put it into the query, without a look at it. The condition speaks of the rights
        tables alone: `Exists(...)`, or several joined by `|`. For "never", answer `Q(pk__in=[])`; an empty
        `Q()` is an AuthorityError.
        """

    def may_write_settings(self, person: Any, workspace_id: str) -> bool:
        """Whether the person holds `settings:write` for the workspace (`catalog-who`)."""
        return person_holds(self, person.pk, WRITE_SETTINGS, workspace_id)


def condition(authority: Authority, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Q:
    """The authority's answer as a `Q`, for use inside a larger query.

    An AuthorityError if it is empty, or no condition.
    """
    answer: object = authority.holds(person_id, permission, workspace_id, agent_id)
    if not isinstance(answer, Q | Combinable):
        kind = type(answer).__name__
        raise AuthorityError(f"the authority answered {permission} with a {kind}, which is no condition")
    if not answer:
        raise AuthorityError(f"the authority answered {permission} with an empty condition")
    return answer if isinstance(answer, Q) else Q(answer)


def is_active(authority: Authority, person_id: Any) -> Exists:
    """A condition that is true while the person may act at all (`reach-person`)."""
    people = get_user_model()._base_manager.using(primary())
    return Exists(people.filter(authority.active, pk=person_id))


def person_holds(
    authority: Authority, person_id: Any, permission: str, workspace_id: Any, agent_id: Any = None
) -> bool:
    """Whether an active person holds a permission now: one statement, never cached (`reach-now`)."""
    people = get_user_model()._base_manager.using(primary()).filter(authority.active, pk=person_id)
    return people.filter(condition(authority, person_id, permission, workspace_id, agent_id)).exists()


def platform_authority() -> Authority:
    """The authority that the project's settings name."""
    return conf.authority
