"""Who a client is: passwords, tokens, SCRAM, certificates, another server."""
