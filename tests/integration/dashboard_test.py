#!/usr/bin/python3
"""The dashboard in headless Chromium: what the page shows is what the server says, its actions need the
right to them, and each state can be used by keyboard, by screen reader, and on narrow and wide screens. The
last line is "N passed, N failed". HOLDFAST_SERVER names the server."""
import functools
import json
import urllib.parse

from dashboard_rig import Browser, wait_for
from harness import TTL_MS, Server, equal, free_port, has, run_tests, test, until
from http_rig import HttpServer, basic
from selenium.webdriver.common.keys import Keys

SCRIPT = "<script>alert(1)</script>"
OPERATOR = ("operator", "on", ">secret", "~*", "+@all")
READER = ("reader", "on", ">secret", "~*", "+info", "+locks|list", "+locks|info", "+locks|top",
          "+locks|history")
browser = functools.cache(Browser)


def page_of(server, view="#/"):
    page = browser()
    page.size(1280, 900)
    page.open(server, view)
    return page


def lock_view(key, db=0):
    return f"#/lock/{db}/{urllib.parse.quote(key, safe='')}"


@test
def the_overview_shows_what_info_says(folder):
    with HttpServer(folder, "--maxclients", "500") as server:
        for i in range(3):
            server.lock(f"key:{i}")
        server.lock("pool", "p1", TTL_MS, "LIMIT", "2")
        server.lock("book", "r1", TTL_MS, "SHARED")
        waiting = wait_for(server, ("key:0", "bob"), ("key:0", "eve"), ("key:1", "bob2"))
        page = page_of(server)
        page.see("Ready", "#ready")
        for figure, wanted in (("locks", "5"), ("exclusive", "3"), ("shared", "1"), ("semaphore", "1"),
                               ("waiters", server.info("lock_waiters", "locks")), ("longest-queue", "2"),
                               ("grants", server.info("lock_grants", "locks")), ("max-clients", "500"),
                               ("clients", server.info("connected_clients", "clients"))):
            page.see(wanted, f"#figure-{figure}")
        page.see("key:0", "main table")
        equal(len(page.all("canvas")), 6)
        waiting.close()
        page.see("No client waits for a lock.")


@test
def percentiles_and_rates_come_from_the_waits_that_end(folder):
    with HttpServer(folder) as server:
        page = page_of(server)
        page.see("none", "#figure-p99")
        server.lock("a")
        waiting = wait_for(server, ("a", "bob"))
        until(lambda: "1" in page.text("#figure-waiters"))
        equal(server.ask("UNLOCK", "a", "alice"), 1)
        page.see("s", "#figure-p99")
        page.see("2", "#figure-grants")
        waiting.close()


@test
def a_search_finds_keys_by_text_and_by_pattern_in_each_database(folder):
    with HttpServer(folder) as server:
        for key in ("orders/1", "orders/2", "backup", SCRIPT):
            server.lock(key)
        equal(server.ask("SELECT", 3), "OK")
        server.lock("elsewhere")
        page = page_of(server, "#/locks")
        until(lambda: len(page.column("#locks", "Lock")) == 4)
        orders = ["orders/1", "orders/2"]
        for text, wanted in (("rders", orders), ("b*p", ["backup"]), ("<script", [SCRIPT])):
            search = page.one("#search")
            search.clear()
            search.send_keys(text, Keys.ENTER)
            until(lambda wanted=wanted: sorted(page.column("#locks", "Lock")) == wanted)
        search.clear()
        search.send_keys("nothing", Keys.ENTER)
        page.see("No lock matches.")
        page.open(server, "#/locks?db=3")
        until(lambda: page.column("#locks", "Lock") == ["elsewhere"])
        equal(page.column("#locks", "Holder"), ["alice"])


