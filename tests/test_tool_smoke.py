from tests.worlds import World, listed, pages


def test_reads(world: World):
    world.allow("all_accounts")
    other = world.session("hello", "hi", person=world.mara)
    tools = world.tools(world.mara)
    assert listed(tools) == [str(other.pk)]
    assert [m["quoted"]["text"] for m in pages(tools, other.pk)[0]["messages"]] == ["hello", "hi"]


def test_open(open_world: World):
    open_world.allow("all_accounts")
    other = open_world.session("hello", "hi", person=open_world.mara)
    assert listed(open_world.tools(open_world.mara)) == [str(other.pk)]
