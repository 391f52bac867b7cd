"""The control plane: who leads which shard, decided by compare-and-swap in etcd. Knows no log."""
