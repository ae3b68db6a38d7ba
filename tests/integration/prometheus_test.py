#!/usr/bin/python3
"""Prometheus scrapes a server under load: its histograms agree with what clients measure. The alert rules
and the dashboard of packaging/ are valid, and use only metrics of a real scrape. The last line is
"N passed, N failed". HOLDFAST_SERVER names the server, PROMETHEUS the folder of Debian's package
prometheus."""
import bisect
import json
import re
import subprocess
import sys
import threading
import time

import prometheus_client.openmetrics.parser
import prometheus_client.parser
from harness import LIMIT_S, Client, Server, data_folder, equal, free_port, has, run_tests, test, until
from pages import Page
from prometheus_rig import BINARIES, ROOT, RULES, Prometheus, get

DASHBOARD = ROOT / "packaging/grafana/holdfast.json"
BOUNDS_S = [0.0001 * 2 ** n for n in range(21)]
NAME = re.compile(r"\b(?:holdfast|process)_[a-z_]+\b")
CLIENTS, LOCKS_EACH, HOLD_S = 6, 40, 0.004


def promtool(*words, given=None, status=0):
    done = subprocess.run([BINARIES / "promtool", *words], check=False, capture_output=True, text=True,
                          input=given, timeout=LIMIT_S, cwd=RULES.parent)
    if done.returncode != status:
        raise AssertionError(f"promtool {words}: {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def scrape(server, **fields):
    return get(f"http://127.0.0.1:{server.http_port}/metrics", **fields)


def samples_of(families):
    """The labels and value of each sample, by the sample's name."""
    found = {}
    for family in families:
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def contend(path, measured):
    """Acquires and releases one lock again and again, and appends the time that each grant took."""
    client = Client(path)
    owner = f"owner{threading.get_ident()}"
    for _ in range(LOCKS_EACH):
        began = time.monotonic()
        client.ask("LOCK", "contended", owner, 600_000, "WAIT", 600_000)
        measured.append(time.monotonic() - began)
        threading.Event().wait(HOLD_S)
        client.ask("UNLOCK", "contended", owner)
    client.close()


def load(server):
    """Contention, the death of a holder with a waiter behind it, and an error. Returns all waits in s."""
    measured = []
    began = time.monotonic()
    dead = Client(server.path)
    dead.ask("LOCK", "dead", "dies", 300)
    measured.append(time.monotonic() - began)
    dead.close()
    threads = [threading.Thread(target=contend, args=(server.path, measured)) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    server.ask("LOCK", "dead", "heir", 600_000, "WAIT", 600_000)
    measured.append(time.monotonic() - began)
    for thread in threads:
        thread.join(LIMIT_S)
    has(server.ask("INCR", "dead"), "ERR")
    server.ask("GET", "dead")
    return measured


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def bucket_of(seconds):
    return bisect.bisect_left(BOUNDS_S, seconds)


def expressions_of_dashboard():
    def all_panels(panels):
        for panel in panels:
            yield panel
            yield from all_panels(panel.get("panels", []))
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    return [target["expr"] for panel in all_panels(dashboard["panels"])
            for target in panel.get("targets", [])]


@test
def the_alert_rules_are_valid_and_pass_their_tests(_):
    has(promtool("check", "rules", "alerts.yml"), "SUCCESS")
    has(promtool("test", "rules", "alerts_test.yml"), "SUCCESS")


@test
def each_alert_has_a_severity_tests_and_a_section_about_what_to_do(_):
    rules = RULES.read_text("utf-8").split("- alert: ")[1:]
    tests = (RULES.parent / "alerts_test.yml").read_text("utf-8")
    anchors = Page(ROOT / "docs/operations.md").anchors
    for rule in rules:
        name = rule.split("\n", 1)[0]
        equal(re.search(r"severity: (\w+)", rule)[1] in ("critical", "warning", "info"), True)
        equal(re.search(r"runbook: docs/operations.md#(\S+)", rule)[1], name.lower())
        equal((name, name.lower() in anchors), (name, True))
        has(tests, f"name: {name} fires", f"name: {name} does not fire")


@test
def promtool_finds_nothing_wrong_with_the_metrics(server):
    load(server)
    equal(promtool("check", "metrics", given=scrape(server)), "")


@test
def the_parsers_of_the_prometheus_client_read_both_formats_alike(server):
    load(server)
    text = scrape(server)
    families = list(prometheus_client.parser.text_string_to_metric_families(text))
    open_text = scrape(server, Accept="application/openmetrics-text; version=1.0.0")
    has(open_text, "# EOF\n")
    open_families = list(prometheus_client.openmetrics.parser.text_string_to_metric_families(open_text))
    kinds = {family.name: family.type for family in families}
    equal({family.name: {"info": "gauge"}.get(family.type, family.type) for family in open_families},
          {name.removesuffix("_info") if name.endswith("_info") else name: kind
           for name, kind in kinds.items()})
    equal(set(kinds.values()) >= {"counter", "gauge", "histogram"}, True)
    equal([family.name for family in families + open_families if not family.documentation], [])
    samples, open_samples = samples_of(families), samples_of(open_families)
    equal(sorted(samples), sorted(open_samples))
    for name in ("holdfast_lock_grants_total", "holdfast_lock_wait_seconds_bucket", "holdfast_locks",
                 "holdfast_lock_ends_total", "holdfast_errors_total", "holdfast_build_info"):
        equal(open_samples[name], samples[name])
    equal(({"reason": "expired"}, 1.0) in samples["holdfast_lock_ends_total"], True)
    equal(sum(value for _, value in samples["holdfast_lock_grants_total"]), 2.0 + CLIENTS * LOCKS_EACH)


@test
def the_wait_quantile_is_within_one_bucket_of_what_clients_measure(server):
    with data_folder() as folder, Prometheus(folder, server) as prometheus:
        measured = load(server)
        grants = float(server.info("lock_grants", "locks"))
        equal(grants, float(len(measured)))
        until(lambda: prometheus.value("sum(holdfast_lock_grants_total)") == grants)
        p99 = prometheus.value("histogram_quantile(0.99, sum by (le) (holdfast_lock_wait_seconds_bucket))")
        mine = quantile(measured, 0.99)
        if abs(bucket_of(p99) - bucket_of(mine)) > 1:
            raise AssertionError(f"p99 of Prometheus {p99} s, of the clients {mine} s")
        equal(prometheus.value('holdfast_lock_ends_total{reason="expired"}'), 1.0)
        equal(prometheus.value('sum(holdfast_lock_wait_ends_total{reason="granted"})') > 0, True)
        equal(prometheus.value('sum(holdfast_locks{mode="exclusive"})'), 1.0)
        equal(prometheus.value("min(holdfast_ready)"), 1.0)


@test
def the_rules_and_the_dashboard_use_metrics_of_a_real_scrape(server):
    with data_folder() as folder, Prometheus(folder, server) as prometheus:
        load(server)
        until(lambda: prometheus.value("sum(holdfast_errors_total)"))
        there = set(prometheus.ask("label/__name__/values"))
        used = set(NAME.findall(RULES.read_text("utf-8")))
        for expression in expressions_of_dashboard():
            used |= set(NAME.findall(expression))
            for variable, value in (("$job", ".*"), ("$instance", ".*"), ("$__rate_interval", "1m")):
                expression = expression.replace(variable, value)
            equal(prometheus.ask("query", query=expression)["resultType"] in ("vector", "matrix"), True)
        equal(sorted(used - there), [])
        shown = " ".join(expressions_of_dashboard())
        families = {name for name in re.findall(r"^# TYPE (\S+)", scrape(server), re.MULTILINE)}
        equal(sorted(name for name in families if name not in shown), [])
        alerts = prometheus.ask("rules")["groups"][0]["rules"]
        equal([rule["name"] for rule in alerts if rule.get("lastError")], [])


class Scraped(Server):
    def __init__(self, folder):
        self.http_port = free_port()
        super().__init__(folder, "--port", "auto", "--http-port", str(self.http_port))


class Service:
    """A server with /metrics."""

    def __enter__(self):
        self.folder = data_folder()
        self.server = Scraped(self.folder.__enter__())
        return self.server

    def __exit__(self, *failure):
        self.server.__exit__(*failure)
        self.folder.__exit__(*failure)


if __name__ == "__main__":
    if not (BINARIES / "promtool").exists():
        sys.exit(f"{BINARIES} has no promtool: run make build/prometheus")
    run_tests(Service)
