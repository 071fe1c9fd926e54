"""What every client program in this folder does: six scenarios against Truewire, one JSON line for each on standard output; clients with
hosted tools, which Truewire runs, have a seventh.

    {"scenario": "stream", "ok": true, "detail": "..."}

"ok" is null where the client has no such thing; "detail" then says why. The environment says where: TRUEWIRE_URL (http://127.0.0.1:8080),
TRUEWIRE_MODEL and TRUEWIRE_KEY. The model is ../../fixtures/scripted.ts, or one that answers like it.
"""

import json
import os
import sys
import uuid
from collections.abc import Callable

URL = os.environ.get("TRUEWIRE_URL", "http://127.0.0.1:8080")
MODEL = os.environ.get("TRUEWIRE_MODEL", "scripted")
KEY = os.environ.get("TRUEWIRE_KEY", "none")

GREETING = "Hello from Truewire."
SLOWLY = "Slowly, please."
NO_SUCH_MODEL = "no-such-model"
# What the tool get_weather answers, and what the model says then.
WEATHER = "21 degrees"
RESULT = f"The result is {WEATHER}."

SCENARIOS = ("stream", "tools", "structured", "error", "cancel", "reasoning")
OPTIONAL = ("hosted",)


class Missing(Exception):
    """The client has no such thing; the message says why."""


def fails_once() -> str:
    """A text that gets status 503 the first time, and an answer the second time."""
    return f"503 once: {uuid.uuid4()}"


def equal(found: object, expected: object, what: str = "text") -> None:
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def run(**scenarios: Callable[[], str]) -> None:
    """Runs them in order. A scenario returns its detail, raises Missing, or fails with any other exception."""
    for name in (*SCENARIOS, *(name for name in OPTIONAL if name in scenarios)):
        try:
            report(name, True, scenarios[name]())
        except Missing as reason:
            report(name, None, str(reason))
        except Exception as error:  # Whatever a library throws is the finding.
            report(name, False, f"{type(error).__module__}.{type(error).__name__}: {error}")


def report(scenario: str, ok: bool | None, detail: str) -> None:
    # Not sys.stdout, which a program may have turned away from what its library prints.
    print(json.dumps({"scenario": scenario, "ok": ok, "detail": detail[:2000]}), file=sys.__stdout__, flush=True)