@test
def one_lock_shows_holder_queue_in_order_and_history(folder):
    with HttpServer(folder) as server:
        token = server.lock(SCRIPT, "alice", TTL_MS, "NOTE", "nightly <b>backup</b>")
        waiting = wait_for(server, (SCRIPT, "bob", "NOTE", "restore"), (SCRIPT, "carol"), (SCRIPT, "dave"))
        page = page_of(server, lock_view(SCRIPT))
        until(lambda: page.column("#queue", "Waiter") == ["bob", "carol", "dave"])
        equal(page.column("#queue", "Note")[0], "restore")
        equal(page.column("#holders", "Holder"), ["alice"])
        equal(page.column("#holders", "Note"), ["nightly <b>backup</b>"])
        equal(page.column("#holders", "Token"), [str(token)])
        equal(page.text("h1"), SCRIPT)
        page.see("alice acquired the lock", "#history")
        equal(server.ask("UNLOCK", SCRIPT, "alice"), 1)
        until(lambda: page.column("#queue", "Waiter") == ["carol", "dave"])
        page.see("bob acquired the lock", "#history")
        page.see("alice released the lock", "#history")
        waiting.close()


@test
def a_free_lock_and_a_key_of_bytes_are_shown(folder):
    with HttpServer(folder) as server:
        page = page_of(server, lock_view("free"))
        page.see("The lock is free.")
        equal(page.one("#break").is_enabled(), False)
        server.lock(b"\xff\x00bytes")
        page.open(server, "#/locks")
        until(lambda: len(page.column("#locks", "Lock")) == 1)
        page.click("#locks td a")
        until(lambda: page.column("#holders", "Holder") == ["alice"])
        has(page.text("h1"), "\\xff\\x00bytes")


@test
def break_asks_first_and_names_key_and_holder(folder):
    with HttpServer(folder) as server:
        server.lock("job", "alice", TTL_MS, "NOTE", "backup")
        page = page_of(server, lock_view("job"))
        until(lambda: page.one("#break").is_enabled())
        page.click("#break")
        for part in ("Break the lock job?", "alice", "backup"):
            page.see(part, "dialog")
        page.press(Keys.ESCAPE)
        until(lambda: not page.all("dialog"))
        equal(len(server.ask("LOCKS", "INFO", "job")) > 0, True)
        page.click("#break")
        page.click("#confirm")
        page.see("The lock is free.")
        page.see("an operator broke it", "#history")
        equal(server.ask("LOCKS", "INFO", "job"), None)


@test
def break_does_not_end_the_hold_of_another_holder_than_the_one_in_the_question(folder):
    with HttpServer(folder) as server:
        server.lock("job")
        page = page_of(server, lock_view("job"))
        until(lambda: page.one("#break").is_enabled())
        page.click("#break")
        page.see("alice", "dialog")
        server.ask("UNLOCK", "job", "alice")
        server.lock("job", "bob")
        page.click("#confirm")
        page.see("The holders have changed.", "dialog")
        equal(server.info("lock_broken", "locks"), "0")


@test
def a_login_is_necessary_where_the_server_has_a_password(folder):
    with HttpServer(folder) as server:
        for user in (OPERATOR, READER):
            equal(server.ask("ACL", "SETUSER", *user), "OK")
        server.lock("job")
        equal(server.ask("CONFIG", "SET", "requirepass", "pw"), "OK")
        page = page_of(server, lock_view("job"))
        page.click("#login-here")
        page.log_in("operator", "wrong")
        page.see("The user name or the password is wrong.", "#login")
        page.log_in("reader", "secret")
        page.see("reader", "#user")
        page.see("The user reader may not break locks", "#rights")
        equal(page.one("#break").is_enabled(), False)
        equal(page.fetch("/api/v1/locks/job/break", "POST", basic("reader", "secret")), 403)
        page.click("#session")  # log out
        page.click("#login-here")
        page.log_in("operator", "secret")
        until(lambda: page.all("#break") and page.one("#break").is_enabled())
        page.click("#break")
        page.click("#confirm")
        page.see("The lock is free.")


