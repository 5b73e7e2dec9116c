#!/usr/bin/env python3
"""Uses the page as a person does: clicks.py URL-WITH-TOKEN BRAID FOLDER SCREENSHOTS.

Says `all of it` at its end. Exit status 77: this machine has no browser to test with.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

import chromium  # first: it ends the test where selenium is missing
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

url, braid, folder, screenshots = sys.argv[1:]
a, b = f"{folder}/a.img", f"{folder}/b.img"

driver = chromium.start()


def wait(what, condition):
    deadline = time.monotonic() + 60
    while True:
        try:
            found = condition()
            if found:
                return found
        except Exception as error:  # what is looked at may be drawn anew this moment
            last = error
        else:
            last = found
        if time.monotonic() > deadline:
            driver.save_screenshot(f"{screenshots}/failed.png")
            raise AssertionError(f"waited in vain: {what}: {last}; the page: {text('body')}")
        time.sleep(0.05)


def find(selector):
    return driver.find_element(By.CSS_SELECTOR, selector)


def text(selector):
    return find(selector).text


def click(selector):
    wait(f"a click on {selector}", lambda: find(selector).click() or True)


def button(label):
    return f'button[aria-label="{label}"]'


def unfold(volume):
    """Opens a volume's line, unless it is open."""
    summary = f'summary[aria-label="Details: {volume}"]'
    opened = "return document.querySelector(arguments[0]).parentNode.open"
    wait(f"{volume} opens", lambda: driver.execute_script(opened, summary) or find(summary).click())


def confirm(label):
    """Clicks a button of the dialog by its text."""
    def pressed():
        all = driver.find_elements(By.CSS_SELECTOR, "#ask button")
        found = [one for one in all if one.text == label]
        return found and (found[0].click() or True)
    wait(f"{label!r} in the dialog", pressed)


def run(*words):
    subprocess.run([braid, *words], check=True, stdout=subprocess.DEVNULL)


def look(width, scheme):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})


def look_at_charts(width, scheme):
    """Waits until the charts have their new width: the next event draws them."""
    look(width, scheme)
    widths = "return [...document.querySelectorAll('.charts svg')].map(one => one.viewBox.baseVal.width)"
    wait("charts of that width", lambda: set(driver.execute_script(widths)) == {min(440, width - 54)})


def picture(name, width=None):
    """The whole page; what is wider than the window is a mistake."""
    over = driver.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert over <= 0, f"{name} is {over} px wider than the window"
    height = driver.execute_script("return document.documentElement.scrollHeight")
    if width:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
    driver.save_screenshot(f"{screenshots}/{name}.png")
    if width:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})


