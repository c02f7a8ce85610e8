"""The contract suite on the help desk's tables, and on its views that lack what may be lacking."""

from django.conf import settings
from django.test import override_settings

from history_access import testing
from history_access.testing.contract.listing import ListRules
from history_access.testing.contract.reach import ReachRules
from history_access.testing.contract.reading import ReadRules
from tests.second_platform.factories import DeskFactories, PlainFactories

PLAIN = {**settings.HISTORY_ACCESS, "TRIGGER_MODEL": None}
PLAIN |= {
    "SESSION_MODEL": "desk.PlainThread",
    "MESSAGE_MODEL": "desk.PlainEntry",
    "TURN_MODEL": "desk.PlainRun",
}


class TestDesk(testing.HistoryAccessContract):
    platform = DeskFactories()


@override_settings(HISTORY_ACCESS=PLAIN)
class TestPlainDesk(ReachRules, ListRules, ReadRules):
    """What rests on the views; the rest is the same desk's."""

    platform = PlainFactories()
