"""What the answers look like, for clients and for the schema; the rows come from `history_access.audited`.

Names are null where none was recorded, and once they are erased. There are no titles and no words in the
record: whoever may open a conversation finds them there.
"""

from typing import Any

from rest_framework import serializers

from history_access.models import ReferenceKind
from history_access.references.binding import MOST_SUBMITTED


def _key(words: str) -> serializers.CharField:
    return serializers.CharField(help_text=words)


def _absent_key(words: str) -> serializers.CharField:
    return serializers.CharField(help_text=words, allow_null=True)


def _name() -> serializers.CharField:
    return serializers.CharField(help_text="Its name when it was recorded.", allow_null=True)


class AuditedReadSerializer(serializers.Serializer[Any]):
    """One conversation that a turn was given something of."""

    id = serializers.UUIDField()
    read_at = serializers.DateTimeField()
    workspace_id = _key("Its workspace.")
    workspace_name = _name()
    agent_id = _key("The agent that read.")
    agent_name = _name()
    turn_id = _key("The turn that read.")
    turn_account_id = _absent_key("The turn's account; null is no account.")
    turn_account_name = _name()
    reader_id = _key("The person whom the turn read as.")
    reader_name = _name()
    trigger_id = _absent_key("The trigger that started the turn; null is none.")
    trigger_name = _name()
    conversation_id = _key("The conversation that was read.")
    conversation_account_id = _absent_key("The conversation's account; null is no account.")
    conversation_account_name = _name()
    conversation_person_id = _absent_key("The conversation's person; null is nobody.")
    conversation_person_name = _name()
    crossed_account = serializers.BooleanField(
        allow_null=True,
        help_text="Whether the conversation's account is not the turn's own; null where both were erased.",
    )
    setting = serializers.CharField(help_text="The value of history_access at that moment.")
    how = serializers.CharField(help_text="What let the turn read: history (the setting) or reference.")
    what = serializers.CharField(help_text="What was given: title, messages, summary or excerpt.")
    first_number = serializers.IntegerField(allow_null=True, help_text="The first message that was given.")
    last_number = serializers.IntegerField(
        allow_null=True, help_text="The last message that was given, or that a summary covers."
    )
    characters = serializers.IntegerField(help_text="How many characters were given.")


class _TotalsSerializer(serializers.Serializer[Any]):
    reads = serializers.IntegerField(help_text="How many reads.")
    characters = serializers.IntegerField(help_text="How many characters were given in all.")
    first_read_at = serializers.DateTimeField()
    last_read_at = serializers.DateTimeField()


class DrawnConversationSerializer(_TotalsSerializer):
    """A conversation that one reply drew on."""

    workspace_id = _key("Its workspace.")
    workspace_name = _name()
    conversation_id = _key("The conversation.")
    conversation_account_id = _absent_key("Its account; null is no account.")
    conversation_account_name = _name()


class DrawingTurnSerializer(_TotalsSerializer):
    """A reply that drew on one conversation."""

    workspace_id = _key("Its workspace.")
    workspace_name = _name()
    agent_id = _key("Its agent.")
    agent_name = _name()
    turn_id = _key("The turn.")
    turn_account_id = _absent_key("Its account; null is no account.")
    turn_account_name = _name()
    reader_id = _key("The person whom it read as.")
    reader_name = _name()
    trigger_id = _absent_key("The trigger that started it; null is none.")
    trigger_name = _name()


class AuditedRefusalSerializer(serializers.Serializer[Any]):
    """A call of a tool that was refused."""

    id = serializers.UUIDField()
    refused_at = serializers.DateTimeField()
    workspace_id = _key("Its workspace.")
    workspace_name = _name()
    agent_id = _key("The agent that called.")
    agent_name = _name()
    turn_id = _key("The turn that called.")
    reader_id = _absent_key("The person whom the turn read as; null is nobody.")
    reader_name = _name()
    trigger_id = _absent_key("The trigger that started the turn; null is none.")
    trigger_name = _name()
    tool = serializers.CharField(help_text="The tool that was called.")
    code = serializers.CharField(help_text="Which refusal.")
    argument = serializers.CharField(allow_null=True, help_text="The argument that was refused, by name.")


class AuditedSealSerializer(serializers.Serializer[Any]):
    """A seal over a batch of rows, chained to the one before."""

    number = serializers.IntegerField()
    kind = serializers.CharField(help_text="What was sealed: read, or event (maintenance of the record).")
    sealed_at = serializers.DateTimeField()
    complete_before = serializers.DateTimeField(
        allow_null=True, help_text="Everything that was read before this had been sealed by then."
    )
    rows = serializers.IntegerField(help_text="How many rows it seals.")
    root = serializers.CharField(  # type: ignore[assignment]
        help_text="The Merkle root of the rows, SHA-256."
    )
    previous = serializers.CharField(help_text="The digest of the seal before.")
    digest = serializers.CharField(help_text="The digest of this seal: keep the newest one elsewhere.")


class SettingStepSerializer(serializers.Serializer[Any]):
    """What one place asks for and allows."""

    level = serializers.CharField(help_text="agent, workspace or platform.")
    value = serializers.CharField(allow_null=True, help_text="What it asks for; null is nothing.")
    ceiling = serializers.CharField(allow_null=True, help_text="What it allows at most; null is anything.")


class SettingHoldSerializer(serializers.Serializer[Any]):
    """What holds the value down."""

    level = serializers.CharField(
        allow_null=True, help_text="Whose ceiling: workspace or platform; null is the entry's own guard."
    )
    value = serializers.CharField(help_text="The value that it is held at.")
    reason = serializers.CharField(help_text="Why.")


