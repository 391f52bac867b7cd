"""Authentication and authorization: passwords, tokens, certificates, SCRAM, topic permissions.

docs/guides/security.md."""
