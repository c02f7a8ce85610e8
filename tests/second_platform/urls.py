from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/history/", include("history_access.api.urls")),
    path("api/references/", include("history_access.api.references_urls")),
]