@test
def a_page_of_another_origin_breaks_no_lock(folder):
    with HttpServer(folder) as server, HttpServer(folder.parent / "other") as other:
        server.lock("job")
        page = page_of(other)
        page.see("Ready", "#ready")
        has(str(page.fetch(f"http://127.0.0.1:{server.port}/api/v1/locks/job/break", "POST")), "TypeError")
        url = f"http://127.0.0.1:{server.port}/api/v1/locks/job/break"
        page.driver.get("about:blank")  # without the policy of a dashboard
        page.driver.execute_async_script("const done = arguments[1];"
                                         "fetch(arguments[0], {method: 'POST', mode: 'no-cors'})"
                                         ".then(done, done);", url)
        equal(server.info("lock_broken", "locks"), "0")


@test
def changes_appear_without_a_reload(folder):
    with HttpServer(folder) as server:
        page = page_of(server, lock_view("job"))
        page.see("The lock is free.")
        server.lock("job", "zoe")
        until(lambda: page.column("#holders", "Holder") == ["zoe"])
        page.driver.get(f"{page.origin}/#/locks")
        until(lambda: page.column("#locks", "Holder") == ["zoe"])
        server.ask("UNLOCK", "job", "zoe")
        page.see("No locks are held.")


@test
def the_page_reconnects_after_a_restart(folder):
    port = free_port()
    options = ("--http-port", str(port))
    page = browser()
    with Server(folder, *options) as server:
        server.port = port
        page.size(1280, 900)
        page.open(server, lock_view("job"))
        server.lock("job")
        until(lambda: page.column("#holders", "Holder") == ["alice"])
    page.see("Connection lost since", "#banner")
    equal(page.axe(), [])
    with Server(folder, *options) as server:
        until(lambda: not page.one("#banner").is_displayed())
        server.lock("other")
        page.driver.get(f"http://127.0.0.1:{port}/#/locks")
        page.see("other", "#locks")


