"""An agent reading its own past conversations: bounded before any model call, and recorded."""
