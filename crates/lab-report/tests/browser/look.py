#!/usr/bin/env python3
"""Opens a page in headless Chromium and says, as JSON, what a reader would see.

Usage: look.py PAGE DIRECTORY-FOR-SCREENSHOTS

At the width of a desk and of two phones; light, then dark; then on paper. Says on standard output,
for each width: with what the page opens, what is folded and whether a click opens it, and then, with
all of it open: tables with their texts, charts with the sizes of their pictures and the number of
their marks, console messages, requests that left the page, and how far the page is wider than the
window. Exit status 77: this machine has no browser to test with.
"""

import base64
import json
import os
import re
import sys
import time

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
except ImportError as error:
    print(f"no selenium ({error}): Debian package python3-selenium", file=sys.stderr)
    sys.exit(77)

BROWSER, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
WIDTHS = {"desk": 1280, "phone": 390, "small": 360}

OPENING = """
const parts = { answer: '.answer', doubts: '.doubts', picture: '.opening figure', table: '.opening .table' };
const found = Object.entries(parts).map(([name, where]) => [name, document.querySelector(where)])
  .filter(([name, node]) => node);
const follows = (a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1;
const folds = [...document.querySelectorAll('.part > details')];
const content = fold => fold.querySelector('summary').nextElementSibling;
return {
  first: found.sort((a, b) => follows(a[1], b[1])).map(([name]) => name),
  opening_ends: Math.max(0, ...found.map(([name, node]) => Math.round(node.getBoundingClientRect().bottom))),
  folds: folds.map(fold => ({
    id: content(fold).id, open: fold.open, shown: content(fold).checkVisibility(),
  })),
};
"""

CLICKED = """
const fold = document.querySelector('.part > details');
const content = fold.querySelector('summary').nextElementSibling;
return { open: fold.open, shown: content.checkVisibility() };
"""

# Whether what a link leads to is seen, after a click on it.
FOLLOWED = """
const place = document.querySelector(arguments[0].getAttribute('href'));
return [place.id, place.checkVisibility()];
"""

READ = """
const text = node => node.textContent.replace(/\\s+/g, ' ').trim();
const shown = node => { const box = node.getBoundingClientRect(); return [box.width, box.height]; };
// How far the first number of the first row lies beyond what is seen of a table; 0 of a folded one.
const hidden = table => {
  const first = table.querySelector('tbody tr:first-child .n .v');
  const beyond = first ? first.getBoundingClientRect().right - table.parentNode.getBoundingClientRect().right : 0;
  return Math.max(0, Math.round(beyond));
};
// Cells whose text is wider than they are, so that it lies over the next.
const spilt = table => [...table.querySelectorAll('th, td')].filter(cell => {
  const room = cell.getBoundingClientRect();
  const texts = cell.querySelector('.v') ? [...cell.querySelectorAll('.v, small')] : [cell];
  const range = document.createRange();
  return texts.some(one => {
    range.selectNodeContents(one);
    return [...range.getClientRects()].some(line => line.right > room.right + 1 || line.left < room.left - 1);
  });
}).map(text);
return {
  title: document.title,
  headings: [...document.querySelectorAll('h1, h2')].map(text),
  answer: [...document.querySelectorAll('.answer p')].map(text),
  scripts: document.scripts.length,
  images: document.images.length,
  tables: [...document.querySelectorAll('table')].map(table => ({
    id: table.id,
    hint: getComputedStyle(table.parentNode).backgroundImage,
    hidden: hidden(table),
    spilt: spilt(table),
    beyond: Math.max(0, table.scrollWidth - table.parentNode.clientWidth),
    head: [...table.tHead.rows[0].cells].map(text),
    rows: [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => ({
      text: text(cell.querySelector('.v')),
      detail: cell.querySelector('small') ? text(cell.querySelector('small')) : '',
      says: cell.querySelector('.sr') ? text(cell.querySelector('.sr')) : '',
      colour: getComputedStyle(cell).backgroundColor,
    }))),
  })),
  commands: [...document.querySelectorAll('#t-commands td:last-child .v')].map(node => node.textContent),
  commands_keep: [...new Set([...document.querySelectorAll('#t-commands td:last-child .v')]
    .map(node => getComputedStyle(node).whiteSpace))],
  charts: [...document.querySelectorAll('figure')].map(figure => {
    const svg = figure.querySelector('svg');
    return {
      id: figure.id,
      role: svg.getAttribute('role'),
      label: svg.getAttribute('aria-label'),
      box: shown(svg),
      smallest_text: Math.min(...[...svg.querySelectorAll('text')].map(one =>
        one.getAttribute('font-size') * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)),
      texts: [...svg.querySelectorAll('text')].map(text),
      tips: [...svg.querySelectorAll('* > title')].filter(one => one.parentNode !== svg).map(text),
      drawn: [...svg.querySelectorAll('rect, circle, polyline, polygon, line')]
        .filter(shape => shape.getBBox().width + shape.getBBox().height > 0).length,
      outside: [...svg.querySelectorAll('text')].filter(one => {
        const a = one.getBoundingClientRect(), b = svg.getBoundingClientRect();
        return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
      }).map(text),
    };
  }),
  overflow: document.documentElement.scrollWidth - window.innerWidth,
  requests: performance.getEntriesByType('resource').map(entry => entry.name)
    .filter(name => !name.startsWith('data:')),
  drawn_after_ms: performance.getEntriesByName('first-contentful-paint').map(e => e.startTime)[0],
  loaded_after_ms: performance.getEntriesByType('navigation')[0].loadEventEnd,
};
"""


