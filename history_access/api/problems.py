"""Problem details for every answer that is none (RFC 9457, `application/problem+json`)."""

from http import HTTPStatus
from typing import Any

from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback

from history_access.api.filters import ParameterError
from history_access.queries import NotLoggedError

MEDIA_TYPE = "application/problem+json"

_NOTHING_HERE = "There is nothing here that you may audit."


def nothing_here() -> exceptions.NotFound:
    """The one refusal for what does not exist and for what somebody may not see (`reach-same-answer`)."""
    return exceptions.NotFound(_NOTHING_HERE)


def answer_problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """Django REST framework's handler of exceptions, for these views; None where it is no refusal."""
    if isinstance(error, ParameterError):
        set_rollback()
        return _parameters(error)
    if isinstance(error, NotLoggedError):
        set_rollback()
        return _problem(status.HTTP_503_SERVICE_UNAVAILABLE, str(error))
    response = exception_handler(error, context)
    if response is None:
        return None
    detail = str(getattr(error, "detail", _NOTHING_HERE))
    problem = _problem(response.status_code, detail)
    for name, value in response.headers.items():
        problem.headers.setdefault(name, value)
    return problem


def _parameters(error: ParameterError) -> Response:
    named = [{"parameter": name, "rule": rule} for name, rule in error.rules.items()]
    return _problem(status.HTTP_400_BAD_REQUEST, "These parameters cannot be taken.", errors=named)


def _problem(code: int, detail: str, **more: Any) -> Response:
    body = {"type": "about:blank", "title": HTTPStatus(code).phrase, "status": code, "detail": detail, **more}
    return Response(body, status=code, content_type=MEDIA_TYPE)
