"""Exports of the record, for spreadsheets and for programs: the rows that auditors see, in constant memory.

Rows are fetched in chunks by key, each a short statement of its own: the same on both databases and behind
a connection pool, and nothing waits for a long export. Newest first, as in lists.
"""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from history_access.audited import Row, shown_reads

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from history_access.models import TurnConversationRead

CHUNK = 500

COLUMNS = (
    "id",
    "read_at",
    "workspace_id",
    "workspace_name",
    "agent_id",
    "agent_name",
    "turn_id",
    "turn_account_id",
    "turn_account_name",
    "turn_account_absent",
    "reader_id",
    "reader_name",
    "trigger_id",
    "trigger_name",
    "conversation_id",
    "conversation_account_id",
    "conversation_account_name",
    "conversation_account_absent",
    "conversation_person_id",
    "conversation_person_name",
    "crossed_account",
    "setting",
    "how",
    "what",
    "first_number",
    "last_number",
    "characters",
)
"""The columns of a CSV file. JSON Lines have null instead of the two that say that an account is absent."""

_BYTE_ORDER_MARK = "\ufeff"
_INVISIBLE = re.compile("[\\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*")
_STARTS_A_FORMULA = frozenset("=+-@−")


class RightLostError(Exception):
    """The right to audit was lost during an export, which ends here: what was sent is not complete."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """One form of export: how it starts, and how a chunk of rows is written."""

    name: str
    media_type: str
    start: str
    write: Callable[[list[Row]], str]


def export(
    reads: "QuerySet[TurnConversationRead]",
    form: Format,
    *,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[bytes, int]]:
    """The file in pieces of UTF-8, each with how many rows it holds; `reads` are some of `audited.reads`.

    `may_go_on` is asked after each chunk has been fetched; where it denies, a RightLostError ends the export
    before that chunk is handed out, so that a file cut short is never taken for a whole one.
    """
    yield form.start.encode(), 0
    for chunk in chunks(reads):
        if not may_go_on():
            raise RightLostError("the right to audit was lost during the export")
        if chunk:
            yield form.write(shown_reads(chunk)).encode(), len(chunk)


def chunks(reads: "QuerySet[Any]") -> Iterator[list[Any]]:
    """The rows, newest first, at most `CHUNK` at a time; the last chunk may be empty."""
    rows, after = reads.order_by("-pk"), None
    while True:
        chunk = list((rows if after is None else rows.filter(pk__lt=after))[:CHUNK])
        yield chunk
        if len(chunk) < CHUNK:
            return
        after = chunk[-1].pk


def inert(value: Any) -> str:
    """A value as a spreadsheet shows it and never computes it: with an apostrophe before a formula.

    A formula is what starts with one of = + - @ or a look-alike of other width, also behind what nobody
    sees; a leading tab or line break makes one out of the rest.
    """
    text = "" if value is None else str(value)
    seen = _INVISIBLE.sub("", text, count=1)[:1]
    risky = unicodedata.normalize("NFKC", seen) in _STARTS_A_FORMULA or text.startswith(("\t", "\r", "\n"))
    return f"'{text}" if risky else text


def _csv_lines(rows: list[Row]) -> str:
    """RFC 4180, every cell quoted; booleans as true and false."""
    lines = io.StringIO()
    writer = csv.writer(lines, quoting=csv.QUOTE_ALL)
    for row in rows:
        whole = {
            **row,
            "turn_account_absent": row["turn_account_id"] is None,
            "conversation_account_absent": row["conversation_account_id"] is None,
        }
        writer.writerow([_cell(whole[column]) for column in COLUMNS])
    return lines.getvalue()


def _cell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else inert(value)


def _json_lines(rows: list[Row]) -> str:
    """One object a line, in ASCII: no name can break a line, whatever counts as a line break elsewhere."""
    return "".join(json.dumps(row) + "\n" for row in rows)


CSV = Format(
    name="csv",
    media_type="text/csv; charset=utf-8",
    # Spreadsheets need the mark to read names right; it is for people, JSON Lines are for programs.
    start=_BYTE_ORDER_MARK + ",".join(f'"{column}"' for column in COLUMNS) + "\r\n",
    write=_csv_lines,
)
JSON_LINES = Format(name="jsonl", media_type="application/jsonl", start="", write=_json_lines)
FORMATS = {form.name: form for form in (CSV, JSON_LINES)}
