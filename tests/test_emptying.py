"""What a test committed is gone before the next one, and the guards stand again."""

from django.contrib.auth.models import Permission
from django.db import connection

from history_access.models import TurnConversationRead
from history_access.testing import lift_guards
from history_access.testing.guards import all_guards
from settings_catalog.guards import missing
from tests.emptying import empty, filled
from tests.worlds import World, listed


def test_rows_go_and_what_migrate_made_stays(open_world: World) -> None:
    open_world.allow("all_accounts")
    open_world.session("hello", person=open_world.mara)
    assert listed(open_world.tools(open_world.mara))
    assert TurnConversationRead._meta.db_table in filled(connection)
    permissions = Permission.objects.count()
    empty()
    assert filled(connection) == []
    assert Permission.objects.count() == permissions > 0
    assert missing(connection, all_guards()) == []


def test_guards_that_a_test_lifted_stand_again(open_world: World) -> None:
    lift_guards()
    assert missing(connection, all_guards())
    empty()
    assert missing(connection, all_guards()) == []