# How far tables and charts lie beyond the sheet.
BEYOND = """
return [...document.querySelectorAll('table, svg')].map(one =>
  Math.round(one.getBoundingClientRect().right - document.querySelector('main').getBoundingClientRect().right))
  .filter(beyond => beyond > 0);
"""
# Pixels between the margins of a sheet of A4 that lies on its long side.
SHEET = 1032


def start():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--disable-gpu", "--disable-background-networking", "--disable-component-update"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(DRIVER), options=options)


def look(driver, page, name, width, screenshots):
    command = driver.execute_cdp_cmd
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    command("Emulation.setDeviceMetricsOverride", size)
    command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "light"}]})
    began = time.monotonic()
    driver.get("file://" + page)
    opening = driver.execute_script(OPENING)
    folded = driver.find_elements("css selector", ".part > details > summary")
    shoot(driver, page, name, width, screenshots, ["light", "dark"])
    if folded:
        folded[0].click()
        opening["clicked"] = driver.execute_script(CLICKED)
        folded[0].click()
    links = driver.find_elements("css selector", ".doubts a, nav a")
    opening["followed"] = [driver.execute_script(FOLLOWED, link, link.click()) for link in links[:9]]
    driver.execute_script("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    seen = {**opening, **driver.execute_script(READ)}
    seen["wall_ms"] = round((time.monotonic() - began) * 1000)
    seen["console"] = [entry["message"] for entry in driver.get_log("browser")]
    seen.update(shoot(driver, page, name + "-open", width, screenshots, ["dark", "light"]))
    return seen


def shoot(driver, page, name, width, screenshots, schemes):
    """The page as it is, and the colour of its ground, in each of the schemes; the last one stays."""
    command, grounds = driver.execute_cdp_cmd, {}
    for scheme in schemes:
        command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        path = os.path.join(screenshots, f"{os.path.basename(os.path.dirname(page))}-{name}-{scheme}.png")
        height = min(driver.execute_script("return document.documentElement.scrollHeight"), 16000)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = command("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
        ground = "return getComputedStyle(document.body).backgroundColor"
        grounds["ground_" + scheme] = driver.execute_script(ground)
    return grounds


def put_on_paper(driver, page):
    """The size of a sheet, and what does not fit on it."""
    command = driver.execute_cdp_cmd
    size = {"width": SHEET, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    command("Emulation.setDeviceMetricsOverride", size)
    command("Emulation.setEmulatedMedia", {"media": "print"})
    driver.get("file://" + page)
    beyond = driver.execute_script(BEYOND)
    pdf = base64.b64decode(command("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    sheet = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    return {"beyond": beyond, "sheet": [float(side) for side in sheet.groups()]}


def main():
    page, screenshots = os.path.abspath(sys.argv[1]), sys.argv[2]
    for program in [BROWSER, DRIVER]:
        if not os.path.exists(program):
            print(f"no {program}: Debian packages chromium, chromium-driver", file=sys.stderr)
            sys.exit(77)
    driver = start()
    try:
        seen = {name: look(driver, page, name, width, screenshots) for name, width in WIDTHS.items()}
        json.dump({"screen": seen, "paper": put_on_paper(driver, page)}, sys.stdout)
    finally:
        driver.quit()


main()
