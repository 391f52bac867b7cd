"""Content types that the gateway takes and gives."""

JSON, MSGPACK, LINES = "application/json", "application/msgpack", "application/x-ndjson"
MSGPACK_TOO = (MSGPACK, "application/x-msgpack", "application/vnd.msgpack")
EVENTS = "text/event-stream"
PROBLEM_JSON = "application/problem+json"  # RFC 9457
