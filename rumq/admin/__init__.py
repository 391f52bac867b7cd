"""The admin interface: what an operator can ask of a running broker and have it do, described by types.

`operations.OPERATIONS` is the table; the shards answer, and `rumqd ask`, the gateway's REST and its page ask."""
