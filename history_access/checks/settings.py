"""Checks of what the project says in its settings, and of the authority that they name."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.utils.module_loading import import_string

from history_access.authority import Authority
from history_access.conf import KNOWN, NAMING, conf, unknown_naming_keys
from history_access.references.addresses import Address
from settings_catalog.checks import active_errors, known_names


@register(Tags.compatibility)
def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """What the project says in its settings.

    E001: HISTORY_ACCESS is no dictionary, or has an unknown key. E002: CONVERSATION_URL is no address with
    {id}. E013: times without time zones. E014: NAMING_KEYS names no kind of key. E015: REFERENCE_URLS is no
    list of addresses that can be compared.
    """
    return [
        *_check_keys(),
        *_check_conversation_url(),
        *_check_reference_urls(),
        *_check_time_zones(),
        *_check_naming_keys(),
    ]


def _check_keys() -> Iterable[CheckMessage]:
    whole = getattr(settings, "HISTORY_ACCESS", {})
    if not isinstance(whole, dict):
        hint = f"Write a dictionary with the keys {', '.join(sorted(KNOWN))}."
        message = f"HISTORY_ACCESS is {whole!r}, which is no dictionary."
        yield Error(message, hint=hint, id="history_access.E001")
    for key in conf.given:
        if key not in KNOWN:
            message = f"HISTORY_ACCESS has the unknown key {key!r}."
            yield Error(message, hint=known_names(key, KNOWN), id="history_access.E001")


def _check_conversation_url() -> Iterable[CheckMessage]:
    url: object = conf.conversation_url
    if url is None or (isinstance(url, str) and "{id}" in url):
        return
    hint = 'Write it like "https://chat.example/conversations/{id}", or leave it out.'
    message = f"HISTORY_ACCESS['CONVERSATION_URL'] is {url!r}, which is no address with {{id}} in it."
    yield Error(message, hint=hint, id="history_access.E002")


def _check_reference_urls() -> Iterable[CheckMessage]:
    given: object = conf.given.get("REFERENCE_URLS")
    if given is None:
        return
    hint = 'Write a list like ["https://chat.example/agents/{agent}/conversations/{id}"], or leave it out.'
    if not isinstance(given, list | tuple) or not given:
        message = f"HISTORY_ACCESS['REFERENCE_URLS'] is {given!r}, which is no list of addresses."
        yield Error(message, hint=hint, id="history_access.E015")
        return
    for pattern in given:
        try:
            Address.declared(pattern)
        except (TypeError, ValueError, AttributeError) as error:
            message = f"HISTORY_ACCESS['REFERENCE_URLS'] has {pattern!r}, which cannot be compared: {error}."
            yield Error(message, hint=hint, id="history_access.E015")


def _check_time_zones() -> Iterable[CheckMessage]:
    if not settings.USE_TZ:
        message = "USE_TZ is off: times of the record and of conversations would not be moments."
        yield Error(message, hint="Set USE_TZ = True.", id="history_access.E013")


def _check_naming_keys() -> Iterable[CheckMessage]:
    if unknown_naming_keys():
        unknown = unknown_naming_keys()
        message = f"HISTORY_ACCESS['NAMING_KEYS'] has {unknown}, which an erasure would pass over."
        hint = f"Write a tuple of {' and '.join(map(repr, NAMING))}."
        yield Error(message, hint=hint, id="history_access.E014")


@register(Tags.security)
def check_authority(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """E007: the authority is not named, cannot be loaded, does not answer the port, or names those who are
    active by a column that people do not have.
    """
    path = conf.given.get("AUTHORITY")
    if path is None:
        return [_authority_error("is not set")]
    try:
        found = import_string(path)()
    except Exception as error:  # whatever the platform's own module raises is the finding
        return [_authority_error(f"is {path!r}, which cannot be loaded: {error}")]
    if not isinstance(found, Authority):
        return [_authority_error(f"is {path!r}, which is no Authority")]
    return active_errors("HISTORY_ACCESS['AUTHORITY']", found, "history_access.E007")


def _authority_error(fault: str) -> CheckMessage:
    hint = "Name a subclass of history_access.authority.Authority that takes no arguments."
    return Error(f"HISTORY_ACCESS['AUTHORITY'] {fault}.", hint=hint, id="history_access.E007")
