"""
Renders templates with Python's own Jinja, set up as Hugging Face's Transformers does (`_compile_jinja_template` in
`transformers/utils/chat_template_utils.py`), or with Transformers itself (argument `transformers`).
One JSON line in for each template, `{"source", "jobs"}`; one line out: a list with the result of each job. A job of null only parses.
"""

import json
import sys
from datetime import datetime as RealTime
from functools import cache

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Now(RealTime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 2, 3, 4, 5, 6)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message):
    raise TemplateError(message)


class Generation(Extension):
    """`{% generation %}` marks what the assistant said, for training; it writes its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_written"), [], [], body).set_lineno(line)

    def _written(self, caller):
        return caller()


def compiler():
    if sys.argv[1:] == ["transformers"]:
        from transformers.utils import chat_template_utils

        chat_template_utils.datetime = Now
        return chat_template_utils._compile_jinja_template
    # `do` is not in Transformers; templates that were written for other servers have it.
    extensions = ["jinja2.ext.loopcontrols", "jinja2.ext.do", Generation]
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=extensions)
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = Now.now().strftime
    return cache(environment.from_string)


compiled = compiler()


def result(source, variables):
    try:
        template = compiled(source)
        # As `render_jinja_template` does: what a request does not have is None.
        return {"text": template.render(**{"tools": None, "documents": None, **variables}) if variables else ""}
    except Exception as error:
        return {"error": repr(error)}


for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps([result(asked["source"], variables) for variables in asked["jobs"]]))
