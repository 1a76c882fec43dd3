"""The real language server over a service that completes by rules.

`python ruled_server.py RULES.json`, where the file holds `{"rules": [{"after", "text",
"others", "from_line_start", "delay_ms"}], "journal": PATH, "load_ms": N}`. A rule fits
where the text before the cursor ends with `after` and any beginning of `text`, and what
follows the cursor in its line is nothing, or an ending of `text`, as an editor's closed
bracket is. It offers what is still to come of `text`; `others` are given beside it to a
request by hand. The range begins at the cursor, or at the line's start.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

from codekv.completion.api import Item
from codekv.testing.service import ScriptedAnswer, ScriptedService, ServiceScript
from lsp.run import run_stdio


class RuledService(ScriptedService):
    def __init__(self, rules, script, config, workspace):
        super().__init__(script, config, workspace)
        self._rules = rules
        self._note("configured", config=config.model_dump(mode="json"))

    async def _work(self, answer, request, started):
        head, tail, _start, _end = _line(request)
        rule, _ = next(_fitting(self._rules, head, tail), ({}, 0))
        slow = replace(answer, delay_ms=rule.get("delay_ms", 0))
        await super()._work(slow, request, started)

    def _items(self, answer, request):
        head, tail, start, end = _line(request)
        rule, num_typed = next(_fitting(self._rules, head, tail), (None, 0))
        if rule is None:
            return
        texts = [rule["text"], *rule.get("others", [])][: request.max_items]
        for text in texts:
            rest = text[num_typed:].replace("\n", request.snapshot.eol)
            name = f"{rule['after'].strip()}-{len(rest)}"
            if rule.get("from_line_start"):
                yield Item(name, head + rest, start, end)
            else:
                yield Item(name, rest, request.cursor_byte, end)


def _line(request):
    data, cursor = request.snapshot.data, request.cursor_byte
    start = data.rfind(b"\n", 0, cursor) + 1
    end = data.find(b"\n", cursor)
    end = len(data) if end < 0 else end
    return data[start:cursor].decode(), data[cursor:end].decode(), start, end


def _fitting(rules, head, tail):
    for rule in rules:
        text = rule["text"]
        for num_typed in range(len(text)):
            if head.endswith(rule["after"] + text[:num_typed]):
                if text[num_typed:].endswith(tail):
                    yield rule, num_typed
                break


def main(path):
    values = json.loads(Path(path).read_text("utf-8"))
    script = ServiceScript(
        (ScriptedAnswer("by rule"),),
        load_ms=values["load_ms"],
        journal=values["journal"],
    )

    def load():
        return lambda config, workspace: RuledService(
            values["rules"], script, config, workspace
        )

    return run_stdio(load)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
