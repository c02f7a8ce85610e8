from history_access.references import *
from tests.worlds import World, read, error

def test_smoke(open_world: World):
    w = open_world
    w.set("conversation_references", platform=True, ceiling="conversations")
    w.set("conversation_references", agent=w.agent, value="conversations")
    old = w.session("hello", "there", "more", person=w.mara, title="Café Été")
    turn = w.turn(w.mara)
    assert not w.tools(w.mara)
    [ref] = bind_references(turn, [f"https://hollowbrook.example/conversations/{old.pk}", str(old.pk)], submission_key="k")
    from history_access.tools import toolset_for
    tools = toolset_for(turn)
    assert tools.names == ("read_conversation",)
    assert read(tools, old.pk)["by"] == "reference"
    assert error(tools.call("list_conversations", {}))["code"] == "history_unavailable"
    r = attach_excerpt(turn, old, messages=[1, {"number": 2, "start": 1, "end": 3}])
    block = references_block(turn)
    print(block)
    assert block.excerpts[0].messages[1].quoted.text == "he"
    from history_access.references.picking import Desk, desk_in
    desk = desk_in(w.mara, str(turn.session_id))
    page = offerable_conversations(w.mara, desk, title="cafe ete")
    assert [o.conversation for o in page.offers] == [True]
    p = preview_conversation(w.mara, desk, str(old.pk))
    assert len(p.messages) == 3
    assert take_back(turn, ref)
    assert error(tools.call("read_conversation", {"conversation_id": str(old.pk)}))["code"] == "history_unavailable"
    print(references_of(turn))
