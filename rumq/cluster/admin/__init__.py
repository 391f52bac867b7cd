"""The admin interface of a node: questions for the whole cluster, asked of any node."""
