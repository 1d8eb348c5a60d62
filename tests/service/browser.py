"""A real browser for tests of the web pages: Debian's Chromium, driven through its own chromedriver."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-default-browser-check",
)


def find_programs() -> tuple[str, str] | None:
    """Chromium and its driver, where both are installed."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def required(programs: tuple[str, str] | None) -> tuple[str, str]:
    """Skips the test where there is no browser, except in CI."""
    if programs is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is not installed; CI installs it (make browser)")
        pytest.skip("Chromium and its driver are not installed (Debian: apt-get install chromium chromium-driver)")
    return programs


@contextlib.contextmanager
def browsing(programs: tuple[str, str], folder: Path) -> Iterator[Chrome]:
    """A browser with its profile in `folder`, gone afterwards."""
    options = ChromeOptions()
    options.binary_location = programs[0]
    for flag in FLAGS:
        options.add_argument(flag)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's own sandbox refuses to start as root
    options.add_argument(f"--user-data-dir={folder / 'profile'}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, Service(programs[1]))
    try:
        yield driver
    finally:
        driver.quit()


def resize(driver: Chrome, width: int, height: int = 900) -> None:
    """Give the page a width in CSS pixels, also one that a window cannot have."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def complaints(driver: Chrome) -> list[str]:
    """What the browser has said since the last call: errors of scripts, what the policy refused, calls that failed."""
    return [entry["message"] for entry in driver.get_log("browser")]
