"""The OpenAPI 3.1 descriptions of the REST, as they are kept in `tests/golden/openapi*.json`."""

import json
from typing import Any

SETTINGS = {
    "TITLE": "History access: REST for auditors",
    "DESCRIPTION": "Which turn of an agent was given what of which conversation. To look at only.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
}


REFERENCES_SETTINGS = {
    **SETTINGS,
    "TITLE": "History access: REST for people who hand conversations over",
    "DESCRIPTION": "What a person hands to a turn of their own: find it, hand it over, take it back.",
}


def openapi() -> dict[str, Any]:
    """What auditors ask."""
    return _described("api/history/", "history_access.api.urls", SETTINGS)


def references_openapi() -> dict[str, Any]:
    """What people ask who hand conversations over."""
    return _described("api/references/", "history_access.api.references_urls", REFERENCES_SETTINGS)


def _described(address: str, urls: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The description; an AssertionError for anything that the generator warns of. No database is asked."""
    from django.urls import include, path
    from drf_spectacular.drainage import GENERATOR_STATS
    from drf_spectacular.generators import SchemaGenerator
    from drf_spectacular.renderers import OpenApiJsonRenderer
    from drf_spectacular.settings import patched_settings

    addresses = [path(address, include(urls))]
    GENERATOR_STATS.reset()
    with patched_settings(settings):
        schema = SchemaGenerator(patterns=addresses).get_schema(request=None, public=True)
        found: dict[str, Any] = json.loads(OpenApiJsonRenderer().render(schema))
    assert not GENERATOR_STATS, "the generator warns"
    return found
