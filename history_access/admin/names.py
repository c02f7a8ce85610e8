"""Names for the keys of the record, as they were recorded beside it; erased ones go by their key."""

from collections.abc import Iterable, Iterator

from django.db.models import Q

from history_access.models import Named, RecordedName, TurnConversationRead
from settings_catalog.admin import words

Keyed = tuple[Named, str]


class RecordedNames:
    """The names that one page of reads needs, from one query."""

    def __init__(self, reads: Iterable[TurnConversationRead]) -> None:
        reads = list(reads)
        wanted = Q(pk__in=[])
        for kind in Named:
            keys = {key for read in reads for one, key in _keys(read) if one is kind}
            wanted |= Q(kind=kind, key__in=keys)
        workspaces = {read.workspace_id for read in reads}
        # The newest name comes last, and stays.
        rows = RecordedName.objects.filter(wanted, workspace_id__in=workspaces).order_by("id")
        self._names = {(row.workspace_id, row.kind, row.key): row.name for row in rows}

    def of(self, read: TurnConversationRead, kind: Named, key: str | None) -> str:
        """The newest name recorded; the key where there is none, a dash for the absent key."""
        if key is None:
            return words.NOTHING
        return words.inert(self._names.get((read.workspace_id, kind.value, key)) or key)


def _keys(read: TurnConversationRead) -> Iterator[Keyed]:
    keys = [
        (Named.WORKSPACE, read.workspace_id),
        (Named.AGENT, read.agent_id),
        (Named.PERSON, read.reader_id),
        (Named.TRIGGER, read.trigger_id),
        (Named.ACCOUNT, read.turn_account_id),
        (Named.ACCOUNT, read.session_account_id),
    ]
    return ((kind, key) for kind, key in keys if key is not None)
