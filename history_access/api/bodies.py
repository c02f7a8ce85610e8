"""What is sent and answered: JSON alone, of a size, and in a form that never fails to be read or written."""

from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any

from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer

MOST_BYTES = 2**20
"""How long a body may be: more than the longest submission that is taken."""


class BodyTooLongError(APIException):
    """A body beyond `MOST_BYTES`, of which no more was read."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = f"The body may have at most {MOST_BYTES:,} bytes."


class BoundedJSONParser(JSONParser):
    """JSON up to a size. Django's own limit is for what Django reads, and this is read past it."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """What was sent; a ParseError for what is no JSON, or nested deeper than anybody means."""
        body = stream.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise BodyTooLongError
        try:
            return super().parse(BytesIO(body), media_type, parser_context)
        except RecursionError:
            raise ParseError("JSON parse error - nested too deeply") from None


class PlainJSONRenderer(JSONRenderer):
    """JSON in ASCII, which can always be encoded: a name that is told as it was sent may be no text."""

    ensure_ascii = True
