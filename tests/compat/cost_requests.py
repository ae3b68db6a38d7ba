"""The requests of cost_test.py: each command of the table with small arguments, made from the arguments
that COMMAND DOCS shows."""
import dataclasses
import hashlib
import re
import zlib

from cost_values import BYTES, MEDIUM, SMALL, key_of

SCRIPT = "return redis.call('EXISTS', KEYS[1])"
LIBRARY = ("#!lua name={0}\nredis.register_function{{function_name='{0}', "
           "callback=function() return 1 end, flags={{'no-writes'}}}}")
# The places of a range or an element: a few elements at the front, in the middle, at the end; many elements
# in the middle, or an element that is not there.
PLACES = ("front", "middle", "end", "many")
FEW = 10
MANY = 20           # many: the number of elements, divided by this
FAR_FUTURE_S = 4_102_444_800
# Arguments that say where, so that a request has four forms.
PLACED = {"start", "stop", "min", "max", "count", "index", "offset", "end", "rank", "element", "member",
          "field", "pivot", "len", "num-matches", "owner", "limit", "cursor", "score", "weight", "pattern"}
# Ranges of scores that many members share, for each place.
SCORE_RANGES = {"zset-same": (("(0", 1), ("-inf", "(0"), (0, "inf"), (0, 0)),
                "zset-inf": (("-inf", "-inf"), (0, "(inf"), ("(-inf", 5), ("(-inf", "inf"))}


@dataclasses.dataclass(frozen=True)
class Command:
    name: str          # with its container: "locks|list"
    group: str
    complexity: str
    arguments: tuple

    @property
    def is_constant(self):
        """Whether the page says that the size of a value does not matter. In "O(N) where N is the number of
        keys" N is that of the request."""
        of_values = ("cardinality|nested|composing|sizes? of the|smallest|elements in all|all the sets"
                     "|length of the|to traverse|from HEAD|elements in the list|holders|of the lease"
                     "|kept events|N keys")
        if self.complexity.startswith(("O(1);", "O(1) a call", "O(log(N)")):
            return True
        return not self.complexity.startswith("Depends") and not re.search(of_values, self.complexity)

    @property
    def is_lasting(self):
        """Whether it changes the connection: its protocol, channels, waits."""
        return self.group in ("connection", "lock", "pubsub", "transactions")

    @property
    def has_key(self):
        return any(True for _ in names_of(self.arguments, {"key", "source", "src"}))


@dataclasses.dataclass(frozen=True)
class Form:
    """A request without its values: its words are texts, and arguments for which Words has a text."""
    command: Command
    words: tuple
    place: str = "front"
    is_first: bool = True  # without an option

    @property
    def label(self):
        words = [word if isinstance(word, str) else word["name"] for word in self.words]
        return " ".join(words) + (f" ({self.place})" if self.is_placed else "")

    @property
    def is_placed(self):
        return any(not isinstance(word, str) and word["name"] in PLACED for word in self.words)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def as_map(flat):
    return dict(zip(map(text, flat[::2]), flat[1::2]))


def argument_of(flat):
    found = {name: text(value) for name, value in as_map(flat).items()}
    found["flags"] = [text(flag) for flag in found.get("flags", [])]
    found["arguments"] = tuple(map(argument_of, found.get("arguments", [])))
    return found


def commands_of(docs):
    """The commands that COMMAND DOCS lists, without their containers."""
    for name, doc in as_map(docs).items():
        fields = as_map(doc)
        if "subcommands" in fields:
            yield from commands_of(fields["subcommands"])
        else:
            yield Command(name, text(fields["group"]), text(fields["complexity"]),
                          tuple(map(argument_of, fields.get("arguments", []))))


def names_of(arguments, wanted):
    for argument in arguments:
        if argument["name"] in wanted:
            yield argument["name"]
        yield from names_of(argument["arguments"], wanted)


def alternatives(argument):
    """The ways to write an argument that is present: tuples of words."""
    before = (argument["token"],) if "token" in argument else ()
    if argument["type"] == "pure-token":
        return [before]
    if argument["type"] == "oneof":
        return [before + words for one in argument["arguments"] for words in alternatives(one)]
    if argument["type"] == "block":
        ways = [before + words for part in sequences(argument["arguments"]) for words in part]
    elif argument["type"] == "key" and "multiple" in argument["flags"]:
        return [(argument,) * 2, (argument,), (argument, {**argument, "name": "other"})]
    elif argument["name"] == "weight":
        return [before + (argument,)]  # stands for as many weights as keys
    else:
        ways = [before + (argument,)]
    return ways


def sequences(arguments):
    """The ways to write arguments one after the other: without options, and with each option alone. Each
    alternative of an argument that must be present appears with the first ones of the others. The ways
    without options are first."""
    optional = [argument for argument in arguments if "optional" in argument["flags"]]
    ways = [[] if argument in optional else alternatives(argument) for argument in arguments]

    def joined(index, chosen):
        parts = [chosen if i == index else way[0] if way else () for i, way in enumerate(ways)]
        return tuple(word for part in parts for word in part)

    def with_each(index, skip):
        return [joined(index, words) for words in alternatives(arguments[index])[skip:]]
    needed = [i for i, argument in enumerate(arguments) if argument not in optional]
    first = [joined(-1, ())] + [words for i in needed for words in with_each(i, 1)]
    return first, [words for i, one in enumerate(arguments) if one in optional for words in with_each(i, 0)]


def forms_of(command):
    """The forms of a command's requests."""
    for is_first, part in zip((True, False), sequences(command.arguments)):
        for words in part:
            form = Form(command, words, is_first=is_first)
            for place in PLACES if form.is_placed else PLACES[:1]:
                yield dataclasses.replace(form, place=place)


