"""Templates and values for jinja_reference_test.py: snippets, chats, errors and a generator of random ones."""

VARIABLES = {
    "s": "Hello, Wörld! 'quoted' \"double\" \\ \t\n<b>&amp;</b> ﬁn ΑΣ ß 東京 🎉 ",
    "empty": "", "n": 7, "neg": -3, "x": 2.5, "big": 1e22, "tiny": 1.5e-7, "t": True, "f": False, "nul": None,
    "list": [3, 1, 2, 3], "mixed": [1, "a", None, 2.0, True, {"k": [1]}], "words": ["b", "A", "c", "a", "B"],
    "dict": {"b": 1, "a": {"deep": [1, 2]}, "C": None, "items": "shadow", "é": "ü"},
    "rows": [{"role": "user", "n": 2, "on": True, "tags": ["x"]}, {"role": "tool", "n": 1, "on": False},
             {"role": "User", "n": 3, "tags": []}],
    "lines": "one\n  two\r\n\nthree\x0bfour\u2028five", "path": "a,b,,c", "spaced": "  a  b\tc \n",
}

SNIPPETS = [
    # White space control.
    "a\n  {% if t %}\n  b\n  {% endif %}\nc\n", "a \n {%- if t -%} \n b \n {%- endif -%} \n c", "a{%+ if t %}b{% endif +%}\nc",
    "  {%+ if t %}\nx{% endif %}", "  {{ n }}\n  {{- n -}}  \n  x\n\n", "{# c #}\na {#- c -#} b\n  {# c #}\n  d{#+ c +#}\ne",
    "a\r\nb\rc\n\n", "{% raw %}{{ x }}{% endraw %}\nb", "a {%- raw -%} {% if %} {%- endraw -%} b", "  {% raw %}\n {% x {% endraw %}\nb",
    "x{% if t %}\n\n{% endif %}\n", "{{ '{{' }}{% set y = '%}' %}{{ y }}", "", "\n", "{", "{ {%if t%}}{%endif%} }", "{{ n }}\n",
    # Output of every type.
    "{{ nul }} {{ t }} {{ f }} {{ n }} {{ x }} {{ big }} {{ tiny }} {{ mixed }} {{ dict }} {{ rows }} {{ missing }}",
    "{{ 1e16 }} {{ 1e15 }} {{ 123456789.125 }} {{ 0.0001 }} {{ 0.00001 }} {{ -0.0 }} {{ 1e300 * 1e10 }} {{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }}",
    "{{ (1,) }} {{ () }} {{ (1, 'a') }} {{ [] }} {{ {} }} {{ range(3) }} {{ range(5, 1, -2) }} {{ dict.keys() }} {{ dict.values() }} {{ dict.items() }}",
    "{{ [s] }} {{ ['\\x00\\x7f\\u200b\\U0001F389'] }} {{ ['it\\'s'] }} {{ ['\"', '\\'\"'] }}", "{{ namespace(a=1, b='x') }}",
    "{{ 'a' 'b' \"c\" }} {{ 'tab\\there' }} {{ 'oct\\101 \\q \\é' }} {{ 'line\\\nbreak' }}", "{{ [missing] }} {{ missing ~ 'x' }}",
    # Operators.
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1 / 4 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }}",
    "{{ -2 ** 2 }} {{ 2 - -3 }} {{ - n|abs }} {{ 1 + 2 ~ 3 + 4 }} {{ 'a' * 3 }} {{ 3 * [1, 2] }} {{ (1,) + (2,) }} {{ 'a' * -1 }} {{ t + t }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 == t }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ nul == missing }} {{ missing == missing }}",
    "{{ 'a' in 'abc' }} {{ 2 in list }} {{ 'b' in dict }} {{ 1 not in list }} {{ 'z' in missing }} {{ not 1 in list }}",
    "{{ 0 or 'x' }} {{ 1 and '' }} {{ nul or missing or 3 }} {{ not empty }} {{ t and n }} {{ 'y' if x > 2 else 'n' }} {{ 'y' if f }}|",
    "{{ 1 if f else 2 if f else 3 }} {{ 9007199254740993 == 9007199254740992.0 }} {{ 1e400 > 1 }}", "{{ 1 +\n 2 }}{# line #}",
    # Look-ups and slices.
    "{{ dict.a.deep[1] }} {{ dict['a']['deep'].0 }} {{ dict['items'] }}",
    "{{ list[-1] }} {{ list[9] }}| {{ s[1] }} {{ s[-2] }} {{ list['x'] is defined }} {{ rows[0].role }} {{ dict.nope }}|{{ n.nope }}|",
    "{{ list[1:] }} {{ list[:-1] }} {{ list[::-1] }} {{ list[5:1] }} {{ s[::-1] }} {{ s[2:9:3] }} {{ (1,2,3)[:2] }} {{ range(9)[2:7:2] }} {{ list[-2:] }} {{ list[10:0:-2] }}",
    "{{ dict.get('b') }} {{ dict.get('z') }} {{ dict.get('z', 5) }} {{ dict.append is defined }} {{ list.append is defined }} {{ dict.keys is defined }}",
    # Filters.
    "{{ dict|tojson }} {{ s|tojson }} {{ mixed|tojson(indent=2) }} {{ s|tojson(ensure_ascii=True) }} {{ dict|tojson(sort_keys=true) }} {{ dict|tojson(separators=(',', ':')) }}",
    "{{ []|tojson(indent=4) }} {{ {}|tojson(indent=1) }} {{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }} {{ '\\x7f\\x01'|tojson }} {{ [x, big, tiny, nul]|tojson(indent='-') }}",
    "{{ spaced|trim }}|{{ 'xxaxx'|trim('x') }} {{ s|upper }} {{ s|lower }} {{ s|capitalize }} {{ s|title }} {{ 'a-b (c) d_e'|title }} {{ n|string }}",
    "{{ s|length }} {{ list|count }} {{ missing|length }} {{ s|replace('l', 'L') }} {{ s|replace('l', 'L', 1) }} {{ 'aaa'|replace('', '-') }} {{ n|replace(7, 8) }}",
    "{{ missing|default('d') }} {{ empty|default('d') }}|{{ empty|default('d', true) }} {{ nul|d('x') }} {{ f|default('d', boolean=true) }}",
    "{{ list|join('-') }} {{ mixed|join }} {{ rows|join(',', attribute='role') }} {{ list|first }} {{ list|last }} {{ []|first }}| {{ s|first }} {{ dict|first }}",
    "{{ list|sort }} {{ words|sort }} {{ words|sort(true) }} {{ words|sort(case_sensitive=true) }} {{ rows|sort(attribute='n')|map(attribute='n')|list }} {{ list|sort(reverse=true) }}",
    "{{ list|unique|list }} {{ words|unique|list }} {{ list|sum }} {{ rows|sum(attribute='n') }} {{ list|min }} {{ words|max }} {{ rows|max(attribute='n') }}",
    "{{ dict|dictsort }} {{ {'b': 2, 'A': 1}|dictsort(true) }} {{ {'b': 1, 'a': 2}|dictsort(by='value') }} {{ {'b': 1}|items|list }}",
    "{{ list|map('string')|join('+') }} {{ words|map('upper')|list }} {{ rows|map(attribute='tags', default='-')|list }} {{ list|map('default', 1)|list }}",
    "{{ list|select('odd')|list }} {{ list|reject('eq', 3)|list }} {{ mixed|select|list }} {{ rows|selectattr('on')|list|length }} {{ rows|rejectattr('role', 'equalto', 'user')|list }} {{ rows|selectattr('tags', 'defined')|map(attribute='role')|join }}",
    "{% set g = list|map('string') %}{{ g|join }}{{ g|join }}| {{ (list|select)|first }} {{ 'yes' if []|map('upper') else 'no' }}",
    "{{ list|reverse|list }} {{ s|reverse }} {{ list|list }} {{ 'ab'|list }} {{ dict|list }} {{ list|batch(3, 'x')|list }} {{ list|slice(3)|list }}",
    "{{ '42'|int }} {{ '4.7'|int }} {{ 'x'|int(9) }} {{ 'ff'|int(base=16) }} {{ x|int }} {{ '1_0'|int }} {{ nul|int }} {{ '2.5'|float }} {{ 'x'|float }} {{ n|float }} {{ ' 7 '|int }}",
    "{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 7|round }} {{ 2.1|round(method='ceil') }} {{ -2.1|round(0, 'floor') }} {{ 1234.5|round(-2) }} {{ 15|round(-1) }} {{ -3|abs }} {{ x|abs }}",
    "{{ lines|indent }} {{ lines|indent(2, true) }} {{ lines|indent('> ', blank=true) }} {{ 'a b, c'|wordcount }}",
    "{{ s|escape }} {{ s|e }} {{ '<'|safe }} {{ ('<'|safe) + '<' }} {{ '<'|e|e }} {{ ('<'|safe)|length }} {{ ['<'|safe] }}",
    "{{ '%s is %d, %05.2f, %x, %-4s|%4s|%%'|format('a', 3, 2.5, 255, 'l', 'r') }} {{ '%(k)s'|format(k='v') }} {{ '%s %r' % ('a', 'b') }} {{ '%s' % n }}",
    "{{ '{} {1} {k}'.format(1, 2, k=3) if false else '{0} {1} {k}'.format(1, 2, k=3) }} {{ '{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}|{!r}|{{}}'.format('a', 'b', 'c', 42, 1.5, 1234567, 'q') }}",
    # Tests.
    "{% for v in [1, 0, 1.5, 'a', '', none, true, [], {}, (1,), range(2), missing] %}{{ [v is defined, v is undefined, v is none, v is string, v is mapping, v is iterable, v is sequence, v is number, v is integer, v is float, v is boolean, v is true, v is false, v is callable] }}\n{% endfor %}",
    "{{ n is odd }} {{ n is even }} {{ 9 is divisibleby 3 }} {{ n is eq(7) }} {{ n is equalto 8 }} {{ n is gt 3 }} {{ n is lt(3) }} {{ n is ne 7 }} {{ 1 is in list }} {{ n is not none }} {{ 'a' is lower }} {{ 'A' is upper }} {{ n is ge 7 }} {{ 'odd' is test }} {{ 'nope' is filter }} {{ t is sameas true }}",
    "{{ n is defined and missing is not defined or f }} {{ dict is mapping and dict is not string }}",
    # Methods.
    "{{ path.split(',') }} {{ path.split(',', 1) }} {{ spaced.split() }} {{ spaced.split(none, 1) }} {{ spaced.rsplit(none, 1) }} {{ path.rsplit(',', 1) }} {{ path.partition(',') }} {{ path.rpartition('-') }} {{ lines.splitlines() }} {{ lines.splitlines(true) }} {{ ''.split() }} {{ ''.split(',') }}",
    "{{ spaced.strip() }}|{{ spaced.lstrip() }}|{{ spaced.rstrip() }}|{{ 'xyax'.strip('xy') }} {{ '东a东'.strip('东') }} {{ s.startswith('Hello') }} {{ s.endswith((' ', 'x')) }} {{ s.startswith('llo', 2) }} {{ s.find('W') }} {{ s.find('zz') }} {{ s.rfind('l') }} {{ s.count('l') }} {{ 'aaa'.count('') }} {{ s.index('e') }}",
    "{{ s.upper() }} {{ s.lower() }} {{ s.title() }} {{ s.capitalize() }} {{ 'a'.join(['x', 'y']) }} {{ s.replace('o', '0', 1) }} {{ 'x'.zfill(3) }} {{ '-5'.zfill(4) }} {{ 'ab'.center(5, '*') }} {{ 'ab'.ljust(4) }}|{{ 'ab'.rjust(4) }} {{ 'abc'.removeprefix('a').removesuffix('c') }}",
    "{{ 'a1'.isalnum() }} {{ 'a'.isalpha() }} {{ '12'.isdigit() }} {{ ' '.isspace() }} {{ 'Ab'.isupper() }} {{ 'ab'.islower() }} {{ ''.isalpha() }} {{ list.index(2) }} {{ list.count(3) }} {{ 'ΑΣ ΑΣΑ'.lower() }} {{ 'ßa ŉ ǆ'.title() }} {{ 'ﬁ'.upper() }} {{ 'İ'.lower() }}",
    # Statements.
    "{% for a in list %}{{ loop.index }}/{{ loop.length }} {{ loop.index0 }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.first }} {{ loop.last }} {{ loop.previtem }} {{ loop.nextitem }} {{ loop.cycle('o', 'e') }}\n{% endfor %}",
    "{% for a in [] %}x{% else %}none{% endfor %}{% for k, v in dict.items() %}{{ k }}={{ v }};{% endfor %}{% for c in 'aé' %}{{ c }}.{% endfor %}{% for k in dict %}{{ k }}{% endfor %}{% for x in missing %}{% else %}!{% endfor %}",
    "{% for a in list if a != 1 %}{{ a }}{{ loop.length }}{{ loop.last }}{% endfor %}{% for a in range(10) %}{% if a == 2 %}{% continue %}{% elif a > 4 %}{% break %}{% endif %}{{ a }}{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for a in list if not ns.stop %}{{ a }}{% set ns.stop = true %}{% endfor %}{{ loop is defined }}",
    "{% set a = 1 %}{% for i in list %}{% set a = a + i %}{{ a }} {% endfor %}{{ a }}{% if t %}{% set a = 9 %}{% endif %}{{ a }}{% for (p, q), r in [((1, 2), 3)] %}{{ p }}{{ q }}{{ r }}{% endfor %}",
    "{% set ns = namespace(n=0, l=[]) %}{% for i in list %}{% set ns.n = ns.n + i %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.n }}{{ ns.l }}{{ ns.nope }}|{% set a, b = 'xy' %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}",
    "{% set b %}\n  x{{ n }}\n{% endset %}[{{ b }}]{% set b | upper | trim %} abc {% endset %}[{{ b }}]{% filter upper | replace('A', 'b') %}a{{ n }}{% endfilter %}{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}",
    "{% macro m(a, b=2, c=a) %}{{ a }}-{{ b }}-{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, c=5) }}{{ m(b=3, a=4) }}{{ m() }}{{ m(*[7, 8], **{'c': 9}) }}{{ m }}{{ m(1)|length }}",
    "{% macro v(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ v(1, 2, 3, z=4) }}{% macro c() %}<{{ caller('x') }}>{% endmacro %}{% call(y) c() %}{{ y }}{{ n }}{% endcall %}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}{% set late = 'b' %}{% macro g() %}{{ late }}{% endmacro %}{% set late = 'c' %}{{ g() }}",
    "{% for i in list %}{% macro h(k) %}{{ i }}{{ k }}{% endmacro %}{{ h(loop.index) }}{% endfor %}{{ h is defined }}",
    "{% generation %}a{% set q = 1 %}{{ q }}{% endgeneration %}\n{{ q }}|{% print n, x %}{% if f %}a{% elif nul %}b{% elif t %}c{% else %}d{% endif %}{% for x in list: %}{{ x }}{% endfor %}",
    "{% set d = dict(a=1, **{'b': 2}) %}{{ d }}{{ dict is mapping }}{{ {'a': 1, 'a': 2} }}{{ {1: 'x', true: 'y'} }}{{ strftime_now('%Y-%m-%d %H:%M') }}",
    "{% set loop_messages = rows[1:] %}{% for m in loop_messages %}{% if loop.first or (rows[loop.index0].role != 'tool') %}{{ m.role }}{% endif %}{% endfor %}{{ rows|map(attribute='tags.0')|list if false }}",
    # Refused by both.
    "{{ missing.x }}", "{{ missing + 1 }}", "{{ missing() }}", "{{ n() }}", "{{ 'a' + 1 }}", "{{ 1 < 'a' }}", "{{ [1] < 2 }}", "{{ 1 / 0 }}", "{{ 1 in 2 }}",
    "{{ raise_exception('no') }}", "{{ dict.pop('a') }}", "{{ list.append(1) }}", "{% set n.x = 1 %}", "{{ n|length }}", "{{ missing|tojson }}", "{{ range(3)|tojson }}",
    "{% set a, b = [1] %}", "{{ {[]: 1} }}", "{{ ''.split('') }}", "{{ 'a'.index('b') }}", "{{ [1, 'a']|sort }}", "{{ m(1) }}{% macro m() %}{% endmacro %}", "{% macro m() %}{% endmacro %}{{ m(1) }}",
    "{% if %}", "{% for %}", "{{ }}", "{{ 1 + }}", "{% endif %}", "{% if t %}", "{{ 'a }}", "{# x", "{% raw %}x", "{{ (1 }}", "{{ a b }}", "{% break %}", "{{ 1 is 2 }}", "{% set 1 = 2 %}", "{{ x[ }}", "{% macro %}", "{{ f(a=1, 2) }}", "{{ '%d' % 'a' }}", "{{ nul.x.y }}", "{{ range(100001) }}", "{{ none|items|list }}",
]

