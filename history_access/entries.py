"""The two settings of this app, both off until an operator opens them (`catalog-closed`)."""

from django.utils.translation import gettext_lazy as _

from settings_catalog.catalog import Choice, Entry

NONE = "none"
SAME_ACCOUNT = "same_account"
ALL_ACCOUNTS = "all_accounts"

EXCERPTS = "excerpts"
CONVERSATIONS = "conversations"

HISTORY_ACCESS = Entry(
    key="history_access",
    title=_("History access"),
    help=_("Which of its own past conversations an agent may read while it answers."),
    choices=(
        Choice(NONE, _("No access"), _("Nothing.")),
        Choice(
            SAME_ACCOUNT,
            _("This account's conversations"),
            _("This agent's conversations with the turn's own account; without one, those without one."),
        ),
        Choice(
            ALL_ACCOUNTS,
            _("All of this agent's conversations"),
            _("This agent's conversations, whatever their account: one customer's words may reach another."),
        ),
    ),
    default=NONE,
    starting_ceiling=NONE,
)

CONVERSATION_REFERENCES = Entry(
    key="conversation_references",
    title=_("Conversation references"),
    help=_("What a person may hand to one turn of an agent from their past conversations."),
    choices=(
        Choice(NONE, _("Nothing"), _("Nothing.")),
        Choice(EXCERPTS, _("Excerpts"), _("A person may attach a fixed excerpt.")),
        Choice(CONVERSATIONS, _("Conversations"), _("A person may let the turn read a whole conversation.")),
    ),
    default=NONE,
    starting_ceiling=NONE,
)
