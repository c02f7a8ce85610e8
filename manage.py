#!/usr/bin/env python
"""Django's command line, for the example platform."""

import os
import sys

from django.core.management import execute_from_command_line

from demo.databases import DatabaseURLError

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "demo.settings")
    try:
        execute_from_command_line(sys.argv)
    except DatabaseURLError as error:
        sys.exit(str(error))