class Words:
    """The texts of the words of one request: on a value of this kind and size. Each try has another place,
    so that elements that an earlier try removed do not matter."""

    def __init__(self, form, kind, size, number, attempt, payloads):
        self.form, self.kind, self.size, self.number = form, kind, size, number
        self.payloads = payloads
        self.many = max(number // MANY, 1)
        part = zlib.crc32(form.label.encode()) % 1000 / 1000  # other commands look elsewhere
        self.middle = int(number * (0.2 + 0.5 * part)) + attempt * self.many
        if self.middle > number * 0.9:
            self.middle = number // 2
        names = [word["name"] for word in form.words if not isinstance(word, str)]
        self.keys, self.fields = names.count("key") + names.count("other"), names.count("field")
        name = form.command.name
        self.is_lex = "lex" in name or "BYLEX" in form.words
        self.is_by_score = "byscore" in name or name == "zcount" or "BYSCORE" in form.words

    def request(self):
        words = [*self.form.command.name.split("|")]
        for word in self.form.words:
            if isinstance(word, str):
                words.append(word)
            elif word["name"] == "weight":
                words += [self.at(2, "inf", "0.5", "-inf")] * self.keys
            else:
                words.append(self.text_of(word["name"]))
        return words

    def at(self, front, middle, end, many):
        return dict(zip(PLACES, (front, middle, end, many)))[self.form.place]

    def element(self):
        return self.at("m0000000", f"m{self.middle:07}", f"m{max(self.number - 1, 0):07}", "missing")

    def bound(self, last):
        """An end of a range: an index, a score or a member."""
        scale = BYTES if self.kind.type == "string" else 1
        first = self.at(0, self.middle, self.number - FEW, self.middle)
        index = first + (self.at(FEW, FEW, FEW, self.many) - 1 if last else 0)
        if self.is_lex:
            return f"[m{index:07}"
        if not self.is_by_score:
            return index * scale
        if self.kind.name in SCORE_RANGES:
            return SCORE_RANGES[self.kind.name][PLACES.index(self.form.place)][last]
        return index

    def text_of(self, name):
        maker = getattr(self, "of_" + re.sub("[^a-z]", "_", name.replace("1", "")), None)
        if maker is not None:
            return maker()
        if name in NAMED:
            return NAMED[name]
        raise KeyError(f"{self.form.command.name}: no text for the argument {name}")

    def of_key(self):
        return key_of(self.kind, self.size)

    of_source = of_src = of_key

    def of_other(self):
        return key_of(self.kind, MEDIUM if self.size > MEDIUM and not self.kind.own else SMALL)

    def of_start(self):
        return self.bound(False)

    def of_stop(self):
        return self.bound(True)

    of_min, of_max, of_end = of_start, of_stop, of_stop

    def of_element(self):
        return self.element()

    of_member = of_field = of_pivot = of_element

    def of_owner(self):
        return "owner" if self.form.command.name == "locks|owned" else self.element()

    def of_id(self):
        return "new" if self.form.command.name == "lease|grant" else "lease"

    def of_index(self):
        if self.form.command.name == "select":
            return 0
        return self.at(0, self.middle, -1, -self.middle)

    def of_offset(self):
        return self.at(0, self.middle, max(self.number - FEW, 0), 0) * (
            BYTES if self.kind.type == "string" else 1)

    def of_count(self):
        if self.form.command.name == "lrem":
            return self.at(1, 0, -1, 0)
        return self.at(1, FEW, FEW if "POP" in self.form.command.name else -FEW, self.many)

    def of_score(self):
        return self.at("5", "inf", "-inf", "0.5")

    def of_rank(self):
        return self.at(1, 2, -1, FEW)

    def of_numkeys(self):
        return self.keys

    def of_numfields(self):
        return self.fields

    def of_limit(self):
        return self.at(FEW, 3, 0, self.many)

    def of_cursor(self):
        return self.at(0, 2**40, 2**47, 0)

    def of_pattern(self):
        return self.at("*", "m*1", "*0*0*0*0*0*0*0*0*x", "nothing")

    def of_serialized_value(self):
        return self.payloads[self.form.command.group]

    def of_username(self):
        return "somebody" if self.form.command.name in ("acl|deluser", "acl|setuser") else "default"

    def of_milliseconds(self):
        return 1 if self.form.command.name == "lock" else 10**8

    def of_type(self):
        return self.kind.type


# The texts of all other arguments.
NAMED = {
    "address": "127.0.0.1:1", "arg": "k", "bits": 64, "category": "read", "channel": "channel",
    "client-id": 999999, "clientname": "name", "command": "get", "command-name": "get",
    "comparison-digest": "0123456789abcdef", "comparison-value": "other", "connection-name": "name",
    "decrement": 1, "destination": "to", "destination-db": 0, "dst": "to", "event": "command",
    "frequency": 1, "function": "lib", "function-code": LIBRARY.format("other"), "hint": 1, "holds": 10,
    "increment": 1, "len": 1000, "libname": "name", "library-name": "other", "library-name-pattern": "*",
    "libver": "1", "max-burst": 10, "message": "text", "module-name": "none",
    "newkey": "to", "num-matches": 0, "parameter": "slowlog-max-len", "password": "wrong", "period": 60,
    "prefix": "p", "protover": 3, "quantity": 1, "rule": "on", "script": SCRIPT, "seconds": 100_000,
    "section": "memory", "sha1": hashlib.sha1(SCRIPT.encode()).hexdigest(), "shardchannel": "channel",
    "text": "text", "time": 1, "timeout": 0.001, "token": 1, "ttl": 10**8, "wait": 1, "waiters": 1,
    "yes/no": "yes",
    "unix-time-milliseconds": FAR_FUTURE_S * 1000, "unix-time-seconds": FAR_FUTURE_S, "value": "128",
}
