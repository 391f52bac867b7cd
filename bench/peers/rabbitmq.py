"""RabbitMQ with its MQTT plugin, as Debian packages both. https://www.rabbitmq.com/docs/mqtt

Its name server of Erlang runs beside it on a port of its own, and ends with it."""

import os
from pathlib import Path

from bench.load.load import Load

SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
CONNECTIONS_MAX = 2_000
SCRIPT = """\
epmd -port "$ERL_EPMD_PORT" & names=$!
trap 'kill $server' TERM INT
{server} & server=$!
wait $server; wait $server
kill $names
"""


class Rabbitmq:
    name = "rabbitmq"

    def why_not(self, load: Load) -> str:
        if not os.path.exists(SERVER):
            return "rabbitmq-server is not installed: apt-get install rabbitmq-server"
        if load.publishers + load.subscribers > CONNECTIONS_MAX:
            return f"more than {CONNECTIONS_MAX:,} connections take it minutes"
        if load.spread == "shared":
            return "no shared subscriptions"
        return "no QoS 2" if load.qos > 1 else ""

    def durability(self, load: Load) -> str:
        return "file, unsynced" if load.qos else "memory"

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp = none\nmqtt.listeners.tcp.1 = 127.0.0.1:{port}\n"
            # By default a subscription has 10 messages in flight at most.
            "mqtt.prefetch = 65535\n"
        )
        (folder / "plugins").write_text("[rabbitmq_mqtt].")
        (folder / "run.sh").write_text(SCRIPT.format(server=SERVER))
        variables = {
            "HOME": folder, "RABBITMQ_NODENAME": f"bench{port}@localhost", "RABBITMQ_DIST_PORT": port + 1,
            "ERL_EPMD_PORT": port + 2, "RABBITMQ_MNESIA_BASE": folder / "mnesia", "RABBITMQ_LOG_BASE": folder / "log",
            "RABBITMQ_CONFIG_FILE": folder / "rabbitmq.conf", "RABBITMQ_ENABLED_PLUGINS_FILE": folder / "plugins",
            "RABBITMQ_PID_FILE": folder / "pid",
        }  # fmt: skip
        return ["env", *(f"{name}={value}" for name, value in variables.items()), "sh", str(folder / "run.sh")]

    def version_command(self) -> list[str]:
        return ["dpkg-query", "--show", "rabbitmq-server"]
