"""The scripts of redis-scripts/ as a client calls them: which of them does a command, with which keys and
arguments. Knows no connection."""
import hashlib
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "redis-scripts"
LOCKS_SCRIPTS = {b"INFO": "locks_info", b"LIST": "locks_list", b"BREAK": "break", b"REVOKE": "revoke"}
LEASE_WORDS = ("CONFIRM", "CANCEL", "RENEW")


def text_of(name):
    """The script with the common head before it, as it is sent."""
    parts = ["common"] + (["lease_common"] if name.startswith("lease_") else []) + [name]
    return b"".join((FOLDER / f"{part}.lua").read_bytes() for part in parts)


def as_bytes(value):
    return value if isinstance(value, bytes) else str(value).encode()


def slot_tag(key):
    """What Redis Cluster hashes of a key."""
    begin = key.find(b"{")
    end = key.find(b"}", begin + 1)
    return key[begin + 1:end] if begin >= 0 and end > begin + 1 else key


def token_key(key):
    return b"holdfast:token:{" + slot_tag(key) + b"}" + key


def lease_key(first, lease):
    return b"holdfast:lease:{" + slot_tag(first) + b"}" + lease


class Scripts:
    """Turns a command of Holdfast into a call of a script. Knows the keys of the leases that it granted, as
    a client does that confirms one."""

    def __init__(self, unaware_of_holdfast=False):
        self.lease_keys = {}
        self.texts = {}
        self.unaware = unaware_of_holdfast

    def text(self, name):
        if name not in self.texts:
            text = text_of(name)
            if self.unaware:
                text = text.replace(b"redis.HOLDFAST_VERSION", b"nil")
            self.texts[name] = (text, hashlib.sha1(text).hexdigest())
        return self.texts[name]

    def call(self, *command):
        """Name of the script, keys and arguments; None: the command is no lock command."""
        words = [as_bytes(word) for word in command]
        name = words[0].decode().upper()
        if name in ("LOCK", "RENEW", "UNLOCK", "FENCE"):
            return self.on_lock(name.lower(), words[1:])
        if name == "LOCKS":
            name = LOCKS_SCRIPTS[words[1].upper()]
            return self.on_lock(name, words[2:])
        if name == "LEASE":
            return self.on_lease(words[1].decode().upper(), words[2:])
        return None

    @staticmethod
    def on_lock(name, words):
        return name, [words[0], token_key(words[0])] if words else [], words[1:]

    def on_lease(self, word, words):
        if word == "GRANT":
            keys = words[2::2]
            return "lease_grant", self.keys_of_lease(keys, words[0]), words[:2] + words[3::2]
        assert word in LEASE_WORDS
        keys = self.lease_keys.get(words[0], [b"no key"]) if words else []
        return f"lease_{word.lower()}", self.keys_of_lease(keys, words[0] if words else b""), words

    def granted(self, keys, arguments):
        self.lease_keys[arguments[0]] = keys[1::2]

    @staticmethod
    def keys_of_lease(keys, lease):
        if not keys:
            return []
        return [lease_key(keys[0], lease)] + [name for key in keys for name in (key, token_key(key))]
