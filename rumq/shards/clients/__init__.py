"""Clients of a shard: logins, the broker that a session talks to, who is banned."""
