"""Which rumq this is, and whether its kernels are compiled. Imports no kernel: it looks where they lie."""

import importlib.util
import pkgutil
import platform

VERSION = "0.1.0"
KERNEL_PACKAGES = (
    "commitlog.kernels",
    "router.kernels",
    "rumq.mqtt.kernels",
    "rumq.net.kernels",
    "rumq.lake.kernels",
)
COMPILED, PLAIN = "compiled", "python"


def kernels() -> str:
    """`compiled`, `python`, or `compiled but for` those that are not, by name."""
    compiled: list[str] = []
    plain: list[str] = []
    for package in KERNEL_PACKAGES:
        spec = importlib.util.find_spec(package)
        for module in pkgutil.iter_modules(spec.submodule_search_locations if spec else []):
            kernel = importlib.util.find_spec(f"{package}.{module.name}")
            is_plain = kernel is None or kernel.origin is None or kernel.origin.endswith(".py")
            (plain if is_plain else compiled).append(f"{package}.{module.name}")
    if not plain:
        return COMPILED
    return PLAIN if not compiled else f"compiled but for {', '.join(plain)}"


def version_line() -> str:
    return f"rumqd {VERSION}, kernels: {kernels()}, Python {platform.python_version()}"
