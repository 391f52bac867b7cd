"""What the jobs of rumq/spark/jobs share: the runner, the feedback loop, state by group, columns."""
