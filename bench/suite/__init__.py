"""Scenarios, series of runs of them, and their figures against what rumq is to reach."""
