"""Where agents write: the storage guard of a platform that asks history access first."""

from history_access.agent_platform.models import Turn
from history_access.record import drawn_on, wrote


class RefusedPlaceError(Exception):
    """What a turn has drawn on may not go to that place."""


def write(turn: Turn, place: str) -> None:
    """Let a turn write to a place, and note it; a RefusedPlaceError for words that may not go there.

    What is under workspace/ is read by everybody of the workspace: no other account's words, and none that
    came by a webhook, may go there.
    """
    label = drawn_on(turn)
    if place.startswith("workspace/") and label.other_account:
        raise RefusedPlaceError(f"{place}: the turn drew on other accounts' conversations")
    if place.startswith("workspace/") and label.webhook:
        raise RefusedPlaceError(f"{place}: a webhook's words are in the turn")
    wrote(turn, place)
