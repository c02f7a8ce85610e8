"""What a person submits for a conversation: its id, or its address on one of the platform's own frontends.

An address is compared with those that the platform declares, and never fetched (`refs-per-turn`):

- scheme and host without regard to the case of ASCII letters, an international host in either of its two
  spellings;
- the port as declared, the scheme's own one written or not;
- the path to the letter, a trailing slash included; percent-encoding is read once, in the id and in the
  agent alone;
- no user info, no query, no fragment, not even empty ones; no backslash, white space or control character.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Any
from urllib.parse import unquote

import idna

from history_access.conf import conf

MOST_CHARACTERS = 2_048
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
_ADDRESS = re.compile(
    r"(?P<scheme>[A-Za-z]+)://(?P<host>[^/:@\[\]]+)(?::(?P<port>[1-9][0-9]*))?(?P<path>(?:/.*)?)"
)
_REFUSED = re.compile(r"[\s\\?#\x00-\x20\x7f-\xa0\ud800-\udfff]")
_PORTS = {"http": "80", "https": "443"}
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


class AddressError(ValueError):
    """A submitted string that is no conversation's address here; the message is the rule that it breaks."""


@dataclass(frozen=True)
class Named:
    """Which conversation a string names, by the text of its key; `agent` where the address says one."""

    conversation: str
    agent: str | None = None


@dataclass(frozen=True)
class Address:
    """An address that the platform declares: origin, and a path with `{id}` and perhaps `{agent}` in it."""

    origin: tuple[str, str, str]
    path: "re.Pattern[str]"

    @classmethod
    def declared(cls, pattern: str) -> "Address":
        """Read a declared pattern like "https://chat.example/agents/{agent}/threads/{id}".

        A ValueError that says what is wrong with it.
        """
        if pattern.count("{id}") != 1 or pattern.count("{agent}") > 1:
            raise ValueError("it has {id} once, and {agent} at most once")
        found = None if _REFUSED.search(pattern) else _ADDRESS.fullmatch(pattern)
        if found is None or found["scheme"].lower() not in _PORTS or "{" in found["host"]:
            raise ValueError("it is an http or https address with a path, without query and fragment")
        path = re.escape(found["path"]).replace(r"\{id\}", "(?P<id>[^/]+)")
        path = path.replace(r"\{agent\}", "(?P<agent>[^/]+)")
        return cls(_origin(found), re.compile(path))


def declared_addresses() -> tuple[Address, ...]:
    """The addresses that the platform declares; one that cannot be compared is none (a check says so)."""
    found = []
    for pattern in conf.reference_urls:
        with suppress(ValueError, TypeError, AttributeError):
            found.append(Address.declared(pattern))
    return tuple(found)


def named(text: Any, addresses: tuple[Address, ...]) -> Named:
    """Which conversation a submitted string names; an AddressError that says which rule it breaks.

    Whether there is such a conversation is not looked at here. A string without "://" is an id.
    """
    if not isinstance(text, str):
        raise AddressError("must be text: a conversation's id, or its address")
    if not 1 <= len(text) <= MOST_CHARACTERS:
        raise AddressError(f"must have 1 to {MOST_CHARACTERS} characters")
    if not _SCHEME.match(text):
        return Named(text)
    if _REFUSED.search(text):
        raise AddressError(
            "must be an address without query, fragment, backslash, white space and control characters"
        )
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise AddressError("must have a host, no user info, and a port, if any, that is a plain number")
    return _matched(found, addresses)


def _matched(found: "re.Match[str]", addresses: tuple[Address, ...]) -> Named:
    try:
        origin = _origin(found)
    except ValueError:
        raise AddressError("must be an address of this platform") from None
    paths = [one.path for one in addresses if one.origin == origin]
    if not paths:
        raise AddressError("must be an address of this platform")
    for path in paths:
        if parts := path.fullmatch(found["path"]):
            return Named(*(_decoded(parts.groupdict().get(name)) for name in ("id", "agent")))  # type: ignore[arg-type]
    raise AddressError("must be the address of a conversation, to the letter, as its page shows it")


def _origin(found: "re.Match[str]") -> tuple[str, str, str]:
    """Scheme, host and port in the one form that is compared; a ValueError for a host that is none."""
    scheme = found["scheme"].lower()
    return scheme, _host(found["host"]), found["port"] or _PORTS.get(scheme, "")


def _host(text: str) -> str:
    """A host in its ASCII form. Nothing but ASCII case is overlooked: a look-alike is another host."""
    lower = text.translate(_LOWER)
    return lower if lower.isascii() else idna.encode(lower, strict=True, std3_rules=True).decode("ascii")


def _decoded(part: str | None) -> str | None:
    """One part of a path with its percent-encoding read once."""
    if part is None:
        return None
    if _BAD_PERCENT.search(part):
        raise AddressError("must be percent-encoded as an address is")
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise AddressError("must be percent-encoded as an address is") from None
