"""Asking whoever runs a command, before it does what cannot be undone."""

import sys

from django.core.management.base import CommandError


def ask(question: str, otherwise: str) -> None:
    """Go on where the answer is yes; a CommandError that says `otherwise`, or that nobody can be asked."""
    if not sys.stdin.isatty():
        raise CommandError("--yes: is needed where nobody can be asked")
    if input(f"{question} It cannot be undone. Type yes: ").strip() != "yes":
        raise CommandError(otherwise)
