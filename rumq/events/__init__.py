"""Events for the operator: written as lines, the newest kept, sent to the shard that answers for the process."""
