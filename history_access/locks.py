"""One at a time, for what several requests could otherwise do at once."""

import hashlib

from django.db import connections

_ALONE = "SELECT pg_advisory_xact_lock(%s)"


def alone(using: str, *what: str) -> None:
    """Wait until nobody else works on `what`, and keep others waiting until this transaction ends.

    On SQLite a transaction that writes is alone anyway.
    """
    connection = connections[using]
    if connection.vendor == "postgresql":
        digest = hashlib.sha256("\0".join(what).encode()).digest()
        with connection.cursor() as cursor:
            cursor.execute(_ALONE, [int.from_bytes(digest[:8], "big", signed=True)])
