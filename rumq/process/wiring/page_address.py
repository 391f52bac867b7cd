"""The address of the web page, which the event of the start has. docs/decisions/0056-the-page-is-in-every-install.md"""

from __future__ import annotations

from rumq.settings.table import Settings

OFF = "off; rumqd --page turns it on"
EVERY_ADDRESS = ("*", "0.0.0.0", "::")


def page_address(settings: Settings) -> str:
    """Where a browser on this machine finds the page; where there is none, how to have it."""
    gateway = settings.gateway
    if not gateway.port:
        return OFF
    if gateway.port < 0:
        return "on a free port, which listener.bound has"
    host = "localhost" if gateway.host in EVERY_ADDRESS else gateway.host
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if gateway.tls_certificate else 'http'}://{name}:{gateway.port}/"
