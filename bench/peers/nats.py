"""nats-server as an MQTT broker: QoS 1 through JetStream's files. https://docs.nats.io/running-a-nats-service/configuration/mqtt"""

from pathlib import Path

from bench.load.load import Load


class Nats:
    name = "nats"

    def why_not(self, load: Load) -> str:
        if load.spread == "shared":
            return "no shared subscriptions"
        if load.killed:
            return "another kind of session: a consumer of a stream with limits of its own"
        return "no QoS 2" if load.qos > 1 else ""

    def durability(self, load: Load) -> str:
        return "file, unsynced" if load.qos else "none"

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        settings = folder / "nats.conf"
        settings.write_text(
            "server_name: bench\nhost: 127.0.0.1\nport: -1\n"
            f'jetstream {{ store_dir: "{folder}" }}\n'
            # By default a subscription has 100 messages in flight at most.
            f"mqtt {{ host: 127.0.0.1, port: {port}, max_ack_pending: 65535 }}\n"
        )
        return ["nats-server", "-c", str(settings)]

    def version_command(self) -> list[str]:
        return ["nats-server", "-v"]
