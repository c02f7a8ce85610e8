"""Why what a person submitted was refused: the same words from Python and from REST."""

from http import HTTPStatus

FIELD = "conversation_references"


class ReferencesError(Exception):
    """A refused submission; nothing of it was kept.

    `status` is the HTTP status that says it best, `code` a word for programs, `field` what is at fault, with
    the place of an entry counted from 0 ("conversation_references[1]"); the message names both.
    """

    def __init__(self, status: HTTPStatus, code: str, rule: str, field: str | None = None) -> None:
        self.status = int(status)
        self.code = code
        self.rule = rule
        self.field = field
        super().__init__(f"{field}: {rule}" if field else rule)


def switched_off(kind: str) -> ReferencesError:
    """The setting does not let anybody hand over this kind (`refs-admission`)."""
    rule = f"{kind} cannot be handed to this agent: the setting conversation_references does not allow it"
    return ReferencesError(HTTPStatus.BAD_REQUEST, "references_off", rule)


def not_permitted(rule: str) -> ReferencesError:
    """The turn, or the person who sent it, may not be handed anything (`refs-admission`)."""
    return ReferencesError(HTTPStatus.FORBIDDEN, "not_permitted", rule)


def key_used() -> ReferencesError:
    """A submission key that stands for other references (`refs-admission`)."""
    rule = "was used for other references of this turn; a retry repeats them, another submission has another"
    return ReferencesError(HTTPStatus.CONFLICT, "submission_key_used", rule, "submission_key")


def invalid(field: str, rule: str) -> ReferencesError:
    """An entry that breaks a rule of form."""
    return ReferencesError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_reference", rule, field)


def unavailable(field: str) -> ReferencesError:
    """The one answer for every conversation that may not be handed over (`reach-same-answer`)."""
    rule = "there is no such conversation that you can hand to this turn"
    return ReferencesError(HTTPStatus.UNPROCESSABLE_ENTITY, "conversation_unavailable", rule, field)
