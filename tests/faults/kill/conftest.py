"""The fixtures of brokers as processes, for tests that kill them."""

from tests.limits.conftest import data, join, run

__all__ = ["data", "join", "run"]
