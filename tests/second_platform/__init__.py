"""A help desk that was there before history access: its own tables, keys, words, people and rights.

It plugs in by the documented steps alone. `tests/test_second_platform.py` runs its tests in a process of
their own, since a project has one user model.
"""
