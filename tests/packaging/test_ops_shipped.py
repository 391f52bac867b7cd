"""The packages have the alerts and dashboards that docs/guides/watch-it.md places in them."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "ops").rglob("*") if path.is_file())


def test_the_wheel_ships_every_alert_and_dashboard() -> None:
    files = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    assert sorted(name for names in files.values() for name in names) == FILES
    assert set(files) == {f"share/rumq/{Path(name).parent.name}" for name in FILES}
    assert "recursive-include ops *.yaml *.json" in (ROOT / "MANIFEST.in").read_text()


def test_the_debian_package_ships_them_where_the_docs_say() -> None:
    build = (ROOT / "packaging/debian/build").read_text()
    page = (ROOT / "docs/guides/watch-it.md").read_text()
    for folder, files in (("prometheus", "alerts.yaml"), ("grafana", "*.json")):
        assert f"/usr/share/doc/rumq/{folder}" in build and f"ops/{folder}/{files}" in build
    assert "/usr/share/doc/rumq/prometheus" in page and "share/rumq/prometheus" in page
