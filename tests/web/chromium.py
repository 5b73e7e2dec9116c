"""Chromium for tests of the page. Without it, or selenium, the test ends with status 77: nothing to test with."""

import sys

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
except ImportError as error:
    print(f"no selenium ({error}): Debian package python3-selenium", file=sys.stderr)
    sys.exit(77)


def start():
    """Starts the browser; its console can be read by `get_log("browser")`."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-gpu",
                 "--disable-background-networking", "--disable-component-update"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
