#!/usr/bin/env python3
"""Looks at a case on the page: case.py URL-WITH-TOKEN SCREENSHOTS.

Says `all of it` at its end. Exit status 77: this machine has no browser to test with.
"""

import sys
import time

import chromium  # first: it ends the test where selenium is missing
from selenium.webdriver.common.by import By

url, screenshots = sys.argv[1:]
driver = chromium.start()


def wait(what, condition):
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            driver.save_screenshot(f"{screenshots}/case-failed.png")
            raise AssertionError(f"waited in vain: {what}: {driver.find_element(By.TAG_NAME, 'body').text}")
        time.sleep(0.05)


def all_of(selector):
    return driver.find_elements(By.CSS_SELECTOR, selector)


try:
    for scheme in ["light", "dark"]:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                               {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        for name, width, height in [("wide", 1280, 1400), ("phone", 390, 2200)]:
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                   {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": name == "phone"})
            driver.get(url)
            driver.refresh()
            wait("the case is shown", lambda: all_of("#cases article .strip i"))
            for fold in all_of("#cases details:not([open]) > summary"):
                fold.click()
            assert len(all_of("#cases .strip i")) == 64, len(all_of("#cases .strip i"))
            text = driver.find_element(By.ID, "cases").text
            for part in ["Case home", "doubtful", "e2fsck finds no errors", "Computed without c.img"]:
                assert part in text, (part, text)
            assert all_of("#cases .strip .differ, #cases .strip .some"), "regions differ"
            assert not all_of("#cases button"), "nothing is ordered from here"
            overflow = driver.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
            assert overflow <= 0, f"{name}: {overflow} pixels beyond the window"
            driver.save_screenshot(f"{screenshots}/case-{name}-{scheme}.png")
    errors = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors, errors
    print("all of it")
finally:
    driver.quit()
