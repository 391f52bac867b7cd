"""Authentication and authorization: passwords, tokens, certificates, SCRAM, topic permissions. docs/security.md."""
