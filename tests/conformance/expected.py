"""What a reply is compared with: values, and what cannot be told in advance."""
import re

LATE_MS = 60_000  # how much later than it could a step may come


class Token:
    """A fencing token. The same name is the same number; names with the same letters are of one key, and of
    those each that is met first later is larger."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"Token({self.name})"

    def accepts(self, value, names):
        if not isinstance(value, int) or value <= 0:
            return False
        key = self.name.rstrip("0123456789")
        if self.name not in names:
            if any(value <= other for name, other in names.items() if name.rstrip("0123456789") == key):
                return False
            names[self.name] = value
        return names[self.name] == value


class Within:
    """A number of milliseconds that is left of `most`, or has gone since the case began."""

    def __init__(self, least, most):
        self.least, self.most = least, most

    def __repr__(self):
        return f"Within({self.least}, {self.most})"

    def accepts(self, value, _):
        return isinstance(value, int) and self.least <= value <= self.most


def left_of(ms):
    return Within(max(ms - LATE_MS, 1), ms)


AGO = Within(0, LATE_MS)


class Fields:
    """Names and values in turn, all of them in this order; a value of ... may be anything."""

    def __init__(self, **fields):
        self.fields = fields

    def __repr__(self):
        return f"Fields({self.fields})"

    def accepts(self, value, names):
        return (isinstance(value, list) and value[::2] == [name.encode() for name in self.fields] and
                all(matches(got, wanted, names) for got, wanted in zip(value[1::2], self.fields.values())))


class Error:
    """An error with this text."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return f"Error({self.text!r})"

    def accepts(self, value, _):
        return isinstance(value, RuntimeError) and str(value) == self.text


class Event:
    """A published text, of which {name} is a token."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return f"Event({self.text!r})"

    def accepts(self, value, names):
        shown = re.sub(r"\{(\w+)\}", lambda m: str(names.get(m[1], m[0])), self.text)
        return value == shown.encode()


def exclusive(owner, token, ttl, **more):
    return holder(owner, token, ttl, mode="exclusive", limit=1, **more)


def holder(owner, token, ttl, mode="shared", limit=0, note=""):
    return Fields(owner=owner, token=Token(token), mode=mode, limit=limit, ttl=ttl, held=AGO, renewed=AGO,
                  session=0, client=..., addr=..., name="", note=note)


def row(key, mode, holders, token, ttl, owner=..., note=""):
    """Of LOCKS LIST; without a token any number will do."""
    return Fields(key=key, mode=mode, holders=holders, waiters=0, token=Token(token) if token else ...,
                  ttl=ttl, owner=owner, note=note)


def info(key, mode, limit, *holders):
    return Fields(key=key, mode=mode, limit=limit, delay=0, holders=list(holders), waiters=[])


def matches(got, wanted, names):
    """Whether a reply is what was expected; `names` has the tokens met so far, and gets new ones."""
    if wanted is ...:
        return True
    if hasattr(wanted, "accepts"):
        return wanted.accepts(got, names)
    if isinstance(wanted, str):
        return got in (wanted, wanted.encode())
    if isinstance(wanted, list):
        return (isinstance(got, list) and len(got) == len(wanted) and
                all(matches(g, w, names) for g, w in zip(got, wanted)))
    return type(got) is type(wanted) and got == wanted
