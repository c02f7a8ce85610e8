"""How long rows wait for a seal, in words (`record-sealed`)."""

from datetime import timedelta

from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext, ngettext

from history_access.seals import MOST_COUNTED, waiting

_MINUTE = timedelta(minutes=1)


def waiting_words() -> str:
    """How many rows wait, and since when the oldest does; as over REST, from the one function."""
    found = waiting()
    if found.oldest is None:
        return gettext("Nothing waits for a seal.")
    if found.rows >= MOST_COUNTED:
        sentence = gettext("%(rows)s rows or more wait for a seal, the oldest for %(long)s.")
    else:
        sentence = ngettext(
            "%(rows)s row waits for a seal, for %(long)s.",
            "%(rows)s rows wait for a seal, the oldest for %(long)s.",
            found.rows,
        )
    return sentence % {"rows": found.rows, "long": _long(found.oldest)}


def _long(waited: timedelta) -> str:
    if waited < _MINUTE:
        return gettext("less than a minute")
    now = timezone.now()
    return timesince(now - waited, now)
