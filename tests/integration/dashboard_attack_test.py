#!/usr/bin/python3
"""Attacks on the dashboard in headless Chromium: pages of other origins, with and without a login that the
browser keeps, and texts that would be markup or scripts if the page did not escape them. The last line is
"N passed, N failed". HOLDFAST_SERVER names the server."""
import contextlib
import http.server
import threading
import urllib.parse

from dashboard_rig import browser, lock_view, page_of, run_browser_tests, wait_for
from harness import TTL_MS, equal, has, test, until
from http_rig import HttpServer, basic
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.keys import Keys

OPERATOR = ("operator", "on", ">secret", "~*", "+@all")
# Each would do something in a page that does not escape it.
HOSTILE = [b"<script>alert(1)</script>", b'"><img src=x onerror=alert(1)>', b"'><svg/onload=alert(1)>",
           b"</title></td><iframe src=javascript:alert(1)>", b"\xff\xfe<b>\x00\r\n\x1b[2J",
           b"javascript:alert(1)", b"../../etc/passwd", b"%3Cscript%3Ealert(1)%3C/script%3E",
           "\u202e\u2066<i>evil".encode(), b"${alert(1)}{{alert(1)}}"]
OWN_ELEMENTS = 'script[src^="/page/"], img[src="/page/icon.svg"], link[href^="/page/"], meta'
FORM = """<!doctype html><title>A page of another origin</title>
<form method="post" enctype="text/plain" action="{url}"><input name="a" value="b"></form>"""


class OtherPage:
    """A web server on a port of its own. Each path is a page with a form that posts to `url`."""

    def __init__(self, url):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = FORM.format(url=url).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def fetch(page, url, options):
    """The type and status of the response that the page gets, or the error."""
    return page.driver.execute_async_script(
        "const [url, options, done] = arguments;"
        "fetch(url, options).then(async (r) => done(`${r.type} ${r.status} ${await r.text()}`),"
        "                         (e) => done(String(e)));", url, options)


def attack(page, server, origin):
    """A page of `origin` tries to break the lock job, and to read the locks."""
    own = f"http://127.0.0.1:{server.port}"
    url = f"{own}/api/v1/locks/job/break"
    rejected = server.log_text().count("rejected")
    page.driver.get(origin)
    equal(page.script("return location.origin"), origin)
    # The browser sends these; the page cannot read the answers.
    for number, options in enumerate(({"mode": "no-cors"}, {}), 1):
        has(fetch(page, url, {"method": "POST", "credentials": "include", **options}), "TypeError")
        equal(server.log_text().count("rejected"), rejected + number)
    # Before a request with this field the browser asks for permission, and gets none.
    has(fetch(page, url, {"method": "POST", "headers": {"Authorization": basic("operator", "secret")}}),
        "TypeError")
    for path in ("locks", "info", "events", "history"):
        for mode in ("cors", "no-cors"):
            options = {"mode": mode, "credentials": "include"}
            has(fetch(page, f"{own}/api/v1/{path}", options), "TypeError")
    # The browser shows the answer to a form, after it has sent its login.
    page.script("document.forms[0].submit()")
    until(lambda: page.script("return location.href") == url)
    page.see("pages", "body")
    has(page.text(), "rejected")
    equal(server.log_text().count("rejected"), rejected + 3)
    has(server.log_text(), "audit: http 127.0.0.1:", "POST \"/api/v1/locks/job/break\" rejected")
    equal((server.info("lock_broken", "locks"), server.ask("GET", "job")), ("0", b"alice"))


@test
def pages_of_other_origins_break_no_lock_and_read_nothing(folder):
    with HttpServer(folder) as server, \
            OtherPage(f"http://127.0.0.1:{server.port}/api/v1/locks/job/break") as other:
        server.lock("job")
        page = browser()
        for origin in (f"http://127.0.0.1:{other.port}", f"http://localhost:{other.port}",
                       f"http://evil.test:{other.port}"):
            attack(page, server, origin)


