"""The files of a deployment agree with the code and with each other."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest

from service.api.metrics import StoreFigures
from service.request_metrics import LATENCY
from service.settings import Settings
from service.store import Totals

ROOT = Path(__file__).parents[1]
COMPOSE = (ROOT / "compose.yml").read_text()
SCALE = (ROOT / "deploy" / "compose.scale.yml").read_text()
MANIFESTS = sorted((ROOT / "deploy" / "k8s").glob("*.yaml"))
# The oldest release that is still maintained somewhere, and the newest whose schemas are known.
KUBERNETES = ("1.28", kubernetes_validate.latest_version())
EXAMPLE = (ROOT / "deploy" / "env.example").read_text()


def test_the_example_lists_every_setting_once() -> None:
    listed = re.findall(r"^#?(EDGEWISE_\w+)=", EXAMPLE, re.M)
    of_processes = {f"EDGEWISE_{name.upper()}" for name in Settings.model_fields}
    of_compose = set(re.findall(r"\$\{(EDGEWISE_\w+)", COMPOSE + SCALE))
    assert sorted(listed) == sorted(of_processes | of_compose)


def test_containers_get_settings_that_exist() -> None:
    set_there = set(re.findall(r"^ +(EDGEWISE_\w+):", COMPOSE + SCALE, re.M))
    assert set_there <= {f"EDGEWISE_{name.upper()}" for name in Settings.model_fields}


def test_services_are_confined() -> None:
    services = yaml.safe_load(COMPOSE)["services"]
    assert set(services) == {"init", "kernels", "postgres", "api", "runner", "scheduler", "worker"}
    assert [name for name, service in services.items() if "ports" in service] == ["api"]
    for name, service in services.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["logging"]["options"]["max-size"], name
        if name in {"init", "kernels"}:
            assert service["restart"] == "no"
            continue
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"]
        assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}
        assert service["depends_on"]["init"] == {"condition": "service_completed_successfully"}


def test_the_dockerfile_has_no_findings() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([hadolint, "deploy/Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert "# syntax=" not in (ROOT / "deploy" / "Dockerfile").read_text()


def documents() -> list[dict[str, Any]]:
    """All Kubernetes objects."""
    return [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text())]


@pytest.mark.parametrize("release", KUBERNETES)
def test_manifests_fit_the_schemas_of_kubernetes(release: str) -> None:
    found = documents()
    assert {each["kind"] for each in found} >= {"Deployment", "StatefulSet", "Service", "NetworkPolicy", "ConfigMap"}
    for each in found:
        kubernetes_validate.validate(each, release, strict=True)


def test_the_schemas_would_refuse_a_wrong_manifest() -> None:
    [worker] = [each for each in documents() if each["kind"] == "Deployment" and each["metadata"]["name"] == "worker"]
    worker["spec"]["template"]["spec"]["containers"][0]["resourcs"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(worker, KUBERNETES[-1], strict=True)


def test_manifests_have_the_topology_of_compose() -> None:
    found = documents()
    pods = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] in {"Deployment", "StatefulSet"}}
    assert set(pods) | {"init", "kernels"} == set(yaml.safe_load(COMPOSE)["services"])
    services = {
        each["metadata"]["name"]: each["spec"]["selector"]["app"] for each in found if each["kind"] == "Service"
    }
    assert services == {name: name for name in ("api", "postgres", "scheduler")}
    claims = {each["metadata"]["name"] for each in found if each["kind"] == "PersistentVolumeClaim"}
    settings = {f"EDGEWISE_{name.upper()}" for name in Settings.model_fields}
    for name, spec in pods.items():
        pod = spec["template"]["spec"]
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == {"app": name}
        assert pod["securityContext"]["runAsNonRoot"]
        # Else Kubernetes sets variables of its own that begin like settings do.
        assert pod["enableServiceLinks"] is False
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert {
            each["persistentVolumeClaim"]["claimName"] for each in pod["volumes"] if "persistentVolumeClaim" in each
        } <= claims
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            own = {each["metadata"]["name"] for each in spec.get("volumeClaimTemplates", [])}
            assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes) | own
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert container["resources"]["limits"].keys() == {"cpu", "memory"}
            assert {each["name"] for each in container.get("env", []) if each["name"].startswith("EDGE")} <= settings
    [config] = [each for each in found if each["kind"] == "ConfigMap"]
    assert Settings(**{name.removeprefix("EDGEWISE_").lower(): value for name, value in config["data"].items()})
    assert config["data"].keys() <= settings


def test_the_dashboard_shows_figures_that_exist() -> None:
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "edgewise.json").read_text())
    shown = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"edgewise_\w+", target["expr"])
    }
    registry = CollectorRegistry()
    registry.register(StoreFigures(Totals({}, 0, 0.0, 0.0, 0), []))
    text = generate_latest(registry).decode()
    told = set(re.findall(r"^(edgewise_\w+)[ {]", text, re.M))
    told |= {f"{name}_{part}" for name in [LATENCY._name] for part in ("bucket", "count", "sum")}
    assert shown <= told
    # Of what there is to see only the sums of latencies are left to whoever asks.
    assert told - shown == {"edgewise_http_request_seconds_sum"}


def test_the_scrape_settings_ask_for_the_metrics() -> None:
    [job] = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text())["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert job["authorization"]["type"] == "Bearer"


class Overriding(yaml.SafeLoader):
    """Reads compose's own tags."""


Overriding.add_constructor("!reset", lambda loader, node: None)
Overriding.add_constructor("!override", lambda loader, node: loader.construct_mapping(node, deep=True))


def test_the_override_for_several_hosts_changes_what_is_there() -> None:
    override = yaml.load(SCALE, Overriding)
    services = yaml.safe_load(COMPOSE)["services"]
    assert set(override["services"]) <= set(services)
    assert override["services"]["postgres"] is None
    for name in ("api", "runner"):
        assert "postgres" not in override["services"][name]["depends_on"]
    assert override["services"]["worker"]["network_mode"] == "host"


def test_the_sizing_table_follows_its_rule() -> None:
    text = (ROOT / "deploy" / "README.md").read_text()
    lines = re.findall(
        r"^\| ([\d,]+)( million)? x (\d+) x (\d+) \| ([\d.]+) GB \| (\d+) \| ([\d.]+) GB \|$", text, re.M
    )
    assert len(lines) >= 5
    for rows, million, features, classes, data, workers, each in lines:
        n_bytes = int(rows.replace(",", "")) * (10**6 if million else 1) * (int(features) + 8 * (int(classes) + 4))
        assert float(data) == round(n_bytes / 1e9, 2)
        assert int(workers) == max(1, math.ceil(n_bytes / (0.75 * (8e9 - 0.6e9))))
        assert float(each) == round(0.6 + n_bytes / int(workers) / 1e9, 1)
