"""Decides who gets which record: subscriptions, cursors, shared groups, retained messages. No I/O, no clock:
commands and the time come in as arguments, effects go out as values.
"""
