"""The database that is measured, and a floor on a connection of its own to it."""

from typing import Any

from benchmarks.floor import Floor


def floor_of(connection: Any) -> Floor:
    """The floor for the database that Django is connected to."""
    if connection.vendor == "sqlite":
        from benchmarks.floor_sqlite import SQLiteFloor

        return SQLiteFloor(str(connection.settings_dict["NAME"]))
    from benchmarks.floor_postgresql import PostgreSQLFloor

    asked = connection.get_connection_params()
    return PostgreSQLFloor({name: asked[name] for name in _CONNECTS if asked.get(name)})


_CONNECTS = ("dbname", "user", "password", "host", "port")


class Chosen:
    """A router by which everything goes to the database that is measured."""

    alias = "default"

    def db_for_read(self, model: Any, **hints: Any) -> str:
        """The chosen one."""
        return Chosen.alias

    def db_for_write(self, model: Any, **hints: Any) -> str:
        """The chosen one."""
        return Chosen.alias
