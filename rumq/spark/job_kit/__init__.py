"""Shared by the jobs of rumq/spark/jobs: the runner, the feedback loop check, state by group, columns."""