try:
    # Without the token there is a place for it, and nothing else.
    look(1280, "light")
    address, token = url.split("#token=")
    driver.get(address)
    wait("the question for the token", lambda: "needs its token" in text("#verdict"))
    find("#token").send_keys(token, Keys.ENTER)
    wait("one sentence", lambda: text("h1") == "All is well: 2 volumes up.")
    # With it in the address, it is gone from there at once.
    driver.execute_script("sessionStorage.clear()")
    driver.get("about:blank")
    driver.get(url)
    wait("one sentence", lambda: text("h1") == "All is well: 2 volumes up.")
    assert "#" not in driver.current_url and token not in driver.page_source
    paint = driver.execute_script("return performance.getEntriesByName('first-contentful-paint')[0].startTime")
    loaded = driver.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    print(f"first paint after {paint:.0f} ms, loaded after {loaded:.0f} ms")
    elsewhere = driver.execute_script("return performance.getEntriesByType('resource').map(one => one.name)")
    assert all(one.startswith(address) for one in elsewhere), elsewhere
    look(360, "light")
    picture("folded-phone", 360)
    look(1280, "light")
    picture("folded", 1280)
    # A line each, as long as all is well.
    assert not find('article[data-key="home"] table').is_displayed()
    unfold("home")
    unfold("scratch")
    wait("a chart of several values", lambda: find('.charts path[d*="L"]'))
    for name, width, scheme in [("light", 1280, "light"), ("dark", 1280, "dark"), ("phone", 360, "light"), ("phone-dark", 360, "dark")]:
        look_at_charts(width, scheme)
        picture(name, width)
    ground = "return getComputedStyle(document.body).backgroundColor"
    dark = driver.execute_script(ground)
    look(1280, "light")
    assert driver.execute_script(ground) != dark

    # A member is taken out: first it is said what that does, and Escape does nothing.
    click(button(f"Take out {b}"))
    wait("what it would do", lambda: "as if it had failed" in text("#does"))
    assert "one more loss may lose data" in text("#loses")
    assert f"braid member fail home {b}" in text("#ask .command")
    picture("plan")
    look(360, "light")
    picture("plan-phone")
    look(1280, "light")
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait("the dialog closes", lambda: not find("#ask").get_attribute("open"))
    assert text("h1").startswith("All is well")
    click(button(f"Take out {b}"))
    confirm("Take out")
    wait("it was done", lambda: "is faulty now" in text("#ask"))
    confirm("Close")
    wait("the sentence says so", lambda: text("h1").startswith("home is degraded: "))
    wait("the member's state", lambda: "faulty" in text(f'tr[data-key="{b}"]'))
    look(1280, "light")
    picture("degraded", 1280)
    look(360, "dark")
    picture("degraded-phone", 360)
    look(1280, "light")

    # What is left is not offered to be taken out.
    assert not driver.find_elements(By.CSS_SELECTOR, button(f"Take out {a}"))
    click(button(f"Remove {b}"))
    confirm("Remove")
    wait("it was removed", lambda: "was removed" in text("#ask"))
    confirm("Close")
    # And in again, by a form.
    click(button("Add a member: home"))
    wait("the form", lambda: find("#f-path"))
    assert driver.switch_to.active_element.get_attribute("id") == "f-path"
    find("#f-path").send_keys(b)
    click("#f-again")
    find("#f-path").send_keys(Keys.ENTER)
    wait("what it would do", lambda: "as the member that it was" in text("#does"))
    confirm("Add it")
    wait("it was done", lambda: find("#ask .note.good"))
    confirm("Close")
    wait("all is well again", lambda: text("h1") == "All is well: 2 volumes up.")

    # An operation that was offered and is no longer possible is refused, with the reason.
    click(button(f"Take out {a}"))
    wait("what it would do", lambda: "as if it had failed" in text("#does"))
    run("member", "fail", "home", b)
    confirm("Take out")
    wait("the refusal", lambda: "holds the only copy" in text('#ask [role="alert"]'))
    picture("refused")
    confirm("Close")
    run("member", "remove", "home", b)
    run("member", "re-add", "home", b)
    wait("all is well again", lambda: text("h1") == "All is well: 2 volumes up.")
    # So is one that is possible and was decided by what is no longer so.
    click(button("Check copies: home"))
    wait("what it would do", lambda: "compares them" in text("#does"))
    run("cache", "attach", "home", "size=4M")
    confirm("Check copies")
    wait("the refusal", lambda: "has changed since" in text('#ask [role="alert"]'))
    confirm("Look again")
    wait("what it would do", lambda: "compares them" in text("#does"))
    confirm("Check copies")
    wait("it was done", lambda: "check" in text("#ask .note.good"))
    confirm("Close")
    # A wrong path is refused by the plan already.
    click(button("Add a member: home"))
    wait("the form", lambda: find("#f-path")).send_keys(f"{folder}/nowhere.img", Keys.ENTER)
    wait("the refusal", lambda: "nowhere.img" in text('#ask [role="alert"]'))
    assert find("#f-path").get_attribute("value") == f"{folder}/nowhere.img", "what was filled in stays"
    picture("refused-form")
    confirm("Cancel")

    # What is seldom used is folded, and has its plan too.
    click('summary[aria-label="More: home"]')
    click(button("Scrub for a time: home"))
    wait("the form", lambda: find("#f-hours"))
    picture("form")
    confirm("Show what it would do")
    wait("what it would do", lambda: "pauses when its time is over" in text("#does"))
    pauses = int(text("#ask .command").split("braid scrub --until=@")[1].split()[0]) / 1000 - time.time()
    assert 3.9 * 3600 < pauses <= 4 * 3600, pauses
    confirm("Begin, or go on")
    wait("it was done", lambda: "check" in text("#ask .note.good"))
    confirm("Close")
    click(button("Copies of home: home"))
    wait("the form", lambda: find("#f-count")).send_keys(Keys.ENTER)
    wait("the refusal", lambda: "has 2 roles already" in text('#ask [role="alert"]'))
    confirm("Cancel")
    click(button("Writes of the cache: home"))
    wait("the form", lambda: find("#f-mode option[value], #f-mode option"))
    find("#f-mode").send_keys("write-around")
    confirm("Show what it would do")
    wait("what it would do", lambda: "braid cache mode home write-around" in text("#ask .command"))
    confirm("Change it")
    wait("it was done", lambda: find("#ask .note.good"))
    confirm("Close")

    # By keys alone: to the button that brings a volume up, and through its dialog.
    driver.execute_script("arguments[0].focus()", find(button("Bring up media")))
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    wait("the form", lambda: find("#f-degraded"))
    keys = ActionChains(driver)
    keys.send_keys(Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB, Keys.ENTER).perform()
    wait("what it would do", lambda: "as its record says" in text("#does"))
    ActionChains(driver).send_keys(Keys.TAB, Keys.ENTER).perform()
    wait("media is up", lambda: text("h1") == "All is well: 3 volumes up.")
    confirm("Close")
    # Focus stays where it is while what is around it changes.
    unfold("media")
    driver.execute_script("arguments[0].focus()", find(button("Lock: media")))
    run("lock", "scratch")
    wait("scratch is locked", lambda: find(button("Unlock: scratch")))
    assert driver.switch_to.active_element.get_attribute("aria-label") == "Lock: media"

    # A pass is seen on its way.
    run("speed", "media", "--max", "64K")
    run("scrub", "media")
    wait("its progress", lambda: "KiB/s" in text('article[data-key="media"] .pass'))
    for name, width, scheme in [("pass", 1280, "light"), ("pass-phone", 360, "dark")]:
        look_at_charts(width, scheme)
        picture(name, width)
    look(1280, "light")
    run("scrub", "media", "--cancel")

    # One that does not answer is said to, and the others go on.
    pid = json.loads(subprocess.run([braid, "status", "scratch", "--json"], check=True, capture_output=True).stdout)["volumes"][0]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        wait("it is said", lambda: text("h1").startswith("scratch has not answered since "))
        run("lock", "media")
        wait("another is as it is", lambda: find(button("Unlock: media")))
        run("unlock", "media")
        assert not driver.find_elements(By.CSS_SELECTOR, button("Bring up scratch"))
        click(button("Bring down: scratch"))
        wait("the form", lambda: find("#f-force").is_selected())
        driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        for name, width, scheme in [("silent", 1280, "light"), ("silent-phone", 360, "dark")]:
            look_at_charts(width, scheme)
            picture(name, width)
        look(1280, "light")
    finally:
        os.kill(pid, signal.SIGCONT)
    wait("it is back", lambda: text("h1") == "All is well: 3 volumes up.")

    # Results without a page are drawn.
    click(button("Open two/results.sqlite"))
    frame = wait("a frame", lambda: find("#paper iframe"))
    driver.switch_to.frame(frame)
    wait("the page", lambda: "sticks" in text("h1"))
    driver.switch_to.default_content()
    picture("results")
    look(360, "light")
    wait("a narrow frame", lambda: find("#paper iframe").rect["width"] <= 360)
    picture("results-phone")
    look(1280, "light")
    click("#paper button")

    # The worst is told first, and what several volumes say is told once.
    told = driver.execute_async_script("""
        const [done] = arguments;
        const slow = { severity: 'warning', what: 'a is slow', next: null };
        const lost = { severity: 'critical', what: 'degraded: b is gone', next: '`x`' };
        const of = (name, ...problems) => ({ name, state: 'degraded', problems });
        import('/view.js').then(({ verdict }) => done([...verdict([of('u', slow), of('v', lost, slow)]).nodes[1].children].map((one) => one.textContent)));
    """)
    assert told == ["v is degraded: b is goneNext: x", "u, v: a is slow"], told

    # Latencies of both ways are added up: 90 below 16 us by one, 10 below 1 ms by the other.
    told = driver.execute_async_script("""
        const [done] = arguments;
        const io = (place, count) => ({ reads: { buckets: Array(place).fill(0).concat([count]) }, writes: { buckets: [] }, flushes: { buckets: [] } });
        import('/view.js').then(({ latency }) => done(latency({ exports: [{ io: io(4, 90) }, { io: io(10, 10) }] })));
    """)
    assert told == "reads p50 <16 µs, p99 <1.0 ms", told

    # A report is shown, and its script does not run.
    click(button("Open <b>one/report.html"))
    frame = wait("a frame", lambda: find("#paper iframe"))
    assert frame.get_attribute("sandbox") == "", "the frame itself permits nothing, too"
    driver.switch_to.frame(frame)
    wait("the report", lambda: text("#h") == "As it was measured")
    driver.switch_to.default_content()
    picture("report")
    click("#paper button")

    # A RAM disk is made larger, saved, and has what it had again.
    run("up", "ram(8M)", "--name", "memory", "--attach", "none")
    wait("its card", lambda: find('summary[aria-label="More: memory"]'))
    unfold("memory")
    click('summary[aria-label="More: memory"]')
    def order(label, field, value, plan, confirmed):
        click(button(f"{label}: memory"))
        wait("the form", lambda: find(f"#f-{field}")).send_keys(value, Keys.ENTER)
        wait("what it would do", lambda: plan in text("#ask"))
        confirm(confirmed)
    order("Resize", "size", "16", "braid resize memory 16777216", "Resize it")
    wait("it was done", lambda: find("#ask .note.good"))
    confirm("Close")
    wait("its size", lambda: text('article[data-key="memory"] .size') == "16.0 MiB")
    saved = f"{folder}/saved.lz4"
    order("Save", "file", saved, f"braid save memory {saved}", "Save it")
    wait("it was done", lambda: find("#ask .note.good") and os.path.exists(saved))
    confirm("Close")
    click(button("Restore: memory"))
    wait("the form", lambda: find("#f-file")).send_keys(f"{folder}/nowhere.lz4", Keys.ENTER)
    wait("the refusal", lambda: "nowhere.lz4" in text('#ask [role="alert"]'))
    confirm("Cancel")
    order("Restore", "file", saved, f"braid restore memory {saved}", "Overwrite it")
    wait("it was done", lambda: find("#ask .note.good"))
    confirm("Close")
    # An array is created: what its members carry is refused first, and it is down then.
    for members, bitmap in [([a, f"{folder}/f.img"], None), ([f"{folder}/f.img", f"{folder}/g.img"], "internal")]:
        click("#more button:nth-of-type(2)")
        wait("the form", lambda: find("#f-name")).send_keys("made")
        find("#f-members").send_keys("\n".join(members))
        if bitmap:
            find("#f-bitmap").send_keys(bitmap)
        picture("create")
        confirm("Show what it would do")
        if not bitmap:
            wait("the refusal", lambda: a in text('#ask [role="alert"]'))
            assert find("#f-members").get_attribute("value") == "\n".join(members), "the form is kept"
            picture("create-refused")
            confirm("Cancel")
            continue
        wait("what it would do", lambda: "--bitmap" in text("#ask .command"))
        confirm("Create it")
        wait("it was done", lambda: find("#ask .note.good"))
        confirm("Close")
    wait("its card", lambda: find(button("Bring up made")))

    unfold("scratch")
    click(button("Bring down: scratch"))
    wait("the form", lambda: find("#f-force")).send_keys(Keys.ENTER)
    wait("what is lost", lambda: "Its content is lost" in text("#loses"))
    confirm("Bring down")
    wait("it is down", lambda: "Bring up" in text('article[data-key="scratch"]'))
    confirm("Close")
    # What is down may be called otherwise.
    run("down", "media")
    click(button("Rename: media"))
    wait("the form", lambda: find("#f-to")).send_keys("films", Keys.ENTER)
    wait("what it would do", lambda: "Nothing is written to its members" in text("#does"))
    confirm("Rename it")
    wait("it was done", lambda: "is called films" in text("#ask .note.good"))
    confirm("Close")
    wait("its card", lambda: find(button("Bring up films")))
    said = [one for one in driver.get_log("browser") if not re.search("status of (4|502)", one["message"]) and "Blocked script execution" not in one["message"]]
    assert not said, said
    print("all of it")
finally:
    driver.quit()
