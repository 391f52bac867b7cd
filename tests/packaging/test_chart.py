"""The Helm chart: rendered and linted by Helm's own engine, its objects by the schemas of Kubernetes."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rumq.cli.main import main
from tests.packaging.conftest import PACKAGING

helm = pytest.importorskip("helm_python", reason="helm_python is missing: pip install helm-python-sdk")
kubernetes_validate = pytest.importorskip(
    "kubernetes_validate", reason="kubernetes_validate is missing: pip install kubernetes-validate"
)
yaml = pytest.importorskip("yaml", reason="yaml is missing: pip install pyyaml")

CHART = PACKAGING / "helm/rumq"
VERSIONS = ("1.27", "1.35")
VALUES: dict[str, dict[str, Any]] = {
    "three nodes and etcd": {},
    "one": {"nodes": 1},
    "etcd of others": {"etcd": {"external": True, "endpoints": ["http://e0:2379", "http://e1:2379"]}},
    "all": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "settings": {"RUMQ_LOG_LINGER_MS": "1"}, "storage": {"size": "1Ti", "class": "fast"},
        "service": {"type": "LoadBalancer", "annotations": {"a": "b"}}, "nodeSelector": {"disk": "nvme"},
        "tolerations": [{"operator": "Exists"}],
        "networkPolicy": {"mqttFrom": [{"podSelector": {}}], "gatewayFrom": [{"namespaceSelector": {}}]},
    },
}  # fmt: skip


def rendered(values: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """(kind, name): the object."""
    files = helm.Chart.load(str(CHART)).render(values, name="rumq", namespace="iot")
    found = [each for name, text in files.items() if name.endswith(".yaml") for each in yaml.safe_load_all(text)]
    return {(each["kind"], each["metadata"]["name"]): each for each in found if each}


def test_helm_finds_nothing_to_improve() -> None:
    report = helm.lint(str(CHART), strict=True)
    assert not report["errors"]
    assert [each["error"] for each in report["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_all_objects_are_what_kubernetes_takes(values: dict[str, Any], version: str) -> None:
    objects = rendered(values)
    for (kind, _), each in objects.items():
        if kind != "ServiceMonitor":  # of an operator, which Kubernetes does not know
            kubernetes_validate.validate(each, version, strict=True)
    assert ("StatefulSet", "rumq") in objects
    runs_etcd = values.get("nodes") != 1 and not values.get("etcd")
    assert (("StatefulSet", "rumq-etcd") in objects) == runs_etcd


@pytest.mark.parametrize(
    "values",
    [
        {"nodes": 2}, {"nodes": 0}, {"etcd": {"external": True}}, {"settings": {"LOG_LINGER": "1"}}, {"secret": ""},
        {"cluster": {"replicas": 2}}, {"replicas": 3},
    ],
    ids=str,
)  # fmt: skip
def test_values_that_make_no_cluster_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(helm.HelmError):
        helm.Chart.load(str(CHART)).validate_schema(helm.Chart.load(str(CHART)).merge_values(values))


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_a_broker_takes_the_settings(values: dict[str, Any], tmp_path: Path) -> None:
    """Those of the config map, with the secret's files where a pod has them."""
    assert main(["init", "--dir", str(tmp_path / "settings")]) == 0
    assert main(["certs", "node", str(tmp_path / "nodes"), "--cluster", "rumq", "--node", "rumq-0"]) == 0
    objects = rendered(values)
    text = objects["ConfigMap", "rumq"]["data"]["config.toml"]
    for name in ("users", "rules.toml"):
        text = text.replace(f"/etc/rumq/secret/{name}", f"{tmp_path}/settings/{name}")
    text = text.replace("/etc/rumq/secret/", f"{tmp_path}/settings/certs/")
    text = text.replace("/etc/rumq/nodes/", f"{tmp_path}/nodes/")
    container = objects["StatefulSet", "rumq"]["spec"]["template"]["spec"]["containers"][0]
    flags = {
        "RUMQ_CLUSTER_NODE": "rumq-0",
        "RUMQ_CLUSTER_ADVERTISE": "rumq-0.rumq-nodes",
        "RUMQ_CLUSTER_ZONE": "",
    }
    environment = {each["name"]: each.get("value", "") for each in container.get("env", [])}
    assert flags.keys() <= environment.keys() or values.get("nodes") == 1
    environment |= {key: value for key, value in flags.items() if key in environment}
    for key, value in environment.items():
        found = value.replace("$(RUMQ_CLUSTER_NODE)", flags["RUMQ_CLUSTER_NODE"])
        environment[key] = found.replace("/etc/rumq/nodes/", f"{tmp_path}/nodes/")
    assert environment.get("RUMQ_LOG_LINGER_MS", "1") == "1"
    config = tmp_path / "config.toml"
    config.write_text(text.replace("/data/rumq", f"{tmp_path}/data"))
    done = subprocess.run(
        [sys.executable, "-m", "rumq", "run", "--check", "--config", str(config)],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    settings = tomllib.loads(text)
    assert ports == {"mqtts": settings["listener"][0]["port"], "gateway": settings["gateway"]["port"]}


def test_nodes_have_an_authority_of_their_own_and_each_pod_its_certificate() -> None:
    objects = rendered({"nodes": 3})
    pod = objects["StatefulSet", "rumq"]["spec"]["template"]["spec"]
    names = {each["name"]: each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
    assert names == {"secret": "rumq-settings", "nodes": "rumq-nodes"}
    environment = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
    assert environment["RUMQ_CLUSTER_TLS_CERTIFICATE"] == "/etc/rumq/nodes/$(RUMQ_CLUSTER_NODE).pem"
    cluster = tomllib.loads(objects["ConfigMap", "rumq"]["data"]["config.toml"])["cluster"]
    assert cluster["tls_authority"] == "/etc/rumq/nodes/ca.pem" and "insecure" not in cluster


def test_one_pod_at_a_time_goes_and_hands_over_first() -> None:
    objects = rendered({})
    for name in ("rumq", "rumq-etcd"):
        assert objects["PodDisruptionBudget", name]["spec"]["maxUnavailable"] == 1
        affinity = objects["StatefulSet", name]["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
        preferred = affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
        assert preferred["topologyKey"] == "topology.kubernetes.io/zone"
        assert (
            preferred["labelSelector"]["matchLabels"] == objects["StatefulSet", name]["spec"]["selector"]["matchLabels"]
        )
    pod = objects["StatefulSet", "rumq"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert "cluster drain" in container["lifecycle"]["preStop"]["exec"]["command"][-1]
    assert pod["terminationGracePeriodSeconds"] > 60
    probes = {key: container[f"{key}Probe"]["httpGet"]["path"] for key in ("startup", "liveness", "readiness")}
    assert probes == {"startup": "/startupz", "liveness": "/healthz", "readiness": "/readyz"}
    assert "lifecycle" not in rendered({"nodes": 1})["StatefulSet", "rumq"]["spec"]["template"]["spec"]["containers"][0]


def test_five_nodes_have_a_volume_of_10_gi_each_and_ports_for_clients_and_http() -> None:
    spec = rendered({"nodes": 5})["StatefulSet", "rumq"]["spec"]
    (volume,) = spec["volumeClaimTemplates"]
    assert spec["replicas"] == 5 and volume["spec"]["resources"]["requests"]["storage"] == "10Gi"
    (container,) = spec["template"]["spec"]["containers"]
    assert volume["metadata"]["name"] in {each["name"] for each in container["volumeMounts"]}
    numbers = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert numbers == {"mqtts": 8883, "gateway": 8080}


def test_ports_between_nodes_are_open_to_nodes_alone() -> None:
    rules = rendered({"cluster": {"shards": 5}})["NetworkPolicy", "rumq"]["spec"]["ingress"]
    (between,) = [rule for rule in rules if rule["ports"][0]["port"] == 7883]
    assert between["ports"][0]["endPort"] == 7883 + 5
    (source,) = between["from"]
    assert source["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "broker"


def test_etcds_members_find_each_other_by_the_names_that_their_service_gives() -> None:
    objects = rendered({})
    peers = objects["StatefulSet", "rumq-etcd"]["spec"]["template"]["spec"]["containers"][0]["env"]
    (cluster,) = [each["value"] for each in peers if each["name"] == "ETCD_INITIAL_CLUSTER"]
    endpoints = tomllib.loads(objects["ConfigMap", "rumq"]["data"]["config.toml"])["cluster"]["etcd"]
    names = re.findall(r"http://(\S+?):2380", cluster)
    assert endpoints == [f"http://{name}:2379" for name in names] and len(names) == 3
    assert {name.split(".")[1] for name in names} == {objects["StatefulSet", "rumq-etcd"]["spec"]["serviceName"]}
    assert ("Service", "rumq-etcd") in objects and json.dumps(cluster)
