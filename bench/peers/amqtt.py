"""aMQTT's broker, a broker in Python with a task for each client, from this environment."""

import sys
from pathlib import Path

from bench.load.load import Load

CONNECTIONS_MAX = 1_000


class Amqtt:
    name = "amqtt"

    def why_not(self, load: Load) -> str:
        if load.publishers + load.subscribers > CONNECTIONS_MAX:
            return f"more than {CONNECTIONS_MAX:,} connections take it minutes"
        if load.killed:
            return "keeps sessions in memory"
        return "no shared subscriptions" if load.spread == "shared" else ""

    def durability(self, load: Load) -> str:
        return "memory"

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        settings = folder / "amqtt.yaml"
        settings.write_text(
            f"listeners:\n  default:\n    type: tcp\n    bind: 127.0.0.1:{port}\n"
            "plugins:\n  amqtt.plugins.authentication.AnonymousAuthPlugin:\n    allow_anonymous: true\n"
        )
        return [sys.executable, "-m", "amqtt.scripts.broker_script", "-c", str(settings)]

    def version_command(self) -> list[str]:
        return [sys.executable, "-m", "amqtt.scripts.broker_script", "--version"]
