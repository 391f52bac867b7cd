"""A bridge over a line that is cut anywhere, between brokers that are killed: is each message there once?"""
