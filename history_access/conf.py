"""The project settings that this app reads, as typed lazy properties."""

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from history_access.authority import Authority

KNOWN = frozenset({"SESSION_MODEL", "MESSAGE_MODEL", "TURN_MODEL", "AUTHORITY", "CONVERSATION_URL"})


class Conf:
    """`HISTORY_ACCESS` in the project's settings; read at every use, so that tests can override it."""

    @property
    def given(self) -> dict[str, Any]:
        """The whole dictionary, as the project wrote it."""
        given: dict[str, Any] = getattr(settings, "HISTORY_ACCESS", {})
        return given

    @property
    def session_model(self) -> str:
        """`SESSION_MODEL`: the platform's conversations, "app_label.Model"."""
        return str(self.given["SESSION_MODEL"])

    @property
    def message_model(self) -> str:
        """`MESSAGE_MODEL`: the entries of its conversations, "app_label.Model"."""
        return str(self.given["MESSAGE_MODEL"])

    @property
    def turn_model(self) -> str:
        """`TURN_MODEL`: the runs of its agents, "app_label.Model"."""
        return str(self.given["TURN_MODEL"])

    @property
    def authority(self) -> "Authority":
        """`AUTHORITY`: a dotted path to the platform's `Authority`."""
        authority: Authority = import_string(self.given["AUTHORITY"])()
        return authority

    @property
    def conversation_url(self) -> str | None:
        """`CONVERSATION_URL`: where people open a conversation, with `{id}` in it; None for no links."""
        return self.given.get("CONVERSATION_URL")


conf = Conf()