# The constructs that the templates of the supported families are made of, in templates of our own.
CHAT_TEMPLATES = [
    # Macros over content parts, a namespace that remembers a position, tool arguments as tags.
    """<begin>
{%- macro plain(body) -%}
    {%- if body is string -%}
        {{- body }}
    {%- elif body is iterable and body is not mapping -%}
        {%- for piece in body -%}
            {%- if piece is string -%}{{- piece }}{%- elif piece is mapping and piece.type in ['text', 'note'] -%}{{- piece.text }}{%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{- body }}
    {%- endif -%}
{%- endmacro -%}
{%- if tools -%}
    {%- macro as_line(tool) -%}
        {%- set ns = namespace(is_first=true) -%}
        {{ '{' -}}
        {%- for k, v in tool.items() if k != 'strict' -%}
            {%- if not ns.is_first -%}{{- ', ' -}}{%- endif -%}
            {%- set ns.is_first = false -%}
            "{{ k }}": {{ v | tojson(ensure_ascii=False) }}
        {%- endfor -%}
        {{- '}' -}}
    {%- endmacro -%}
[setup]
You have:
{% for tool in tools %}
    {%- if 'function' in tool -%}{%- set tool = tool['function'] -%}{%- endif -%}
    {% if tool.hidden is not defined or not tool.hidden %}
{{ as_line(tool) }}
    {% endif %}
{% endfor %}
That is all.{%- endif -%}
{%- set seen = namespace(question=-1) %}
{%- for turn in messages %}
    {%- if turn.role == 'user' %}
        {% set seen.question = loop.index0 -%}
    {%- endif %}
{%- endfor %}
{% for turn in messages %}
    {%- if turn.role in ['user', 'system'] -%}
[{{ turn.role }}]
{{ plain(turn.content) }}
        {{- '/fast' if (enable_thinking is defined and not enable_thinking and not plain(turn.content).endswith("/fast")) else '' -}}
    {%- elif turn.role == 'assistant' -%}
        {%- set answer = plain(turn.content) %}
        {%- if turn.reasoning_content is string %}
            {%- set thought = turn.reasoning_content %}
        {%- elif '</think>' in answer %}
            {%- set thought = answer.split('</think>')[0].split('<think>')[-1].strip('\n') %}
            {%- set answer = answer.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {{- '[model]' -}}
        {%- if thought is defined and loop.index0 > seen.question -%}{{ '<think>' + thought.rstrip() + '</think>' }}{%- else -%}{{ '</think>' }}{%- endif -%}
        {{ answer.strip() }}
        {%- for wanted in turn.tool_calls or [] %}
            {%- set wanted = wanted.function or wanted %}
            {%- set given = wanted.arguments or {} %}
{{ '\n' ~ wanted.name -}}
            {% for k, v in given.items() %}
<k>{{ k }}</k><v>{{ v | tojson(ensure_ascii=False) if v is not string else v }}</v>
            {%- endfor %}
        {%- endfor %}
    {%- elif turn.role == 'tool' -%}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '[results]' -}}{%- endif %}
        {{- '\n(' ~ turn.content ~ ')' }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}[model]{{- '</think>' if (enable_thinking is defined and not enable_thinking) else '<think>' -}}{%- endif -%}
""",
    # Backwards over the messages, neighbours of a loop, JSON within text, a mark of generation.
    """{%- set state = namespace(open=true, at=messages|length - 1) %}
{%- for turn in messages[::-1] %}
    {%- set place = (messages|length - 1) - loop.index0 %}
    {%- if state.open and turn.role == "user" and turn.content is string and not(turn.content.startswith('<<') and turn.content.endswith('>>')) %}
        {%- set state.open = false %}
        {%- set state.at = place %}
    {%- endif %}
{%- endfor %}
{{- state.at ~ ':' }}
{%- for turn in messages %}
    {%- set body = turn.content if turn.content is string else '' %}
    {%- if loop.previtem is not defined or loop.previtem.role != turn.role %}{{- '(' + turn.role + '\n' }}{%- endif %}
    {%- if turn.role == "assistant" %}
        {% generation %}
        {%- if loop.index0 > state.at and (loop.last or turn.reasoning_content) %}
            {{- '~' + (turn.reasoning_content or '').strip('\n') + '~\n' + body.lstrip('\n') }}
        {%- else %}
            {{- body }}
        {%- endif %}
        {% endgeneration %}
        {%- for wanted in turn.tool_calls or [] %}
            {%- if (loop.first and body) or (not loop.first) %}{{- '\n' }}{%- endif %}
            {{- '{"call": "' }}{{- (wanted.function or wanted).name }}{{- '", "with": ' }}
            {%- if wanted.function.arguments is string %}{{- wanted.function.arguments }}{%- else %}{{- wanted.function.arguments | tojson }}{%- endif %}
            {{- '}' }}
        {%- endfor %}
    {%- else %}
        {{- body ~ '\n' }}
    {%- endif %}
    {%- if loop.last or (loop.nextitem.role != turn.role) %}{{- ')\n' }}{%- endif %}
{%- endfor %}
{%- if tools %}{{- tools | tojson(indent=2) }}{{- tools | map(attribute='function.name') | join(', ') }}{%- endif %}
{%- if add_generation_prompt and enable_thinking is defined and enable_thinking is false %}{{- '~~' }}{%- endif %}""",
    # Defaults for what was not passed, keys by subscript, slices, counted ids, a search with break.
    """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif -%}
{%- set enable_thinking = enable_thinking | default(true) -%}
{%- set ids = namespace(next=0, known=[]) -%}
{%- set all = namespace(system='') -%}
{%- for turn in messages | selectattr('role', 'equalto', 'system') %}{% set all.system = all.system ~ ('\n\n' if all.system else '') ~ turn['content'] %}{% endfor -%}
{{ bos_token }}{{ all.system }}
{%- macro name_of(turn) -%}
    {%- set who = turn.get('name') or turn['role'] -%}
    {%- if turn['role'] == 'tool' -%}＜{{ who }}▁{{ turn.get('tool_call_id', 'none') }}＞{%- else -%}＜{{ who | capitalize }}＞{%- endif -%}
{%- endmacro -%}
{%- set begin = 1 if messages and messages[0]['role'] == 'system' else 0 %}
{%- for turn in messages[begin:] %}
    {%- set place = loop.index0 + begin %}
    {{- name_of(turn) }}
    {%- if turn['tool_calls'] is defined and turn['tool_calls'] is not none %}
        {%- for wanted in turn['tool_calls'] %}
            {%- if wanted['id'] is defined %}{% set id = wanted['id'] %}{% else %}{% set id = wanted['function']['name'] + ':' + (ids.next | string) %}{% set ids.next = ids.next + 1 %}{% endif %}
            {%- set ids.known = ids.known + [id] %}
            {{- id }}{{ wanted['function']['arguments'] | tojson }}
        {%- endfor %}
    {%- elif turn['content'] is not none and turn['content'] is string %}
        {%- set body = turn['content'] %}
        {%- if '</think>' in body %}{% set body = body.split('</think>', 1)[1] %}{% endif %}
        {{- body + eos_token }}
    {%- endif %}
    {%- for back in range(place - 1, -1, -1) %}{% if messages[back].role == 'user' %}[{{ place - back }}]{% break %}{% endif %}{% endfor %}
{%- endfor %}
{{- ids.known }}{{ messages[:1]|length }}{{ messages[-2:]|length }}
{%- if add_generation_prompt %}{{ '＜Assistant＞' }}{% if not enable_thinking %}</think>{% else %}<think>{% endif %}{% endif %}""",
]


