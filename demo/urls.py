from django.contrib import admin
from django.urls import include, path
from django.views.generic import TemplateView

from demo.world import DIGEST_KEY, LOGINS, PASSWORD, WORKSPACE_KEY

START = {"logins": LOGINS, "password": PASSWORD, "workspace": WORKSPACE_KEY, "agent": DIGEST_KEY}

urlpatterns = [
    path("", TemplateView.as_view(template_name="demo/start.html", extra_context=START)),
    path("admin/", admin.site.urls),
    path("api/history/", include("history_access.api.urls")),
    path("api/references/", include("history_access.api.references_urls")),
]