@test
def a_login_that_the_browser_keeps_is_of_no_use_to_another_origin(folder):
    with HttpServer(folder) as server, \
            OtherPage(f"http://127.0.0.1:{server.port}/api/v1/locks/job/break") as other:
        server.lock("job")
        equal(server.ask("ACL", "SETUSER", *OPERATOR), "OK")
        equal(server.ask("CONFIG", "SET", "requirepass", "pw"), "OK")
        page = browser()
        own = f"http://127.0.0.1:{server.port}"
        page.driver.get(f"http://operator:secret@127.0.0.1:{server.port}/metrics")
        page.see("holdfast_locks")
        page.driver.get(f"{own}/api/v1/info")  # the browser sends the login again by itself
        has(page.text(), '"user":"operator"')
        for origin in (f"http://127.0.0.1:{other.port}", f"http://evil.test:{other.port}"):
            attack(page, server, origin)


@test
def a_name_that_leads_to_the_server_is_not_its_origin(folder):
    """DNS rebinding: the page of evil.test comes from the address of the server itself."""
    with HttpServer(folder) as server:
        server.lock("job")
        page = browser()
        page.driver.get(f"http://evil.test:{server.port}/")
        page.see("The server rejects this page")
        page.see("without a password the server must be reached by its address or as localhost")
        equal(page.fetch("/api/v1/locks/job/break", "POST"), 403)
        equal(page.fetch("/api/v1/locks/job"), 403)
        equal(server.info("lock_broken", "locks"), "0")


def nothing_injected(page):
    """The page has no element but its own, runs nothing but its own, and shows no dialog of the browser."""
    with contextlib.suppress(NoAlertPresentException):
        raise AssertionError(f"a dialog: {page.driver.switch_to.alert.text}")
    injected = page.script(
        "const own = new Set(document.querySelectorAll(arguments[0]));"
        "const all = document.querySelectorAll('script, img, svg, iframe, object, embed, link, meta, base,"
        " b, i:not(.swatch), style');"
        "const handlers = [...document.querySelectorAll('*')].filter("
        "  (e) => [...e.attributes].some((a) => a.name.startsWith('on') || /^javascript:/i.test(a.value)));"
        "return [...[...all].filter((e) => !own.has(e)), ...handlers]"
        "  .map((e) => e.outerHTML.slice(0, 200))",
        OWN_ELEMENTS)
    equal(injected, [])
    policy = [e["message"] for e in page.driver.get_log("browser") if "Content Security" in e["message"]]
    equal(policy, [])


def shown(data):
    """How the server writes bytes for people; what is not visible is escaped."""
    out = ""
    for c in data.decode("utf-8", "surrogateescape"):
        visible = c.isprintable() and not 0xdc80 <= ord(c) <= 0xdcff
        out += c if visible else "".join(f"\\x{b:02x}" for b in c.encode("utf-8", "surrogateescape"))
    return out


@test
def hostile_keys_owners_and_notes_are_texts(folder):
    with HttpServer(folder) as server:
        for text in HOSTILE:
            equal(server.ask("LOCK", text, text, TTL_MS, "NOTE", text)[0], text)
        waiting = wait_for(server, *((text, b"w" + text, "NOTE", text) for text in HOSTILE))
        texts = [shown(text) for text in HOSTILE]
        page = page_of(server, "#/")
        until(lambda: len(page.column("main", "Lock")) == 5)
        equal(set(page.column("main", "Lock")) <= set(texts), True)
        nothing_injected(page)
        page.open(server, "#/locks")
        for label in ("Lock", "Holder", "Note"):
            until(lambda label=label: sorted(page.column("#locks", label)) == sorted(texts))
        nothing_injected(page)
        for data, text in zip(HOSTILE, texts):
            page.driver.get(f"{page.origin}/{lock_view(data)}")
            page.see("acquired the lock", "#history")
            until(lambda text=text: page.texts("h1") == [text])
            for view, label, wanted in (("#holders", "Holder", text), ("#holders", "Note", text),
                                        ("#queue", "Waiter", "w" + text), ("#queue", "Note", text)):
                until(lambda v=view, l=label, w=wanted: page.column(v, l) == [w])
            equal(page.texts("#history strong"), [text])
            until(lambda: page.one("#break").is_enabled())
            page.click("#break")
            equal(page.texts("dialog h2"), [f"Break the lock {text}?"])
            nothing_injected(page)
            page.press(Keys.ESCAPE)
        page.click("#break")
        page.click("#confirm")
        until(lambda: page.column("#holders", "Holder") == ["w" + texts[-1]])
        nothing_injected(page)
        waiting.close()


