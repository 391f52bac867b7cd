"""Which addresses only this machine reaches. No name is looked up."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether the address can be reached only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
