"""`rumqd run`: the broker's processes, from settings to the end of the last shard."""
