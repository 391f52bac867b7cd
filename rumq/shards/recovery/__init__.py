"""The session journal on disk and the recovery from it: write, restore, meet the other shards."""
