import { guardedTokens, UserText } from "../user-text.ts";
import { PythonTemplate, TemplateRefusal } from "./python-template.ts";
import { expect, test } from "vitest";

function render(source: string, variables: Readonly<Record<string, unknown>> = {}): string {
  const user = new UserText(guardedTokens([], [], []), source, [variables]);
  return new PythonTemplate(source).render(variables, new Date(2024, 1, 3, 4, 5, 6), user);
}

// Each line is what Python 3 with Jinja 3.1 prints (trim_blocks, lstrip_blocks, loop controls on, as chat templates are run).
test.each<[source: string, printed: string]>([
  // White space around tags
  ["a\n  {% if true %}\n  b\n  {% endif %}\nc", "a\n  b\nc"],
  ["a\n  {%+ if true %}\nb{% endif +%}\nc", "a\n  b\nc"],
  ["a  {%- if true -%}  b  {%- endif -%}  c", "abc"],
  ["  {{- 1 -}}  |  {# x #}\n  {#- y -#}\n z", "1|  z"],
  ["{% if true %}x{% endif %}\n", "x"],
  ["{% raw %}\n{{ a }} {% b %} {# c #}\n{% endraw %}\nd", "\n{{ a }} {% b %} {# c #}\nd"],
  ["a  {%- raw -%}  {{  {%- endraw -%}  b", "a{{b"],
  ["a\r\nb\rc", "a\nb\nc"],
  ["{% generation %}a{% set x = 1 %}{% endgeneration %}{{ x is defined }}", "aFalse"],
  // Syntax
  ["{{ 'a\\tb\\x41\\u00e9\\U0001F600\\101\\d' \"\\\"\" 'c\\\nd' }}", 'a\tbAé😀A\\d"cd'],
  ["{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 < 2 == true }} {{ 'a' in 'ab' in ['ab'] }}", "True False False True"],
  ["{{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2 ** -1 }} {{ -1 | abs }} {{ - 3 + 1 }}", "64 4 0.5 1 -2"],
  [
    "{{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1_000 }} {{ 1e3 }} {{ 1.5e-3 }} {{ 1_0.2_5 }}",
    "31 5 15 1000 1000.0 0.0015 10.25",
  ],
  ["{{ not 1 == 2 }} {{ not not true }} {{ 1 not in [2] }} {{ not 1 in [1] }}", "True True True False"],
  [
    "{{ 4 is divisibleby 2 }} {{ 3 is not divisibleby 2 and true }} {{ 1 is in [1, 2] }} {{ 'a' is eq 'b' or 'c' }}",
    "True True True c",
  ],
  ["{{ 'x' if false }}|{{ 1 if false else 2 if false else 3 }}", "|3"],
  [
    "{{ (1,) }} {{ () }} {{ 1, 2 }} {{ [1, 2,] }} {{ {'a': 1,} }} {{ {'a': {'b': {}}} }}",
    "(1,) () (1, 2) [1, 2] {'a': 1} {'a': {'b': {}}}",
  ],
  ["{{ [[1, 2], [3]].0.1 }} {{ 'abc'[1:][0] }} {{ 'abcdef'[1:5:2] }} {{ 'abc'[:] }} {{ 'abc'[::2] }}", "2 b bd abc ac"],
  ["{{ {'a': 'b'}.a.upper().lower() | upper | replace('B', 'c') }} {{ ('ab' | list)[0] }}", "c a"],
  ["{% set f %} a {% endset %}{% set g | trim | upper %} b {% endset %}[{{ f }}{{ g }}]", "[ a B]"],
  ["{% filter trim | upper %} a {% endfilter %}", "A"],
  ["{% set a, (b, c) = 1, (2, 3) %}{{ a }}{{ b }}{{ c }}", "123"],
  [
    "{% for x in 1, 2 %}{{ x }}{% endfor %}{% for x in [1, 2, 3] if x > 1 if true else false %}{{ x }}{% endfor %}",
    "1223",
  ],
  [
    "{% macro m(a, b=a ~ '!') %}{{ a }}{{ b }}{% endmacro %}{{ m(*['x'], **{'b': 'y'}) }}{{ m('x') }}{{ m(b='q', *['z']) }}",
    "xyxx!zq",
  ],
  ["{% set ns = namespace(m=1) %}{% set ns.m = 2 %}{{ ns.m }}{% if ns.m == 2: %}y{% endif %}", "2y"],
  ["{% if 0 %}a{% elif 0 %}b{% elif 1 %}c{% else %}d{% endif %}", "c"],
  [
    "{% for x in [] %}{% else %}e{% endfor %}{% for x in [1] %}{% for y in [1, 2] %}{{ loop.index }}{% endfor %}{{ loop.length }}{% endfor %}",
    "e121",
  ],
  ["{{ true and 'a' or 'b' }} {{ '' or 0 or 'c' }} {{ 1 and 2 and 3 }}", "a c 3"],
  ["{{ \"}}\" }}{{ '%}' }}{# {{ #}{{ 'é' }}", "}}%}é"],
  ["{% do [].append(1) %}{% for i in [1,2,3] %}{% if i is odd %}{%- continue %}{% endif %}{{ i }}{% endfor %}", "2"],
  // Printing
  ["{{ true }} {{ none }} {{ 1.0 }} {{ 2 }} {{ missing }}!", "True None 1.0 2 !"],
  ["{{ [1, 'a', none, true, 1.5] }}", "[1, 'a', None, True, 1.5]"],
  ["{{ {'a': {'b': []}} }}", "{'a': {'b': []}}"],
  ["{{ (1, 2) }} {{ [(1, 'a')] }}", "(1, 2) [(1, 'a')]"],
  [`{{ ["it's", 'say "x"', 'both \\' "'] }}`, `["it's", 'say "x"', 'both \\' "']`],
  ["{{ ['a\\nb\\t\\\\'] }}", "['a\\nb\\t\\\\']"],
  ["{{ [1, {'k': none}] | string | length }}", "16"],
  ["{{ 100000.0 * 1000000000000 }}", "1e+17"],
  ["{{ 0.0001 }} {{ 0.00001 }}", "0.0001 1e-05"],
  ["{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }}", "3 -4 2 3.5 8"],
  ["{{ 'ab' * 2 }} {{ 1 ~ 'a' ~ none }}", "abab 1aNone"],
  // Comparing
  ["{{ '1' == 1 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ none == missing }}", "False True True False"],
  ["{{ [1, [2]] == [1, [2]] }} {{ {'a': 1} == {'a': 1} }} {{ [] == {} }}", "True True False"],
  ["{{ 'a' < 'b' }} {{ 2 >= 2 }}", "True True"],
  [
    "{{ none in ['a'] }} {{ missing in ['a'] }} {{ [1] in [[1]] }} {{ 'b' in 'abc' }} {{ 'k' in {'k': 0} }}",
    "False False True True True",
  ],
  ["{{ 'a' not in missing }}", "True"],
  // Undefined is empty
  ["{% for x in missing %}x{% else %}none{% endfor %}", "none"],
  ["{{ missing | length }} {{ missing | list }} {{ missing | join(',') }}|{{ missing | trim }}|", "0 [] ||"],
  ["{{ missing is iterable }}", "True"],
  ["{{ none | selectattr('a') | list }} {{ none | map(attribute='a') | list }}", "[] []"],
  // Text
  ["{{ '--a-'.strip('-') }} {{ 'xxa'.lstrip('x') }} {{ 'a\\n\\n'.rstrip('\\n') }}", "a a a"],
  [
    "{{ 'a b  c'.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }}",
    "['a', 'b', 'c'] ['a', 'b,c'] ['a,b', 'c']",
  ],
  ["{{ 'a b c'.rsplit(none, 1) }} {{ ' a  b c '.split(none, 1) }}", "['a b', 'c'] ['a', 'b c ']"],
  ["{{ 'a\\nb\\r\\nc'.splitlines() }}", "['a', 'b', 'c']"],
  ["{{ 'abcabc'.replace('b', 'x', 1) }} {{ 'ab'.replace('', '-') }}", "axcabc -a-b-"],
  ["{{ 'héllo'.find('l') }} {{ '😀b'.find('b') }} {{ 'abab'.rfind('b') }} {{ 'abab'.count('a') }}", "2 1 3 2"],
  ["{{ '😀ab'[1] }} {{ '😀ab'[1:] }} {{ 'abc'[::-1] }} {{ '😀' | length }}", "a ab cba 1"],
  ["{{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith('c') }}", "True True"],
  ["{{ 'x'.removeprefix('x') }}|{{ 'abc'.removesuffix('bc') }}", "|a"],
  ["{{ '{}-{}-{x}'.format(1, 'b', x=true) }} {{ '{{{0}}}'.format('a') }}", "1-b-True {a}"],
  ["{{ ', '.join(['a', 'b']) }} {{ 'hello world' | title }} {{ 'hELLO' | capitalize }}", "a, b Hello World Hello"],
  ["{% for c in 'ab' %}[{{ c }}]{% endfor %}", "[a][b]"],
  ["{{ 'a\\nb\\n\\nc' | indent(2) }}", "a\n  b\n\n  c"],
  ["{{ 'a\\nb' | indent(2, true) }}", "  a\n  b"],
  // Python's lines also end at U+2028 and others: a call's arguments with one were indented otherwise than by Transformers.
  ["{{ 'a\\u2028b\\r\\nc\\n' | indent(2) }}", "a\n  b\n  c\n"],
  ["{{ '12' | int + 1 }} {{ 'x' | int }} {{ 'x' | int(7) }} {{ '1.5' | float }} {{ 2.7 | int }}", "13 0 7 1.5 2"],
  // Containers
  ["{{ {'items': 1}.items() | list }} {{ {'items': 1}['items'] }}", "[('items', 1)] 1"],
  ["{% for k, v in {'a': 1, 'b': 2} | items %}{{ k }}={{ v }};{% endfor %}", "a=1;b=2;"],
  ["{% for k, v in {2: 'b', 1: 'a'} | dictsort %}{{ k + 1 }}{{ v }}{% endfor %}", "2a3b"],
  ["{{ {0: 'z'}[0] }} {{ {'a': 1}.get('b', 2) }} {{ {'a': 1}.get('b') }}", "z 2 None"],
  ["{% set l = [1] %}{% do l.append(2) %}{% set _ = l.pop(0) %}{{ l }}", "[2]"],
  ["{{ [3, 1, 2] | sort }} {{ ['b', 'A'] | sort }} {{ [1, 1, 2] | unique | list }}", "[1, 2, 3] ['A', 'b'] [1, 2]"],
  ["{{ [1, 2, 3][-1] }} {{ [1, 2, 3][1:] }} {{ [1, 2, 3] | first }} {{ [] | last }}", "3 [2, 3] 1 "],
  ["{{ [{'t': 'a', 'n': 1}, {'t': 'b'}] | selectattr('t', 'equalto', 'a') | map(attribute='n') | list }}", "[1]"],
  ["{{ [{'a': 1}, {}] | map(attribute='a', default=0) | list }} {{ ['a'] | map('upper') | list }}", "[1, 0] ['A']"],
  ["{{ [1, 2, 3] | select('odd') | list }} {{ [1, 2] | reject('==', 1) | list }} {{ [1, 2] | sum }}", "[1, 3] [2] 3"],
  ["{{ dict(a=1) }} {{ range(3) | list }} {{ range(5, 0, -2) | list }}", "{'a': 1} [0, 1, 2] [5, 3, 1]"],
  // JSON
  [`{{ {'a': [1, 1.0, true, none, 'é"']} | tojson }}`, `{"a": [1, 1.0, true, null, "é\\""]}`],
  ["{{ {'b': 1, 'a': []} | tojson(indent=2) }}", '{\n  "b": 1,\n  "a": []\n}'],
  [
    "{{ {'b': 1, 'a': 'é'} | tojson(sort_keys=true, ensure_ascii=true, separators=(',', ':')) }}",
    '{"a":"\\u00e9","b":1}',
  ],
  // Tests with arguments
  ["{{ 4 is divisibleby(2) }} {{ 3 is not divisibleby(2) }} {{ 1 is in([1]) }}", "True True True"],
  [
    "{{ 'a' is string }} {{ {} is mapping }} {{ [] is sequence }} {{ 1.0 is float }} {{ true is number }}",
    "True True True True True",
  ],
  // Scopes and loops
  ["{% for i in [1, 2] %}{{ x is defined }}{% set x = 1 %}{{ x is defined }} {% endfor %}", "FalseTrue FalseTrue "],
  ["{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}", "221"],
  ["{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "3"],
  ["{% for i in [1, 2, 3] %}<{% if i == 2 %}{% continue %}{% endif %}{{ i }}>{% endfor %}", "<1><<3>"],
  ["{% for i in [1, 2, 3] %}<{% if i == 2 %}{% break %}{% endif %}{{ i }}>{% endfor %}", "<1><"],
  ["{% for i in [1, 2, 3, 4] if i is even %}{{ loop.index }}{{ loop.last }}{{ i }} {% endfor %}", "1False2 2True4 "],
  ["{% for i in 'ab' %}{{ loop.cycle('x', 'y') }}{{ loop.previtem }}{{ loop.revindex }}{% endfor %}", "x2ya1"],
  ["{% for a, b in [(1, 2), [3, 4]] %}{{ a + b }} {% endfor %}", "3 7 "],
  ["{% set a, b = 1, 2 %}{{ b }}{{ a }}", "21"],
  ["{% set x %} y {% endset %}[{{ x | trim }}]", "[y]"],
  ["{% filter upper %}a{{ 'b' }}{% endfilter %}", "AB"],
  [
    "{% macro m(a, b='d') %}{{ a }}{{ b }}{{ kwargs }}{{ varargs }}{% endmacro %}{{ m(1) }} {{ m(1, 2, 3, z=4) }}",
    "1d{}() 12{'z': 4}(3,)",
  ],
  ["{% macro m() %}{{ caller('x') }}!{% endmacro %}{% call(a) m() %}{{ a }}{% endcall %}", "x!"],
  ["{% macro m() %}{{ inner is defined }}{% endmacro %}{% for inner in [1] %}{{ m() }}{% endfor %}", "False"],
  ["{{ 'yes' if 1 }}{{ 'no' if 0 }}{{ missing or 'b' }}{{ '' and 'c' }}", "yesb"],
  // Dates
  [
    "{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %Y %-d %B %A %j') }}",
    "2024-02-03 04:05:06 03 Feb 2024 3 February Saturday 034",
  ],
])("%s", (source, printed) => {
  expect(render(source)).toBe(printed);
});

test.each<[source: string, message: RegExp]>([
  ["{{ 'a' + none }}", /unsupported operand/],
  ["{{ 'a' + missing }}", /undefined/],
  ["{{ missing() }}", /'missing' is undefined/],
  ["{{ {}.nothing() }}", /'dict object' has no attribute 'nothing'/],
  ["{{ 'a' | nofilter }}", /No filter named 'nofilter'/],
  ["{{ 'a' is notest }}", /No test named 'notest'/],
  ["{{ 'a' | constructor }}", /No filter named/],
  ["{{ ''.constructor() }}", /has no attribute 'constructor'/],
  ["{% for x in none %}{% endfor %}", /'NoneType' object is not iterable/],
  ["{{ 1 / 0 }}", /division by zero/],
  ["{{ [1, 'a'] | sort }}", /not supported between/],
  ["{{ range(1000000) }}", /too long/],
])("%s fails", (source, message) => {
  expect(() => render(source)).toThrow(message);
});

test("raise_exception refuses with the template's words", () => {
  expect(() => render("{{ raise_exception('no ' ~ 1) }}")).toThrow(new TemplateRefusal("no 1"));
});

test("inputs keep their Python types", () => {
  const variables = { m: { a: 1, b: 1.5, c: null, d: [true], e: "x" } };
  expect(render("{{ m }} {{ m.c is none }} {{ m.nothing is defined }}", variables)).toBe(
    "{'a': 1, 'b': 1.5, 'c': None, 'd': [True], 'e': 'x'} True False",
  );
});

test("a member of something undefined is undefined, where Python fails: templates meet messages without optional members", () => {
  expect(render("{{ missing.deeper is defined }}{{ missing['deeper'].still }}")).toBe("False");
});

test("two renderings share nothing", () => {
  const template = new PythonTemplate("{% do seen.append(1) %}{{ seen | length }}");
  const user = new UserText(guardedTokens([], [], []), "", []);
  const seen: number[] = [];
  expect([1, 2].map(() => template.render({ seen }, new Date(0), user))).toEqual(["1", "1"]);
  expect(seen).toEqual([]);
});

// The model's process ended for a body of 1.8 MB: nested tools are a hundred times as long with indentation, as Llama 3.2's template writes
// them, and V8 ends the process for one allocation of hundreds of megabytes. Our long prompts were long in the request.
test("JSON that indentation makes too long ends the rendering while it is written", () => {
  const nested = (depth: number, count: number): unknown =>
    Array.from({ length: depth }).reduce<unknown>(
      (inner) => [inner],
      Array.from({ length: count }, () => 1),
    );
  expect(render("{{ a | tojson(indent=4) }}", { a: nested(90, 1000) })).toBe(JSON.stringify(nested(90, 1000), null, 4));
  expect(() => render("{{ a | tojson(indent=4) }}", { a: nested(90, 900_000) })).toThrow(
    "more than 67108864 characters",
  );
  const twice = "{% for a in list %}{% for b in list %}{{ text }}{% endfor %}{% endfor %}";
  const variables = { list: Array.from({ length: 100 }), text: "a".repeat(10_000) };
  expect(() => render(twice, variables)).toThrow("more than 67108864 characters");
});
