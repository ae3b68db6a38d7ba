"""Debian's Prometheus as a process that scrapes a server, with the rules of packaging/. PROMETHEUS names
the folder of Debian's package; `make build/prometheus` makes it."""
import json
import os
import pathlib
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from harness import LIMIT_S, end_with_parent, free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("PROMETHEUS", ROOT / "build/prometheus")) / "usr/bin"
RULES = ROOT / "packaging/prometheus/alerts.yml"


def get(url, **fields):
    with urllib.request.urlopen(urllib.request.Request(url, headers=fields), timeout=LIMIT_S) as reply:
        return reply.read().decode()


class Prometheus:
    """A process that scrapes the server, with the rules of packaging/."""

    def __init__(self, folder, server):
        self.port = free_port()
        config = {"global": {"scrape_interval": "200ms", "scrape_timeout": "200ms"},
                  "rule_files": [str(RULES)],
                  "scrape_configs": [{"job_name": "holdfast", "static_configs": [
                      {"targets": [f"127.0.0.1:{server.http_port}"]}]}]}
        folder.mkdir(parents=True)
        path = folder / "prometheus.yml"
        path.write_text(json.dumps(config), "utf-8")  # JSON is YAML
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [BINARIES / "prometheus", f"--config.file={path}", f"--storage.tsdb.path={folder / 'tsdb'}",
                 f"--web.listen-address=127.0.0.1:{self.port}"],
                stdout=log, stderr=log, preexec_fn=end_with_parent)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(LIMIT_S)

    def ask(self, path, **values):
        try:
            url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(values)}"
            return json.loads(get(url))["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it reads its data
                return None
            raise AssertionError(f"{values}: {error.read().decode()}") from error
        except urllib.error.URLError:  # it does not listen yet
            return None

    def value(self, expression):
        """The value of an expression with one result; None if there is none yet."""
        data = self.ask("query", query=expression)
        return float(data["result"][0]["value"][1]) if data and data["result"] else None
