"""Who may use the gateway: tokens, admission, origins, topics."""
