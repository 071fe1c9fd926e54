"""A plugin of pytest: writes a JSON line for each test to the file that TRUEWIRE_CASES names."""

import json
import os


def _write(name, outcome, detail):
    with open(os.environ["TRUEWIRE_CASES"], "a") as file:
        file.write(json.dumps({"name": name, "outcome": outcome, "detail": detail[:600]}) + "\n")


def _last_line(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return crash.message
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    return str(report.longrepr or "")


def pytest_runtest_logreport(report):
    if hasattr(report, "wasxfail"):
        if report.when == "call":
            passed = report.outcome == "passed"
            _write(report.nodeid, "passed" if passed else "skipped", f"expected to fail: {report.wasxfail}")
    elif report.when == "call" or report.outcome != "passed":
        _write(report.nodeid, report.outcome, "" if report.outcome == "passed" else _last_line(report))


def pytest_collectreport(report):
    if report.failed:
        _write(report.nodeid, "failed", str(report.longrepr)[-600:])
