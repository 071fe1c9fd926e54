"""
Renders templates with Python's own Jinja, set up as for chat templates: one JSON job a line in, one result a line out.
A job without variables is only parsed.
"""

import json
import sys
from datetime import datetime

from jinja2 import Environment, TemplateError, nodes
from jinja2.ext import Extension


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message):
    raise TemplateError(message)


class Generation(Extension):
    """`{% generation %}` marks what the assistant said, for training; it writes its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


now = datetime(2024, 2, 3, 4, 5, 6)
environment = Environment(
    trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do", Generation]
)
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = refuse
environment.globals["strftime_now"] = now.strftime
compiled = {}

for line in sys.stdin:
    job = json.loads(line)
    source = job["source"]
    try:
        if "variables" not in job:
            environment.parse(source)
            print(json.dumps({"text": ""}))
            continue
        if source not in compiled:
            compiled[source] = environment.from_string(source)
        print(json.dumps({"text": compiled[source].render(**job["variables"])}))
    except Exception as error:
        print(json.dumps({"error": repr(error)}))