class AgentWarningSerializer(serializers.Serializer[Any]):
    """Why this agent is dangerous."""

    code = serializers.CharField(help_text="webhook or shared_files.")
    warning = serializers.CharField(help_text="The warning for people.")


class AgentAccessSerializer(serializers.Serializer[Any]):
    """Which history an agent may read, and why."""

    agent_id = _key("The agent.")
    workspace_id = _key("Its workspace.")
    value = serializers.CharField(help_text="The value of history_access that holds.")
    asked = serializers.CharField(help_text="The value that is asked for.")
    asked_at = serializers.CharField(allow_null=True, help_text="Where it is asked for; null is nowhere.")
    held_by = SettingHoldSerializer(allow_null=True)
    steps = SettingStepSerializer(many=True, help_text="The places that were asked, the nearest first.")
    faults = serializers.ListField(
        child=serializers.CharField(), help_text="Stored values that are unknown, and count as the least."
    )
    sentence = serializers.CharField(help_text="All of this in one sentence.")
    warnings = AgentWarningSerializer(many=True)


class ReferenceSerializer(serializers.Serializer[Any]):
    """That something was handed to a turn."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=[kind.value for kind in ReferenceKind])
    conversation_id = _key("The conversation.")
    person_id = _key("Who handed it over.")
    bound_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(
        allow_null=True, help_text="When it was taken back or the turn ended; null while it lasts."
    )


class HandedReferenceSerializer(serializers.Serializer[Any]):
    """A reference, as an auditor sees it."""

    id = serializers.UUIDField()
    bound_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(
        allow_null=True, help_text="When it was taken back or the platform noted that the turn ended."
    )
    workspace_id = _key("Its workspace.")
    workspace_name = _name()
    agent_id = _key("The turn's agent.")
    agent_name = _name()
    turn_id = _key("The turn.")
    person_id = _key("Who handed it over.")
    person_name = _name()
    kind = serializers.ChoiceField(choices=[kind.value for kind in ReferenceKind])
    conversation_id = _key("The conversation.")
    conversation_account_id = _absent_key("The conversation's account; null is no account.")
    conversation_account_name = _name()
    conversation_person_id = _absent_key("The conversation's person; null is nobody.")
    conversation_person_name = _name()


class HandedOverSerializer(serializers.Serializer[Any]):
    """What was handed to a turn, in order."""

    references = ReferenceSerializer(many=True)


class SubmittedReferencesSerializer(serializers.Serializer[Any]):
    """Conversations to hand over."""

    conversation_references = serializers.ListField(
        child=serializers.CharField(),
        max_length=MOST_SUBMITTED,
        help_text="Up to three ids, or addresses of conversations; the same ones collapse.",
    )
    submission_key = serializers.CharField(
        required=False, allow_null=True, help_text="The same for each retry, so that it binds nothing twice."
    )


class ChosenMessageSerializer(serializers.Serializer[Any]):
    """A message, or from `start` up to `end` a part of its text, in characters."""

    number = serializers.IntegerField(min_value=0)
    start = serializers.IntegerField(min_value=0, required=False)
    end = serializers.IntegerField(min_value=1, required=False, allow_null=True)


class SubmittedExcerptSerializer(serializers.Serializer[Any]):
    """Messages to copy for a turn."""

    conversation = serializers.CharField(help_text="Its id or its address.")
    messages = ChosenMessageSerializer(many=True, help_text="Up to 50; a plain number stands for a message.")


class OfferSerializer(serializers.Serializer[Any]):
    """A conversation, and what could be handed over of it."""

    id = _key("The conversation.")
    title = serializers.CharField(allow_blank=True)
    account_id = _absent_key("Its account; null is none.")
    account = serializers.CharField(allow_null=True, help_text="The account's name.")
    started_at = serializers.DateTimeField()
    last_moved_at = serializers.DateTimeField()
    message_count = serializers.IntegerField()
    link = serializers.CharField(allow_null=True, help_text="Where people open it.")
    conversation = serializers.BooleanField(help_text="The turn could read it whole.")
    excerpt = serializers.BooleanField(help_text="Chosen messages could be attached.")


class OfferPageSerializer(serializers.Serializer[Any]):
    """A page of offers."""

    offers = OfferSerializer(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class PreviewedMessageSerializer(serializers.Serializer[Any]):
    """A message as a preview shows it."""

    number = serializers.IntegerField()
    speaker = serializers.ChoiceField(choices=["person", "agent"])
    at = serializers.DateTimeField()
    text = serializers.CharField(allow_blank=True)
    characters = serializers.IntegerField(help_text="How long the whole message is.")


class PreviewSerializer(serializers.Serializer[Any]):
    """The beginning and the end of a conversation."""

    offer = OfferSerializer()
    messages = PreviewedMessageSerializer(many=True)
    left_out = serializers.IntegerField(help_text="How many messages stand between them.")


class BrokenParameterSerializer(serializers.Serializer[Any]):
    """A parameter that cannot be taken."""

    parameter = serializers.CharField()
    rule = serializers.CharField()


class ProblemDetailsSerializer(serializers.Serializer[Any]):
    """Problem details (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField(required=False, help_text="Of references: a word for programs.")
    errors = BrokenParameterSerializer(  # type: ignore[assignment]
        many=True, required=False, help_text="Where parameters are wrong."
    )
