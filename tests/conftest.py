"""Hypothesis for all tests: the same examples in every run, and no clock decides whether they pass.

A machine that is busy takes longer for an example, or to make one; neither is a fault of what is tested. With
`--hypothesis-profile=random` each run tries other examples."""

import os

from hypothesis import HealthCheck, settings

# Tests start processes while gRPC's threads run. Its handlers of fork would wait for them, and write to our children.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", PATIENT, derandomize=True)
settings.register_profile("random", PATIENT)
settings.load_profile("repeatable")