def chats():
    def call(name, arguments, **more):
        return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}

    tools = [{"type": "function", "function": {"name": "get", "description": "Wetter \"hier\"\n",
                                               "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}},
             {"type": "function", "function": {"name": "noop"}}]
    user, answer = {"role": "user", "content": "Köln?"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\n Ja "}
    called = {"role": "assistant", "content": "", "reasoning_content": "so\n",
              "tool_calls": [call("get", {"city": "Köln", "n": 1.0, "deep": {"a": [None, True]}}, id="1"), call("noop", {})]}
    results = [{"role": "tool", "content": "12°", "tool_call_id": "1"}, {"role": "tool", "content": "ok"}]
    parts = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}, "b"]}
    for messages in ([user], [{"role": "system", "content": "Be brief."}, user, answer, user, called, *results, answer],
                     [parts], [user, called, *results], [], [user, answer, {"role": "system", "content": "x"}, user]):
        for given in (None, tools):
            for options in ({}, {"enable_thinking": False}, {"enable_thinking": True, "thinking": True}):
                yield {"messages": messages, "tools": given, "bos_token": "<s>", "eos_token": "</s>",
                       "add_generation_prompt": bool(options) or given is None, **options}


# What is refused by this engine alone, or with a text that is promised: (template, kind, part of the message).
ERRORS = [
    ("a\nb {{ x|urlize }}", "unsupported", "template: line 2: the filter 'urlize' is not supported"),
    ("{{ 1 is fluffy }}", "unsupported", "line 1: the test 'fluffy'"),
    ("\n\n{% include 'x' %}", "unsupported", "line 3: the tag 'include'"),
    ("{% extends 'x' %}", "unsupported", "the tag 'extends'"), ("{% block b %}{% endblock %}", "unsupported", "the tag 'block'"),
    ("{% for x in y recursive %}{% endfor %}", "unsupported", "a recursive loop"), ("{{ lipsum() }}", "unsupported", "'lipsum'"),
    ("{{ 'a'.encode() }}", "unsupported", "the method 'encode' of 'str'"), ("{{ [1]|map('nope')|list }}", "unsupported", "the filter 'nope'"),
    ("{% do x %}", "format", "unexpected tag 'do'"), ("a\n{{ missing.x }}", "format", "line 2: 'missing' is undefined"),
    ("a\n{{ [].append(1) }}", "format", "would change a 'list'"), ("{{ raise_exception('Roles must alternate') }}", "usage", "Roles must alternate"),
    ("{% for i in range(1000000000) %}{% endfor %}", "limit", "in a range"),
    ("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "limit", "steps"),
    ("{% for i in range(99999) %}{% for j in range(99999) %}{% for k in range(9) %}{{ i }}{% endfor %}{% endfor %}{% endfor %}", "limit", "steps"),
    ("{{ 'a' * 10 ** 12 }}", "limit", "bytes"), ("{{ [0] * 10 ** 12 }}", "limit", "bytes"), ("{{ 10 ** 100 }}", "limit", "64"),
    ("{{ 9223372036854775807 + 1 }}", "limit", "64"), ("{{ 99999999999999999999 }}", "format", "64 bits"),
    ("{% set ns = namespace(s='aaaaaaaaaa') %}{% for i in range(1000) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", "limit", "bytes"),
    ("{% set ns = namespace(s='aaaaaaaaaa') %}{% for i in range(1000) %}{% set ns.s = ns.s|replace('a', 'aa') %}{% endfor %}", "limit", "steps"),
    ("{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}", "limit", "nested values"),
    ("{% set s = 'x' * 60000000 %}{{ s }}{{ s }}", "limit", "output"),
    ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "limit", "nested calls"), ("{% macro m() %}{{ m() ~ m() }}{% endmacro %}{{ m() }}", "limit", "nested calls"),
    ("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "limit", "nested calls"), ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "limit", "nested"),
    ("{{ " + "1 + " * 5000 + "1 }}", "limit", "nested"), ("{% if 1 %}" * 5000, "limit", "nested"), ("{{ " + "not " * 5000 + "1 }}", "limit", "nested"),
    ("{{ x" + ".a" * 5000 + " }}", "limit", "nested"), ("{{ " + "-" * 5000 + "1 }}", "limit", "nested"), ("{{ 'a'.center(10 ** 12) }}", "limit", "bytes"),
    ("{{ '%999999999d' % 1 }}", "limit", "width"), ("{{ ('<'|safe)|upper }}", "unsupported", "marked safe"), ("{{ '\\ud800' }}", "format", "hexadecimal"),
]


class Generator:
    """Random templates: expressions over random values, with filters, tests, methods and statements."""

    TEXTS = ["", "a", "Ab c", "é東", "a,b", " x \n", "<&>", "12", "-3.5", "{}", "it's \"x\"", "ß🎉", "a\tb\\"]
    FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "first", "last", "list", "string", "int", "float", "abs", "tojson", "reverse|list",
               "sort", "unique|list", "join('-')", "default('d')", "default('d', true)", "tojson(indent=2)", "tojson(ensure_ascii=true)", "round(1)", "dictsort",
               "items|list", "min", "max", "sum", "map('string')|join(';')", "select|list", "select('string')|list", "map('length')|list", "indent(2)",
               "replace('a', 'bb')", "wordcount", "batch(2)|list", "slice(2)|list", "escape|string", "count", "reject('none')|list", "map(attribute='a')|list"]
    TESTS = ["defined", "none", "string", "mapping", "iterable", "sequence", "number", "integer", "float", "boolean", "true", "false", "odd", "even", "undefined",
             "divisibleby(2)", "eq(1)", "in([1, 'a'])", "lower", "upper"]
    METHODS = ["upper()", "strip()", "split()", "split(',')", "title()", "startswith('a')", "find('b')", "count('a')", "replace('a', 'x')", "isdigit()", "isalpha()",
               "capitalize()", "splitlines()", "lstrip('a ')", "partition(',')", "rsplit(',', 1)", "items()", "keys()", "get('a')", "get('z', 1)", "index(1)", "zfill(4)", "islower()"]
    OPERATORS = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]

    def __init__(self, source):
        self.random = source

    def value(self, depth=0):
        kind = self.random.randrange(10 if depth < 3 else 7)
        if kind < 2:
            return self.random.choice(self.TEXTS)
        if kind < 4:
            return self.random.choice([0, 1, 2, 7, -3, 100, 12345678901])
        if kind == 4:
            return self.random.choice([0.5, -1.25, 1e20, 1e-7, 3.0, self.random.uniform(-1e3, 1e3)])
        if kind == 5:
            return self.random.choice([True, False])
        if kind == 6:
            return None
        if kind < 9:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        return {self.random.choice(["a", "b", "c", "é"]): self.value(depth + 1) for _ in range(self.random.randrange(4))}

    def expression(self, depth=0):
        pick = self.random.randrange(14 if depth < 3 else 3)
        inner = lambda: self.expression(depth + 1)  # noqa: E731
        if pick < 2:
            return self.random.choice("pqr")
        if pick == 2:
            return self.random.choice(["1", "'a'", "2.5", "none", "true", "[1, 'a', 2]", "{'a': 1, 'b': [2]}", "(1, 2)", "range(3)", "nope", "-1"])
        if pick < 6:
            return f"{inner()}|{self.random.choice(self.FILTERS)}"
        if pick == 6:
            return f"({inner()}) is {self.random.choice(['', 'not '])}{self.random.choice(self.TESTS)}"
        if pick == 7:
            return f"({inner()}).{self.random.choice(self.METHODS)}"
        if pick == 8:
            return f"({inner()})[{self.random.choice(['0', '-1', '1:', '::-1', ':2', chr(39) + 'a' + chr(39), '5', '-3:-1'])}]"
        if pick < 12:
            return f"({inner()} {self.random.choice(self.OPERATORS)} {inner()})"
        if pick == 12:
            return f"({inner()} if {inner()} else {inner()})"
        return f"[{inner()}, {inner()}]"

    def template(self):
        forms = ["{{ %s }}", "a\n  {%%- if %s %%}\n  yes\n{%% else %%}no{%% endif %%}\n", "{%% set v = %s %%}\n{{ v }}|{{ v is string }}",
                 "{%% for i in %s %%}\n{{ loop.index }}{{ i }}{{ loop.last }}\n{%%- else %%} none {%% endfor %%}",
                 "{%% macro m(a, b='x') %%}<{{ a }}{{ b }}>{%% endmacro %%}{{ m(%s) }}", "{%% set b | trim %%} {{ %s }} {%% endset %%}[{{ b }}]"]
        return self.random.choice(forms) % self.expression(), {name: self.value() for name in "pqr"}
