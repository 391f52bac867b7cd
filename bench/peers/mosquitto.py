"""Eclipse Mosquitto with Debian's settings, and without the limits at which it drops. mosquitto.conf(5)."""

from pathlib import Path

from bench.load.load import Load


class Mosquitto:
    name = "mosquitto"

    def why_not(self, load: Load) -> str:
        return ""

    def durability(self, load: Load) -> str:
        return "file, saved every 2 s" if load.killed else "memory"

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        settings = folder / "mosquitto.conf"
        settings.write_text(
            # As in Debian's /etc/mosquitto/mosquitto.conf, in a folder of its own.
            f"persistence true\npersistence_location {folder}/\nlog_dest file {folder}/mosquitto.log\n"
            f"listener {port} 127.0.0.1\nallow_anonymous true\n"
            # It drops root's rights for those of a user who may not write to `folder`.
            "user root\n"
            # By default it drops what is more than 1,000 messages behind and has 20 in flight.
            f"max_queued_messages 0\nmax_inflight_messages {load.inflight_max}\n"
            # Else it saves every half hour, and a kill takes everything.
            + ("autosave_interval 2\n" if load.killed else "")
        )
        return ["mosquitto", "-c", str(settings)]

    def version_command(self) -> list[str]:
        return ["mosquitto", "-h"]
