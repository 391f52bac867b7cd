"""Lists of the operator: sorted, filtered and bounded, made some rows a turn."""
