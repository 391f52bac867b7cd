"""What lies beside the product for those who work on it: checks of a commit, workflows, templates, the version."""
