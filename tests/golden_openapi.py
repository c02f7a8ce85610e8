"""The OpenAPI 3.1 description of the REST for auditors, as it is kept in `tests/golden/openapi.json`."""

import json
from typing import Any

SETTINGS = {
    "TITLE": "History access: REST for auditors",
    "DESCRIPTION": "Which turn of an agent was given what of which conversation. To look at only.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
}


def openapi() -> dict[str, Any]:
    """The description; an AssertionError for anything that the generator warns of. No database is asked."""
    from django.urls import include, path
    from drf_spectacular.drainage import GENERATOR_STATS
    from drf_spectacular.generators import SchemaGenerator
    from drf_spectacular.renderers import OpenApiJsonRenderer
    from drf_spectacular.settings import patched_settings

    addresses = [path("api/history/", include("history_access.api.urls"))]
    GENERATOR_STATS.reset()
    with patched_settings(SETTINGS):
        schema = SchemaGenerator(patterns=addresses).get_schema(request=None, public=True)
        found: dict[str, Any] = json.loads(OpenApiJsonRenderer().render(schema))
    assert not GENERATOR_STATS, "the generator warns"
    return found
