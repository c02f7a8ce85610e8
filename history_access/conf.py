"""The project settings that this app reads, as typed lazy properties."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from history_access.authority import Authority

KNOWN = frozenset(
    {
        "SESSION_MODEL",
        "MESSAGE_MODEL",
        "TURN_MODEL",
        "AUTHORITY",
        "CONVERSATION_URL",
        "REFERENCE_URLS",
        "TRIGGER_MODEL",
        "SHARED_FILES_SETTING",
        "DANGER",
        "NAMING_KEYS",
    }
)

WARN, REFUSE = "warn", "refuse"


class Conf:
    """`HISTORY_ACCESS` in the project's settings; read at every use, so that tests can override it."""

    @property
    def given(self) -> dict[str, Any]:
        """The whole dictionary, as the project wrote it; an empty one where it is none, as a check says."""
        given = getattr(settings, "HISTORY_ACCESS", None)
        return given if isinstance(given, dict) else {}

    @property
    def session_model(self) -> str | None:
        """`SESSION_MODEL`: the platform's conversations, "app_label.Model"."""
        return self.given.get("SESSION_MODEL")

    @property
    def message_model(self) -> str | None:
        """`MESSAGE_MODEL`: the entries of its conversations, "app_label.Model"."""
        return self.given.get("MESSAGE_MODEL")

    @property
    def turn_model(self) -> str | None:
        """`TURN_MODEL`: the runs of its agents, "app_label.Model"."""
        return self.given.get("TURN_MODEL")

    @property
    def authority(self) -> "Authority":
        """`AUTHORITY`: a dotted path to the platform's `Authority`."""
        authority: Authority = import_string(self.given["AUTHORITY"])()
        return authority

    @property
    def conversation_url(self) -> str | None:
        """`CONVERSATION_URL`: where people open a conversation, with `{id}` in it; None for no links."""
        return self.given.get("CONVERSATION_URL")

    @property
    def reference_urls(self) -> tuple[str, ...]:
        """`REFERENCE_URLS`: the addresses by which a person may name a conversation, each with `{id}` in its
        path and perhaps `{agent}`, of every frontend; `CONVERSATION_URL` where it is left out.
        """
        given = self.given.get("REFERENCE_URLS")
        if given is None:
            return () if self.conversation_url is None else (self.conversation_url,)
        return tuple(given) if isinstance(given, list | tuple) else ()

    @property
    def trigger_model(self) -> str | None:
        """`TRIGGER_MODEL`: what starts agents by itself, "app_label.Model"; None for no webhook warning.

        It has an `agent_id`, and a `kind` that is "webhook" or a classmethod `webhooks()` that answers with
        the condition (a `Q`) for its webhooks.
        """
        return self.given.get("TRIGGER_MODEL")

    @property
    def shared_files_setting(self) -> tuple[str, str] | None:
        """`SHARED_FILES_SETTING`: which setting lets an agent write files that others read, and from which
        value on, like `("workspace_files", "write")`; None for no warning about them.
        """
        found = self.given.get("SHARED_FILES_SETTING")
        return None if found is None else (found[0], found[1])

    @property
    def danger(self) -> str:
        """`DANGER`: "warn" of a dangerous agent (the default), or "refuse" it and hold it at same_account."""
        return str(self.given.get("DANGER", WARN))

    @property
    def naming_keys(self) -> tuple[str, ...]:
        """`NAMING_KEYS`: whose keys themselves name somebody, of "person" and "account", as an e-mail address
        does; an erasure then blanks them too. None by default.
        """
        given = self.given.get("NAMING_KEYS", ())
        return tuple(given) if isinstance(given, Iterable) else (given,)


conf = Conf()

NAMING = ("person", "account")


def unknown_naming_keys() -> list[object]:
    """What `NAMING_KEYS` has that is no kind of key; the string "person" counts as its letters."""
    return [kind for kind in conf.naming_keys if kind not in NAMING]