@test
def hostile_texts_in_the_address_and_in_the_search_are_texts(folder):
    with HttpServer(folder) as server:
        server.lock("job")
        page = page_of(server, "#/locks")
        for data in HOSTILE:
            text = data.decode("utf-8", "replace").replace("\0", "")
            quoted = urllib.parse.quote(data, safe="")
            for view in (f"#/locks?q={quoted}", f"#/locks?db={quoted}", f"#/locks?page={quoted}",
                         f"#/lock/0/{quoted}", f"#/lock/{quoted}/job", f"#/{quoted}"):
                page.open(server, view)
                until(lambda: page.all("h1") and not page.all(".notice.loading"))
                nothing_injected(page)
            page.open(server, f"?q={quoted}#/{text}")
            page.shows("Ready", "#ready")
            nothing_injected(page)
        for path in ("/api/v1/info?a=", "/api/v1/locks?cursor=", "/api/v1/locks/", "/api/v1/history?key=",
                     "/nothing/", "/page/"):
            for data in HOSTILE[:4]:  # the browser takes the reply as a page of its own
                page.driver.get(f"{page.origin}{path}{urllib.parse.quote(data, safe='')}")
                nothing_injected(page)
                equal(page.all("script, img, svg, iframe"), [])


@test
def a_key_of_64_kib_is_cut_and_hides_no_other(folder):
    with HttpServer(folder, "--max-owner-size", "65535") as server:
        server.lock("k" * 65_536, "o" * 65_535)
        server.lock("l" * 4_000, "alice")
        server.lock("small", "carol")
        waiting = wait_for(server, ("k" * 65_536, "bob"))
        page = page_of(server, "#/locks")
        until(lambda: len(page.column("#locks", "Lock")) == 3)
        rows = dict(zip(page.column("#locks", "Lock"), page.column("#locks", "Holder")))
        names = {"k" * 600 + "… (65,536 characters)": "The name is too long for this page: a request has "
                 "at most 4 KiB. Use holdfast info.", "l" * 600 + "… (4,000 characters)": "alice",
                 "small": "carol"}
        equal(rows, names)
        equal(sorted(page.column("#locks", "Waiters")), ["0", "0", "1"])
        equal((page.overflow(), page.axe()), (0, []))
        page.script("[...document.querySelectorAll('#locks td a')]"
                    ".find((a) => a.textContent[0] == 'k').click()")
        page.see("The name is too long for this page", "#holders")
        page.see("The name is too long for this page", "#history")
        equal((page.overflow(), page.axe()), (0, []))
        page.open(server, "#/")
        until(lambda: len(page.column("main", "Lock")) == 1)
        equal(page.overflow(), 0)
        server.lock("wide", "o" * 65_535)
        page.open(server, lock_view("wide"))
        until(lambda: page.column("#holders", "Holder") == ["o" * 600 + "… (65,535 characters)"])
        until(lambda: page.one("#break").is_enabled())
        page.click("#break")
        equal((page.overflow(), page.axe()), (0, []))
        waiting.close()


if __name__ == "__main__":
    run_browser_tests()
