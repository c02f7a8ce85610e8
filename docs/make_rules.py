"""Writes `docs/rules.md`, the rules by name with the tests that hold them: `python -m docs.make_rules`."""

import re
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).with_name("rules.md")
TESTS = PAGE.parent.parent / "tests"

PARTS = {
    "catalog": "Settings",
    "reach": "Reach",
    "refs": "References",
    "tool": "Tools",
    "record": "Record",
    "danger": "Danger",
}
"""The first word of a rule's name, and the heading under which it stands."""

SENTENCES = """\
catalog-ordered: A setting is one ordered choice, least first, declared in code while the project starts and
    never after.
catalog-ladder: A setting is stored at the platform, a workspace or an agent, in one row for each place; an
    agent has no ceiling.
catalog-resolve: The nearest place that asks is heard, the lowest ceiling above holds it down, and nothing
    raises a lower wish.
catalog-closed: Until an operator lifts the platform's ceiling, no agent reads any history, whatever it asks
    for.
catalog-unknown-is-least: A stored value that the setting does not know counts as its least, and operators
    are shown the fault.
catalog-explains: One statement finds what holds and why, as one object that admin, REST and code all show.
catalog-fresh: Nothing is cached: the next call in any process goes by the change that was committed.
catalog-change-log: Every change leaves one row that says who, what and why, written in the same transaction
    and never altered.
catalog-who: The platform's settings take a Django permission, those of a workspace and its agents
    `settings:write`, and a refusal names what is missing.
reach-agent: A turn reads conversations of its own agent, never another's, even for somebody who may open
    both.
reach-account-exact: Under `same_account` the accounts are equal to the letter, and no account equals only
    no account.
reach-person: A turn reads what its reader took part in, and other people's conversations only with
    `sessions:read`; somebody who is switched off reads nothing.
reach-trigger-owner: A schedule or a webhook reads as whoever owns it at that moment, and as nobody without
    an owner.
reach-trigger-edited: Whoever changes what a trigger does owns it from then on, so that nobody makes it read
    as a third person.
reach-fixed-session: The workspace, the agent and the account of a conversation are fixed once it is open,
    by the tables themselves.
reach-not-self: A turn never reads the conversation that it is part of.
reach-not-deleted: A deleted conversation is gone at once, with its title, its count and its summary.
reach-live-turn: A turn that has ended, or whose own conversation was deleted, reads nothing more.
reach-now: Setting, rights, ownership and deletion are looked at in the statement that fetches the text, on
    the primary database.
reach-one-door: One module reads sessions and messages for everybody else, and the layers of imports keep it
    so.
reach-same-answer: Whatever is out of reach answers alike, in words and in the number of statements, whether
    or not it exists.
refs-per-turn: A person hands a turn up to three references when they submit it, by id or by the address of
    one of the platform's own pages; one that is refused refuses them all, and all are gone with the turn.
refs-admission: Handing over takes the setting, `runs:read`, and what the person may read at that moment; a
    trigger hands over nothing, and a submission key stands for one submission.
refs-not-by-mention: An id in a message, in quoted text, in arguments or in another turn opens nothing.
refs-within-reach: What was handed over is read within every restrictor of reach, and without history access
    it is all that can be read.
refs-two-kinds: A conversation is read as it is now, under rights that are looked at each time; an excerpt is
    a copy that stays as it was attached and opens nothing else.
refs-discovery: A person can find and preview what they could hand over, which grants nothing to any turn.
tool-list: `list_conversations` gives the conversations in reach that moved within a span of time, latest
    first, by days of the workspace's own time zone.
tool-read: `read_conversation` gives a range of what the person and the agent said, with the names of called
    tools, and nothing hidden.
tool-caps: A page, a message and a list have a most; each cut is marked and leads on, and the pieces make up
    the original.
tool-count: The number of messages that is shown is the number that can be read.
tool-pages: Pages follow a key and repeat no row; a cursor fits its own question alone, and never widens
    what may be read.
tool-quoted: What others wrote comes as quoted text in JSON that no text can break out of, with a notice
    that it gives no orders.
tool-unavailable: What is no longer there is said to be missing, so that a part never passes for the whole.
tool-summary: A summary is marked as a model's account, says how far it goes, and goes when its source has
    to go.
tool-errors: A call fails in one of three ways, in words for a model, and never with an exception, a trace
    or SQL.
tool-read-only: Reading changes nothing that was read.
tool-text-is-hostile: Any text is read, cut or refused cleanly on both databases, however odd or large it
    is.
record-every-read: Whatever a turn was given of a conversation is on record: what, how much, as whom, under
    which setting, when.
record-or-nothing: The record commits with the read before anything is returned, and the caller cannot roll
    it back.
record-outlives: The record stays readable when what it speaks of is gone, and holds keys and counts, no
    words.
record-append-only: The database itself refuses to change or remove what is recorded, and a check finds a
    missing guard.
record-sealed: Once sealed, a row that is changed, removed, put in or moved is found, and where.
record-refusals: Calls that were refused are kept for auditors, apart from reads, up to a most for each
    turn.
record-both-ways: The record answers what a reply drew on and which replies drew on a conversation, by an
    index.
record-erasure: An erasure takes the names and leaves the fact; only its own sealed event explains what is
    blank.
record-label: A platform can ask what a turn has drawn on before it lets the turn write somewhere.
danger-warned: All accounts together with a webhook, or with files that others read, is shown as dangerous,
    or refused.
"""

RULES = dict(one.split(": ", 1) for one in SENTENCES.replace("\n    ", " ").splitlines())
"""Each rule in a sentence, by name."""

LEAD = """# The rules, by name

Tests, code and these pages name the rule that they keep. This is each in a sentence, with the tests that
hold it. The page is made by `make golden`; a test fails where a rule has no test, or a test names a rule that
is not here.
"""


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(TESTS.glob("test_*.py"))}
    parts = [LEAD]
    for first, heading in PARTS.items():
        names = [name for name in RULES if name.partition("-")[0] == first]
        parts += [f"## {heading}\n", *(_rule(name, texts) for name in names), ""]
    return "\n".join(parts)


def holding(name: str, texts: dict[str, str]) -> Iterator[str]:
    """The files of tests that name a rule, in words or in the name of a test."""
    named = re.compile(rf"(?<![\w-]){name}(?![\w-])|\btest_{name.replace('-', '_')}(?![a-z])")
    return (file for file, text in texts.items() if named.search(text))


def _rule(name: str, texts: dict[str, str]) -> str:
    files = ", ".join(f"[{file.removesuffix('.py')}](../tests/{file})" for file in holding(name, texts))
    return f"- **{name}**: {RULES[name]} {files or 'No test'}."


if __name__ == "__main__":
    main()
