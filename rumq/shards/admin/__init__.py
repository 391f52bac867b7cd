"""Answers of a shard to the admin interface: views of what it has, and actions. `rumq.admin` describes them."""
