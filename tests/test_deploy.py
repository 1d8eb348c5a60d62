"""The files of a deployment agree with the code and with each other."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

from service.settings import Settings

ROOT = Path(__file__).parents[1]
COMPOSE = (ROOT / "compose.yml").read_text()
EXAMPLE = (ROOT / "deploy" / "env.example").read_text()


def test_the_example_lists_every_setting_once() -> None:
    listed = re.findall(r"^#?(EDGEWISE_\w+)=", EXAMPLE, re.M)
    of_processes = {f"EDGEWISE_{name.upper()}" for name in Settings.model_fields}
    of_compose = set(re.findall(r"\$\{(EDGEWISE_\w+)", COMPOSE))
    assert sorted(listed) == sorted(of_processes | of_compose)


def test_containers_get_settings_that_exist() -> None:
    set_there = set(re.findall(r"^ +(EDGEWISE_\w+):", COMPOSE, re.M))
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
