"""What a server has in its databases, in a form for JSON, to compare two servers: values, holds, tokens,
leases, and the ends of all TTLs on the wall clock. Bytes are in latin-1."""
SLACK_MS = 5000  # between reading the clock and a TTL, on a busy machine
DATABASES = 16
NO_END = -1


def plain(value):
    """The reply with texts for bytes."""
    if isinstance(value, Exception):
        raise AssertionError(f"the server answered {value}")
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def pairs(reply):
    return dict(zip(reply[::2], reply[1::2]))


class Reader:
    """Reads the state of a server by requests on one connection."""

    def __init__(self, client):
        self.client = client

    def ask(self, *words):
        return plain(self.client.ask(*(w.encode("latin-1") if isinstance(w, str) else w for w in words)))

    def end_ms(self, ttl_ms):
        seconds, microseconds = self.ask("TIME")
        return int(seconds) * 1000 + int(microseconds) // 1000 + ttl_ms if ttl_ms >= 0 else NO_END

    def lock(self, key):
        """The holders of the key, and the end of its lock-delay; None without them."""
        reply = self.ask("LOCKS", "INFO", key)
        if reply is None:
            return None
        facts = pairs(reply)
        delay_end_ms = self.end_ms(facts["delay"]) if facts["delay"] else NO_END
        return {"mode": facts["mode"], "limit": facts["limit"], "delay_end_ms": delay_end_ms,
                "holders": [self.holder(pairs(holder)) for holder in facts["holders"]]}

    def holder(self, facts):
        kept = {name: facts[name] for name in ("owner", "token", "mode", "limit", "session")}
        return {**kept, "note": facts.get("note", ""), "end_ms": self.end_ms(facts["ttl"])}

    def key(self, key):
        if self.ask("TYPE", key) == "hash":
            return {"end_ms": self.end_ms(self.ask("PTTL", key)), "fields": pairs(self.ask("HGETALL", key))}
        return self.lock(key)

    def lease(self, name):
        facts = pairs(self.ask("LEASE", "INFO", name))
        end_ms = self.end_ms(facts["ttl"])
        return {"state": facts["state"], "token": facts["token"], "keys": facts["keys"], "end_ms": end_ms}

    def state(self, locks, leases):
        """All keys of all databases; the keys `locks` of database 0 also if no client holds them."""
        found = {}
        for database in range(DATABASES):
            self.ask("SELECT", database)
            keys = set(self.ask("KEYS", "*")) | (set(locks) if database == 0 else set())
            found[str(database)] = {key: self.key(key) for key in sorted(keys)}
        self.ask("SELECT", 0)
        return {"databases": found, "leases": {name: self.lease(name) for name in leases}}


def differences(got, wanted, where=""):
    """The places where `got` differs, as texts. Ends of TTLs may differ by SLACK_MS."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        names = sorted(set(got) | set(wanted))
        return [d for n in names for d in differences(got.get(n), wanted.get(n), f"{where}/{n[:80]}")]
    if isinstance(wanted, list) and isinstance(got, list) and len(got) == len(wanted):
        return [d for i, parts in enumerate(zip(got, wanted)) for d in differences(*parts, f"{where}/{i}")]
    if where.endswith("end_ms") and NO_END not in (got, wanted) and None not in (got, wanted):
        return [] if abs(got - wanted) <= SLACK_MS else [f"{where}: got {got}, wanted {wanted}"]
    return [] if got == wanted else [f"{where}: got {got!r:.200}, wanted {wanted!r:.200}"]
