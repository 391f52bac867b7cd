"""Every alert fires at what it is about and stays quiet otherwise, in Prometheus' own unit tests (promtool)."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.gateway.test_ops_files import OPS, named, rules

MINUTES = 150  # of input; longer than any alert waits
SLOW = 'rumq_{}_bucket{{instance="a",shard="0",le="{}"}}'


def histogram(name: str, below: str) -> dict[str, str]:
    """A hundred observations a minute, half of them above a bound."""
    return {SLOW.format(name, below): "0+50x150", SLOW.format(name, "1"): "0+100x150", **fast(name, "+Inf")}


def fast(name: str, *bounds: str) -> dict[str, str]:
    return {SLOW.format(name, each): "0+100x150" for each in bounds or ("0.001", "+Inf")}


A, NODE = 'instance="a"', 'instance="a",shard="0",node="n2"'
# Alert -> series that fire it, and series of a healthy broker: by name and labels, values of each minute.
ALERTS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "RumqDown": ({"rumq_up{instance='a'}": "0x150"}, {"rumq_up{instance='a'}": "1x150"}),
    "RumqRefusesMessages": ({f"rumq_accepting{{{A}}}": "0x150"}, {f"rumq_accepting{{{A}}}": "1x150"}),
    "RumqPartitionOffline": (
        {f"rumq_partition_offline{{{A}}}": "1x150"},
        {f"rumq_partition_offline{{{A}}}": "0x150"},
    ),
    "RumqNotReady": ({f"rumq_ready{{{A}}}": "0x150"}, {f"rumq_ready{{{A}}}": "1x150"}),
    "RumqLosesMessages": (
        {f'rumq_messages_undelivered_total{{{A},reason="retention"}}': "0+9x150"},
        {f'rumq_messages_undelivered_total{{{A},reason="expired"}}': "0+9x150"},
    ),
    "RumqConsumerLags": (
        {f"rumq_consumer_lag_records_max{{{A}}}": "2000000x150"},
        {f"rumq_consumer_lag_records_max{{{A}}}": "999999x150"},
    ),
    "RumqSlowAcknowledgements": (histogram("publish_ack_seconds", "0.25"), fast("publish_ack_seconds")),
    "RumqSlowDisk": (histogram("log_write_seconds", "0.1"), fast("log_write_seconds")),
    "RumqLongTurns": (histogram("turn_seconds", "0.05"), fast("turn_seconds")),
    "RumqBackpressure": (
        {f"rumq_partition_pending_bytes{{{A}}}": "33554433x150"},
        {f"rumq_partition_pending_bytes{{{A}}}": "4096x150"},
    ),
    "RumqExportBehind": (
        {f"rumq_export_behind_records{{{A}}}": "10000001x150"},
        {f"rumq_export_behind_records{{{A}}}": "9x150"},
    ),
    "RumqRefusedTokens": (
        {f"rumq_gateway_refused_total{{{A}}}": "0+90x150"},
        {f"rumq_gateway_refused_total{{{A}}}": "0+9x150"},
    ),
    "RumqDiskFillsSoon": (
        {f"rumq_disk_full_seconds{{{A}}}": "80000x150", f"rumq_disk_wanted_bytes{{{A}}}": "1x150"},
        {f"rumq_disk_full_seconds{{{A}}}": "31536000x150", f"rumq_disk_wanted_bytes{{{A}}}": "1x150"},
    ),
    "RumqDiskLow": (
        {
            f"rumq_disk_free_bytes{{{A}}}": "9x150",
            f"rumq_disk_wanted_bytes{{{A}}}": "10x150",
            f"rumq_disk_bytes{{{A}}}": "99x150",
        },
        {
            f"rumq_disk_free_bytes{{{A}}}": "11x150",
            f"rumq_disk_wanted_bytes{{{A}}}": "10x150",
            f"rumq_disk_bytes{{{A}}}": "99x150",
        },
    ),
    # The time of these tests begins in 1970.
    "RumqCertificateExpires": (
        {f'rumq_certificate_expires_seconds{{{A},of="nodes",file="n.pem"}}': "1000000x150"},
        {f'rumq_certificate_expires_seconds{{{A},of="nodes",file="n.pem"}}': "5000000x150"},
    ),
    "RumqCertificateRefused": (
        {f'rumq_certificate_usable{{{A},of="flight",file="f.pem"}}': "0x150"},
        {f'rumq_certificate_usable{{{A},of="flight",file="f.pem"}}': "1x150"},
    ),
    "RumqRefusedClients": (
        {f'rumq_clients_refused_total{{{A},reason="bad_user_name_or_password"}}': "0+600x150"},
        {f'rumq_clients_refused_total{{{A},reason="bad_user_name_or_password"}}': "0+60x150"},
    ),
    "RumqConnectionRate": (
        {f'rumq_listener_refused_total{{{A},listener="x:1883"}}': "0+1x150"},
        {f'rumq_listener_refused_total{{{A},listener="x:1883"}}': "7x150"},
    ),
    "RumqConsumerLate": (
        {f"rumq_consumer_lag_seconds_max{{{A}}}": "3601x150"},
        {f"rumq_consumer_lag_seconds_max{{{A}}}": "60x150"},
    ),
    "RumqGroupLags": (
        {f'rumq_group_lag_records{{{A},group="g"}}': "100001x150"},
        {f'rumq_group_lag_records{{{A},group="g"}}': "5x150"},
    ),
    "RumqStopHangs": ({f"rumq_stop_phase{{{A}}}": "2x150"}, {f"rumq_stop_phase{{{A}}}": "0x150"}),
    "RumqVersionsDiffer": (
        {
            f'rumq_build_info{{{A},version="1"}}': "1x150",
            'rumq_build_info{instance="b",version="2"}': "1x150",
        },
        {
            f'rumq_build_info{{{A},version="1"}}': "1x150",
            'rumq_build_info{instance="b",version="1"}': "1x150",
        },
    ),
    "RumqClusterWrong": ({f"rumq_cluster_wrong{{{A}}}": "1x150"}, {f"rumq_cluster_wrong{{{A}}}": "0x150"}),
    "RumqClusterNoLeader": (
        {f'rumq_cluster_led{{{A},shard="0"}}': "0x150", 'rumq_cluster_led{instance="b",shard="0"}': "0x150"},
        {f'rumq_cluster_led{{{A},shard="0"}}': "0x150", 'rumq_cluster_led{instance="b",shard="0"}': "1x150"},
    ),
    "RumqClusterNoQuorum": (
        {f"rumq_cluster_quorum{{{A}}}": "0x150"},
        {f"rumq_cluster_quorum{{{A}}}": "1x150"},
    ),
    "RumqClusterNodeGone": (
        {f'rumq_cluster_nodes{{{A},state="gone"}}': "1x150"},
        {f'rumq_cluster_nodes{{{A},state="gone"}}': "0x150"},
    ),
    "RumqClusterBehind": (
        {f"rumq_cluster_behind_bytes{{{NODE}}}": "67108865x150"},
        {f"rumq_cluster_behind_bytes{{{NODE}}}": "4096x150"},
    ),
    "RumqClusterNotInSync": (
        {'rumq_cluster_in_sync{shard="0"}': "2x150", 'rumq_cluster_members{shard="0"}': "3x150"},
        {'rumq_cluster_in_sync{shard="0"}': "3x150", 'rumq_cluster_members{shard="0"}': "3x150"},
    ),
    "RumqClusterFailovers": (
        {'rumq_cluster_failovers_total{shard="0"}': "0+1x150"},
        {'rumq_cluster_failovers_total{shard="0"}': "3x150"},
    ),
    "RumqClusterControlLost": (
        {f"rumq_cluster_control_up{{{A}}}": "0x150"},
        {f"rumq_cluster_control_up{{{A}}}": "1x150"},
    ),
    "RumqClusterControlSlow": (
        {f"rumq_cluster_control_renew_seconds{{{A}}}": "1.5x150"},
        {f"rumq_cluster_control_renew_seconds{{{A}}}": "0.1x150"},
    ),
}
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's prometheus")


def test_every_alert_has_a_case_that_fires_it() -> None:
    assert set(ALERTS) == {rule["alert"] for rule in rules()}
    for rule in rules():
        for series in ALERTS[rule["alert"]]:
            assert named(rule["expr"]) == {name.partition("{")[0] for name in series}, rule["alert"]


def case(number: int) -> dict[str, Any]:
    """A test of promtool, of all alerts at once: which of them fire at the end. number: of the series, 0 fires them"""
    series = {name: values for both in ALERTS.values() for name, values in both[number].items()}
    fires = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in ALERTS] if number == 0 else []
    return {
        "name": ("all fire", "all are quiet")[number], "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{
            "expr": 'group by (alertname) (ALERTS{alertstate="firing"})', "eval_time": f"{MINUTES - 5}m",
            "exp_samples": fires,
        }],
    }  # fmt: skip


@needs_promtool
def test_alerts_fire_at_what_they_are_about_and_at_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "tests.yaml"
    rules_file = str(OPS / "prometheus/alerts.yaml")
    tests = {"rule_files": [rules_file], "evaluation_interval": "1m", "tests": [case(0), case(1)]}
    path.write_text(yaml.safe_dump(tests))
    found = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
