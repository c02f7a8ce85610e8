from django.apps import AppConfig


class DeskConfig(AppConfig):
    name = "tests.second_platform"
    label = "desk"
