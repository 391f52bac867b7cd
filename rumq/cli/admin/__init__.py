"""Subcommands for administrators: ask a running broker, permissions, passwords, certificates, mosquitto migration."""
