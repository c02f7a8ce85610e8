"""Times as a model writes them, read in the workspace's time zone (`tool-list`)."""

import logging
import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings

logger = logging.getLogger("history_access")

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?", re.ASCII)

_RULE = "must be a date like 2026-11-29 or a time like 2026-11-29T14:30 or 2026-11-29T14:30:00+01:00"


class MomentError(ValueError):
    """Text that is no date and no time, or one outside the calendar."""


def zone_of(name: str | None) -> ZoneInfo:
    """The workspace's time zone; the project's own where it is unset or unknown to this machine."""
    try:
        return ZoneInfo(name or settings.TIME_ZONE)
    except (ValueError, OSError, KeyError):
        logger.warning("The time zone %.80r of a workspace is unknown; %s is used.", name, settings.TIME_ZONE)
        return ZoneInfo(settings.TIME_ZONE)


def moment(text: str, zone: ZoneInfo, *, end_of_day: bool = False) -> datetime:
    """The instant that `text` names, in UTC; a MomentError where it names none.

    A date alone is that day's midnight in `zone`, or with `end_of_day` the next day's. A time without an
    offset is in `zone`; of a time that the clock repeats, it is the first.
    """
    try:
        if _DATE.fullmatch(text):
            day = date.fromisoformat(text) + timedelta(days=int(end_of_day))
            return datetime.combine(day, time(), zone).astimezone(UTC)
        if _MOMENT.fullmatch(text):
            at = datetime.fromisoformat(text)
            return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise MomentError(f"{_RULE}, and lie within the calendar") from None
    raise MomentError(_RULE)


def local(at: datetime, zone: ZoneInfo) -> str:
    """An instant in ISO 8601 with the zone's offset; in UTC where the zone's own is outside the calendar."""
    try:
        return at.astimezone(zone).isoformat()
    except OverflowError:
        return at.astimezone(UTC).isoformat()
