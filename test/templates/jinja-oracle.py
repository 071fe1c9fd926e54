"""Renders templates with Python's own Jinja, set up as for chat templates: one JSON job a line in, one result a line out."""

import json
import sys
from datetime import datetime

from jinja2 import Environment, TemplateError


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message):
    raise TemplateError(message)


now = datetime(2024, 2, 3, 4, 5, 6)
environment = Environment(
    trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do"]
)
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = refuse
environment.globals["strftime_now"] = now.strftime
compiled = {}

for line in sys.stdin:
    job = json.loads(line)
    source = job["source"]
    try:
        if source not in compiled:
            compiled[source] = environment.from_string(source)
        print(json.dumps({"text": compiled[source].render(**job["variables"])}))
    except Exception as error:
        print(json.dumps({"error": repr(error)}))
