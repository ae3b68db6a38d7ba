"""A headless Chromium that shows the dashboard of a real server, with axe-core beside it. There is one
browser for all tests. Each test has a server with a port of its own, so its tab has no login of another.
Names that end with .test are this machine in the browser."""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse

import npm
from harness import LIMIT_S, TTL_MS, Client, equal, run_tests, until
from http_rig import HttpServer
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HERE = pathlib.Path(__file__).resolve().parent / "browser"
BUILD = HERE.parents[2] / "build/browser"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--lang=en",
         "--hide-scrollbars", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-dev-shm-usage", "--host-resolver-rules=MAP *.test 127.0.0.1")
WAIT_MS = 600_000
UNITS_MS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds(text):
    """A duration as the page writes it: "350 ms", "5 min 3 s"."""
    parts = re.findall(r"([\d.]+) (ms|s|min|h|d)\b", text)
    equal((text, bool(parts)), (text, True))
    return sum(float(number) * UNITS_MS[unit] for number, unit in parts)


def lock_view(key, db=0):
    return f"#/lock/{db}/{urllib.parse.quote(key, safe='')}"


class TcpServer(HttpServer):
    """A server whose clients connect by TCP, so that the page shows the addresses that users see."""

    def __init__(self, folder, *options):
        super().__init__(folder, "--port", "auto", "--bind", "127.0.0.1", *options)
        self.close()
        ready = re.search(r"ready to accept connections on 127\.0\.0\.1:(\d+)", self.log_text())
        self.path = ("127.0.0.1", int(ready[1]))
        self.connected()


def wait_for(server, *requests):
    """A connection that waits in the queues of these LOCK requests (key, owner, more)."""
    client = Client(server.path)
    client.send(("HELLO", "3"), *(("LOCK", key, owner, TTL_MS, "WAIT", WAIT_MS, "ASYNC", *more)
                                  for key, owner, *more in requests))
    queued = 0
    while queued < len(requests):
        line = client.replies.readline()
        equal(line.startswith(b"-") or not line, False)
        queued += line == b"+QUEUED\r\n"
    return client


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="holdfast-browser-", ignore_cleanup_errors=True)
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in (*FLAGS, f"--user-data-dir={self.profile.name}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.size(1280, 900)

    def close(self):
        self.driver.quit()
        self.profile.cleanup()

    def size(self, width, height, dark=False):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def open(self, server, view="#/"):
        """Loads the page anew; a change of what follows # alone would not."""
        self.origin = f"http://127.0.0.1:{server.port}"
        self.driver.get("about:blank")
        self.driver.get(f"{self.origin}/{view}")

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def fetch(self, path, method="GET", login=""):
        """The status of a request that the page itself makes."""
        return self.driver.execute_async_script(
            "const [path, method, login, done] = arguments;"
            "fetch(path, {method, headers: login ? {Authorization: login} : {}})"
            ".then((r) => done(r.status), (e) => done(String(e)));", path, method, login)

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def one(self, css):
        return until(lambda: self.all(css))[0]

    def text(self, css="body"):
        """The visible text of the first match; empty if there is none at this moment."""
        try:
            return next((e.text for e in self.all(css)), "")
        except StaleElementReferenceException:
            return ""

    def see(self, text, css="body"):
        try:
            until(lambda: text in self.text(css))
        except AssertionError as late:
            raise AssertionError(f"{text!r} is not in {css}: {self.text(css)!r}") from late

    def shows(self, text, css):
        """Waits until the text of the first match is exactly this."""
        try:
            until(lambda: self.text(css) == text)
        except AssertionError as late:
            raise AssertionError(f"{css} is not {text!r}, but {self.text(css)!r}") from late

    def texts(self, css):
        """The texts of all matches."""
        return self.script("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)",
                           css)

    def delay_ms(self, css, text, change):
        """Runs change(), and returns how many ms later a match has exactly this text. The page's
        own clock tells, which is that of this machine."""
        self.script(
            "const [css, text] = arguments; delete window.seenAt;"
            "const look = () => {"
            "  const all = [...document.querySelectorAll(css)];"
            "  if (all.some((e) => e.textContent === text)) window.seenAt ??= Date.now(); };"
            "const observer = new MutationObserver(look);"
            "observer.observe(document.body, {subtree: true, childList: true, characterData: true});", css,
            text)
        began = time.time() * 1000
        change()
        return until(lambda: self.script("return window.seenAt")) - began

    def column(self, css, label):
        """The texts of a table's column."""
        return self.texts(f'{css} td[data-label="{label}"]')

    def click(self, css):
        self.one(css).click()

    def press(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def tab_to(self, css, limit=60):
        """Presses Tab until the focus is at the element."""
        for _ in range(limit):
            if self.script("return document.activeElement.matches(arguments[0])", css):
                return
            self.press(Keys.TAB)
        raise AssertionError(f"Tab does not reach {css}")

    def log_in(self, user, password):
        for name, value in (("user", user), ("password", password)):
            field = self.one(f"#field-{name}")
            field.clear()
            field.send_keys(value)
        self.click("#login button[type=submit]")

    def axe(self):
        """The violations that axe-core finds on the page as it is. The test is skipped without axe-core."""
        npm.install(HERE, BUILD)
        self.script((BUILD / "node_modules/axe-core/axe.min.js").read_text("utf-8"))
        return self.driver.execute_async_script(
            "const done = arguments[0]; axe.run().then((r) => done(r.violations.map("
            "(v) => `${v.id}: ${v.nodes.map((n) => n.html + n.failureSummary).join().slice(0, 400)}`)));")

    def overflow(self):
        """By how many pixels the page is wider than the window."""
        return self.script("return document.documentElement.scrollWidth - innerWidth")

    def picture(self, name):
        """To HOLDFAST_PICTURES if that is set, which `make pictures` does; else to a temporary folder."""
        folder = pathlib.Path(os.environ.get("HOLDFAST_PICTURES") or self.profile.name)
        path = folder / f"dashboard-{name}.png"
        equal(self.driver.get_screenshot_as_file(str(path)), True)
        return path


browser = functools.cache(Browser)


def page_of(server, view="#/"):
    page = browser()
    page.size(1280, 900)
    page.open(server, view)
    return page


def run_browser_tests():
    try:
        run_tests()
    finally:
        if browser.cache_info().currsize:
            browser().close()
