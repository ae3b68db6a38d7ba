"""Reads a transcript: the requests of a library and the replies that it needs. README.md has the form.

Uses no sockets. Compares replies as texts: two replies have the same text only if their bytes are equal.
"""
import dataclasses
import hashlib
import re
import textwrap
import time

LINE = re.compile(r"(?:(?P<side>[HR]): *)?(?:(?P<who>[A-Z]) *(?P<kind>>>|>|<)(?: (?P<text>.*))?"
                  r"|until gone (?P<key>\S+)(?: in (?P<db>\d+))?|drop (?P<drop>[A-Z]))$")
WORD = re.compile(r'"((?:\\.|[^"\\])*)"(?=\s|$)|([^"\s]\S*)|\s+')
ESCAPE = re.compile(r'\\(x[0-9a-fA-F]{2}|[nrt"\\])')
ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
PLACE = re.compile(r"\{(sha|script|ms|s)([:+-])(\w+)\}")
WILD = re.compile(r"\.\.\.|(?<![\w.])(-?\d+)\.\.(-?\d+)(?![\w.])")


@dataclasses.dataclass
class Step:
    """A line. `side` is H or R if only Holdfast or only Redis plays it; `who` is the connection."""
    number: int
    side: str
    kind: str
    who: str
    text: str


@dataclasses.dataclass
class Scenario:
    name: str
    number: int
    steps: list


class Transcript:
    """The scripts and scenarios of a file."""

    def __init__(self, path):
        self.path = path
        self.lines = path.read_text(encoding="ascii").splitlines()
        self.scripts, self.scenarios = {}, []
        at = 0
        while at < len(self.lines):
            at = self.read(at)
        if not all(scenario.steps for scenario in self.scenarios) or not self.scenarios:
            raise ValueError(f"{path}: a scenario without steps, or no scenario")

    def read(self, at):
        """Reads the line at `at`, or all lines of a script. Returns the position of the next line."""
        line = self.lines[at].strip()
        if line.startswith("script "):
            return self.read_script(line.removeprefix("script ").strip(), at + 1)
        if line.startswith("== "):
            self.scenarios.append(Scenario(line.removeprefix("== "), at + 1, []))
        elif line and not line.startswith("#"):
            self.scenarios[-1].steps.append(self.read_step(line, at + 1))
        return at + 1

    def read_script(self, name, begin):
        end = begin
        while end < len(self.lines) and self.lines[end].startswith(" "):
            end += 1
        if end == begin or name in self.scripts:
            raise ValueError(f"{self.path}:{begin}: the script {name} is empty, or defined twice")
        self.scripts[name] = textwrap.dedent("\n".join(self.lines[begin:end])).encode()
        return end

    def read_step(self, line, number):
        found = LINE.match(line)
        if not found:
            raise ValueError(f"{self.path}:{number}: not a step: {line}")
        if found["key"]:
            return Step(number, found["side"], "gone", found["db"] or "0", found["key"])
        if found["drop"]:
            return Step(number, found["side"], "drop", found["drop"], "")
        return Step(number, found["side"], found["kind"], found["who"], (found["text"] or "").strip())

    def sha(self, name):
        return hashlib.sha1(self.scripts[name]).hexdigest()

    def filled(self, text):
        """The text with the values of its braces: a script, its SHA1, a time from now."""
        def value(found):
            what, sign, rest = found.groups()
            if what in ("sha", "script"):
                return self.sha(rest) if what == "sha" else self.scripts[rest].decode()
            now = time.time() * (1000 if what == "ms" else 1)
            return str(int(now) + int(sign + rest))
        return PLACE.sub(value, text)

    def request(self, text):
        """The words of a line, as bytes."""
        words, at = [], 0
        while at < len(text):
            found = WORD.match(text, at)
            if not found:
                raise ValueError(f"{self.path}: quotes are not closed: {text}")
            if found[1] is not None:
                words.append(unescaped(found[1]))
            elif found[2]:
                words.append(self.filled(found[2]).encode("latin-1"))
            at = found.end()
        return tuple(words)

    def matches(self, expected, heard):
        return matches(self.filled(expected), heard)

    def named(self, text):
        """The text with {sha:name} in place of the SHA1s of scripts, for --rewrite."""
        for name in self.scripts:
            text = text.replace(self.sha(name), "{sha:" + name + "}")
        return text


def matches(expected, heard):
    """Whether a reply matches the expected text: `...` is any text, `5..9` any integer from 5 to 9."""
    pattern, limits, at = "", [], 0
    for wild in WILD.finditer(expected):
        pattern += re.escape(expected[at:wild.start()])
        pattern += "(?:.*)" if wild[0] == "..." else r"(-?\d+)"
        limits += [] if wild[0] == "..." else [(int(wild[1]), int(wild[2]))]
        at = wild.end()
    found = re.fullmatch(pattern + re.escape(expected[at:]), heard, re.DOTALL)
    return bool(found) and all(low <= int(n) <= high for n, (low, high) in zip(found.groups(), limits))


def unescaped(text):
    def byte(found):
        code = found[1]
        return chr(int(code[1:], 16)) if code[0] == "x" else ESCAPED[code]
    return ESCAPE.sub(byte, text).encode("latin-1")


def quoted(data):
    shown = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in data)
    for code, short in (("0d", "r"), ("0a", "n"), ("09", "t"), ("22", '"'), ("5c", "\\")):
        shown = shown.replace("\\x" + code, "\\" + short)
    return f'"{shown}"'


def shown(reply):
    """The text of a reply (a type and a value). Only replies with equal bytes have the same text."""
    kind, value = reply
    kind = kind.decode("latin-1")
    if value is None:
        return {"$": "nil", "*": "nil-array"}[kind]
    if kind == "%":
        pairs = zip(value[::2], value[1::2])
        return "{" + ", ".join(f"{shown(key)}: {shown(item)}" for key, item in pairs) + "}"
    if kind in "*~>":
        return kind.replace("*", "") + "[" + ", ".join(map(shown, value)) + "]"
    if kind in "$=":
        return quoted(value) if kind == "$" else value[:3].decode() + quoted(value[4:])
    if kind in "_#":
        return {"_": "null", "#t": "true", "#f": "false"}[kind + value.decode()]
    return ("" if kind == ":" else kind) + (str(value) if kind == ":" else value.decode("latin-1"))
