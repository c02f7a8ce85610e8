"""Two settings of Hollowbrook's own, about files: the catalog knows nothing of history."""

from settings_catalog.catalog import Choice, Entry

_CHOICES = (
    Choice("none", "No access", "Nothing."),
    Choice("read", "Read", "Opening files."),
    Choice("write", "Read and write", "Opening, writing and deleting files."),
)

AGENT_FILES = Entry(
    key="agent_files",
    title="Agent files",
    help="What an agent may do with the files that are its own.",
    choices=_CHOICES,
    default="write",
    starting_ceiling=None,
)

WORKSPACE_FILES = Entry(
    key="workspace_files",
    title="Workspace files",
    help="What an agent may do with the files that everybody in its workspace shares.",
    choices=_CHOICES,
    default="read",
    starting_ceiling=None,
)
