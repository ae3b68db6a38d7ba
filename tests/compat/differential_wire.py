"""RESP on the wire: encodes requests; finds the ends of replies, parses them and prints them.

A reply is a tuple (type, value). The type is RESP's own byte, so that replies of different types are never
equal. Arrays, sets and pushes have a list of replies; a map has a list of alternating keys and values.
"""


class Id:
    """A placeholder in a request for the client id of another connection. Each server has its own ids."""

    def __init__(self, connection):
        self.connection = connection

    def __repr__(self):
        return f"<id of {self.connection}>"


def encode(command, ids=None):
    """The bytes of a command: a frame for a tuple; plain bytes are an inline line, and stay unchanged."""
    if isinstance(command, bytes):
        return command
    if ids is not None:
        command = [b"%d" % ids[arg.connection] if isinstance(arg, Id) else arg for arg in command]
    return b"*%d\r\n" % len(command) + b"".join([b"$%d\r\n%b\r\n" % (len(arg), arg) for arg in command])


def has_id(command):
    return isinstance(command, tuple) and any(isinstance(arg, Id) for arg in command)


def reply_end(data, at):
    """The end of the reply that begins at `at`; -1 if bytes of it are missing."""
    open_replies = 1
    while open_replies:
        line = data.find(b"\r\n", at)
        if line < 0:
            return -1
        kind = data[at]
        at, head = line + 2, data[at + 1:line]
        open_replies -= 1
        if kind in b"$=":
            if head != b"-1":
                at += int(head) + 2
                if at > len(data):
                    return -1
        elif kind in b"*~>":
            open_replies += max(int(head), 0)
        elif kind == b"%"[0]:
            open_replies += 2 * int(head)
    return at


def parse(data, at):
    """The reply at `at`, which must be complete, and its end."""
    line = data.index(b"\r\n", at)
    kind, head, at = data[at:at + 1], data[at + 1:line], line + 2
    if kind in (b"$", b"="):
        if head == b"-1":
            return (kind, None), at
        size = int(head)
        return (kind, data[at:at + size]), at + size + 2
    if kind in (b"*", b"~", b">", b"%"):
        if head == b"-1":
            return (kind, None), at
        items = []
        for _ in range(int(head) * (2 if kind == b"%" else 1)):
            item, at = parse(data, at)
            items.append(item)
        return (kind, items), at
    return (kind, int(head) if kind == b":" else head), at


def parse_all(data):
    """All complete replies of `data`, and the remaining bytes."""
    replies, at = [], 0
    try:
        while at < len(data):
            end = reply_end(data, at)
            if end < 0:
                break
            replies.append(parse(data, at)[0])
            at = end
    except ValueError:
        pass
    return replies, data[at:]


def text(data):
    """Bytes as a person can type them: plain words bare, all other bytes quoted."""
    if isinstance(data, Id):
        return repr(data)
    shown = repr(bytes(data))[2:-1]
    plain = shown and shown.isascii() and "\\" not in shown and not set(shown) & set(" '\"")
    return shown if plain else repr(bytes(data))[1:].replace("\\'", "'")


def command_text(command):
    if isinstance(command, bytes):
        return "inline " + text(command)
    return " ".join(text(arg) for arg in command)


def wire_text(command):
    """The bytes on the wire, for requests that are not valid frames."""
    data = repr(encode(command))[1:]
    return "bytes " + (data if len(data) < 300 else f"{data[:140]}...{data[-140:]}")


def reply_text(reply, limit=1500):
    kind, value = reply
    if value is None:
        shown = kind.decode() + "-1"
    elif isinstance(value, list):
        shown = kind.decode() + "[" + ", ".join(reply_text(item, limit) for item in value) + "]"
    elif kind in (b"$", b"="):
        shown = ("" if kind == b"$" else "=") + repr(value)[1:]
    else:
        shown = kind.decode("latin-1") + (str(value) if isinstance(value, int) else repr(value)[2:-1])
    return shown if len(shown) <= limit else shown[:limit] + "..."
