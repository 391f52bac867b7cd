"""Spark sessions, and checks of packages, Java, checkpoints and lag."""