@test
def a_thousand_contended_keys_are_in_order_and_in_pages(folder):
    with HttpServer(folder) as server:
        for i in range(1000):
            server.lock(f"key:{i:04}")
        waiting = [wait_for(server, *((f"key:{i:04}", f"w{round_}") for i in range(1000 // round_)))
                   for round_ in (1, 2, 100)]
        page = page_of(server, "#/locks")
        page.see("1 to 25 of 1,000")
        until(lambda: page.column("#locks", "Waiters") == ["3"] * 10 + ["2"] * 15)
        page.script("[...document.querySelectorAll('.pages button')].at(-1).click()")
        page.see("26 to 50 of 1,000")
        page.driver.get(f"{page.origin}/#/locks?page=40")
        page.see("976 to 1,000 of 1,000")
        equal(len(page.column("#locks", "Lock")), 25)
        page.driver.get(f"{page.origin}/#/locks?q=key%3A0999")
        until(lambda: page.column("#locks", "Lock") == ["key:0999"])
        for client in waiting:
            client.close()


@test
def the_keyboard_is_enough(folder):
    with HttpServer(folder) as server:
        server.lock("job/1")
        server.lock("other")
        page = page_of(server)
        page.see("Ready", "#ready")
        page.tab_to("#skip")
        page.tab_to("nav a[data-view=locks]")
        page.press(Keys.ENTER)
        page.see("job/1", "#locks")
        equal(page.script("return document.activeElement.tagName"), "H1")
        page.tab_to("#search")
        page.press("job", Keys.ENTER)
        until(lambda: page.column("#locks", "Lock") == ["job/1"])
        page.tab_to("#locks td a")
        page.press(Keys.ENTER)
        until(lambda: page.all("#break") and page.one("#break").is_enabled())
        page.tab_to("#break")
        page.press(Keys.ENTER)
        page.see("Break the lock job/1?", "dialog")
        page.press(Keys.ESCAPE)
        until(lambda: page.script("return document.activeElement.id") == "break")
        page.press(Keys.ENTER)
        page.tab_to("#confirm")
        page.press(Keys.ENTER)
        page.see("The lock is free.")


@test
def each_view_fits_narrow_and_wide_screens_in_light_and_dark(folder):
    with HttpServer(folder) as server:
        long = "a-rather-long-name-of-a-lock/" * 8
        server.lock(long, "owner" * 20, TTL_MS, "NOTE", "n" * 256)
        waiting = wait_for(server, (long, "waiter" * 20, "NOTE", "m" * 256))
        page = page_of(server)
        for view, seen in (("#/", "#ready"), ("#/locks", "#locks td"), (lock_view(long), "#queue td")):
            page.open(server, view)
            page.see("e", seen) if seen == "#ready" else until(lambda seen=seen: page.all(seen))
            for width in (360, 1600):
                for dark in (False, True):
                    page.size(width, 900, dark)
                    until(lambda: page.overflow() == 0)  # the charts follow a change of the size
                    background = page.script("return getComputedStyle(document.body).backgroundColor")
                    equal(background, "rgb(18, 22, 28)" if dark else "rgb(244, 245, 247)")
                    equal((view, width, dark, page.axe()), (view, width, dark, []))
        waiting.close()


@test
def axe_finds_nothing_in_the_other_states(folder):
    with HttpServer(folder) as server:
        server.lock("job")
        page = page_of(server, "#/locks?q=nothing")
        page.see("No lock matches.")
        equal(page.axe(), [])
        page.open(server, lock_view("free"))
        page.see("The lock is free.")
        equal(page.axe(), [])
        page.open(server, lock_view("job"))
        until(lambda: page.one("#break").is_enabled())
        page.click("#break")
        equal(page.axe(), [])
        equal(server.ask("CONFIG", "SET", "requirepass", "pw"), "OK")
        page.open(server)
        page.see("Log in to see the locks")
        equal(page.axe(), [])
        page.click("#login-here")
        equal(page.axe(), [])


@test
def no_request_goes_to_another_host_and_no_policy_is_violated(folder):
    with HttpServer(folder) as server:
        page = browser()
        page.driver.get_log("performance")
        page.driver.get_log("browser")
        server.lock("job")
        page = page_of(server)
        page.see("Ready", "#ready")
        for view in ("#/locks", lock_view("job")):
            page.driver.get(f"{page.origin}/{view}")
            page.see("alice")
        messages = [json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")]
        sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        urls = [params["request"]["url"] for params in sent]
        equal([u for u in urls if not u.startswith((page.origin, "about:", "data:"))], [])
        has(" ".join(urls), "/api/v1/events", "/page/chart.js")
        equal([e["message"] for e in page.driver.get_log("browser")], [])


@test
def pictures_show_each_view(folder):
    with HttpServer(folder) as server:
        notes = ("NOTE", "deploy@web-1[4711] /usr/local/bin/migrate --all")
        server.lock("deploy/shop", "web-1", 600_000, *notes)
        for i, key in enumerate(("backup/db-1", "backup/db-2", "cron/report", "import/orders")):
            program = key.split("/", maxsplit=1)[0]
            server.lock(key, f"worker-{i}", 300_000, "NOTE", f"cron@db-{i}[{900 + i}] /usr/bin/{program}")
        waiting = wait_for(server, *(("deploy/shop", f"web-{i}", *notes) for i in range(2, 6)),
                           ("backup/db-1", "worker-9"))
        page = page_of(server)
        for name, view, seen, width, dark in (
                ("overview", "#/", "deploy/shop", 1280, False),
                ("locks", "#/locks", "backup/db-2", 1280, False),
                ("lock", lock_view("deploy/shop"), "acquired the lock", 1280, False),
                ("dark", "#/", "deploy/shop", 1280, True),
                ("narrow", lock_view("deploy/shop"), "acquired", 360, False)):
            page.size(width, 900, dark)
            page.driver.get(f"{page.origin}/{view}")
            page.see(seen, "main")
            equal(page.picture(name).stat().st_size > 5000, True)
        waiting.close()


if __name__ == "__main__":
    try:
        run_tests()
    finally:
        if browser.cache_info().currsize:
            browser().close()
