"""How these views stand in an OpenAPI schema (drf-spectacular)."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view

from history_access.api.problems import MEDIA_TYPE
from history_access.api.serializers import ProblemDetailsSerializer

View = TypeVar("View", bound=type)

_REFUSALS = (400, 401, 403, 404, 429, 503)

WORKSPACE = OpenApiParameter(
    "workspace", str, description="Its workspace. Required of everybody who may not audit all workspaces."
)


def documented(
    operation: str,
    answer: Any,
    *,
    keys: Iterable[str] = (),
    media_type: str = "application/json",
    **more: Any,
) -> Callable[[View], View]:
    """Describe the one question of a view: its name, its answer, the keys in its path, its refusals."""
    path = [OpenApiParameter(key, str, OpenApiParameter.PATH) for key in keys]
    refusals = {(code, MEDIA_TYPE): ProblemDetailsSerializer for code in _REFUSALS}
    described = extend_schema(
        operation_id=operation,
        tags=["history audit"],
        parameters=[*path, *more.pop("parameters", ())],
        responses={(200, media_type): answer, **refusals},
        **more,
    )
    return extend_schema_view(get=described)


def documented_request(
    operation: str, answer: Any, *, keys: Iterable[str] = (), parameters: Iterable[Any] = (), **more: Any
) -> Callable[[Any], Any]:
    """Describe one method of a view for people who hand conversations over."""
    path = [OpenApiParameter(key, str, OpenApiParameter.PATH) for key in keys]
    of_a_body = (413, 415) if "request" in more else ()
    refusals = {(code, MEDIA_TYPE): ProblemDetailsSerializer for code in (*_REFUSALS, *of_a_body, 409, 422)}
    answers = {204: None} if answer is None else {200: answer}
    return extend_schema(
        operation_id=operation,
        tags=["references"],
        parameters=[*path, *parameters],
        responses={**answers, **refusals},
        **more,
    )


FILE = OpenApiTypes.BINARY
