"""A live cluster, harmed while clients publish; an independent ledger says afterwards whether anything was lost."""
