"""The log of what auditors asked: whoever looks at the record is recorded too."""

from collections.abc import Mapping

from django.db import DatabaseError, router, transaction
from django.utils import timezone

from history_access.models import AuditQuery
from settings_catalog.keys import key_text


class NotLoggedError(Exception):
    """What was asked could not be logged; nothing is answered."""

    def __init__(self) -> None:
        super().__init__("What you asked could not be logged, so it is not answered.")


def log_query(by: object, asked: str, filters: Mapping[str, str]) -> None:
    """Log that `by` (a person, by key) asked for `asked` under these filters, before it is answered.

    A NotLoggedError where the row cannot be written.
    """
    using = router.db_for_write(AuditQuery)
    row = AuditQuery(by_id=key_text(by), asked=asked, filters=dict(filters), asked_at=timezone.now())
    try:
        with transaction.atomic(using=using):
            row.save(using=using, force_insert=True)
    except DatabaseError as error:
        raise NotLoggedError from error
