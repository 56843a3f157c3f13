"""The door app on one screen: method, path, handler."""

from web.door.page import door_page, manifest, reader, service_worker

DOOR_ROUTES = (
    ("GET", "/door", door_page),
    ("GET", "/door/manifest.webmanifest", manifest),
    ("GET", "/door/service-worker.js", service_worker),
    ("GET", "/door/reader.js", reader),
)
