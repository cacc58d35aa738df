#!/usr/bin/python3
"""Loads a page of `punctual report` in headless Chromium and uses it.

    crates/page/tests/browser.py PAGE.html [--measure]

Exit code: 0 it works; 1 it does not. --measure prints what loading and a zoom step take; it judges
nothing. Needs Debian's chromium, chromium-driver and python3-selenium.
"""

import base64
import pathlib
import sys

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

# A hang becomes a failure; nothing judges how fast it is.
LIVENESS = 120
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def new_browser():
    options = webdriver.ChromeOptions()
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    browser.set_page_load_timeout(LIVENESS)
    return browser


def wait(browser, what, condition):
    WebDriverWait(browser, LIVENESS, 0.05).until(lambda _: condition(), f"never came: {what}")


def load(browser, page):
    browser.get(page.resolve().as_uri())
    root = browser.find_element(By.TAG_NAME, "html")
    wait(browser, "a page that is ready", lambda: root.get_attribute("data-ready"))


def visible(gantt):
    """The times that are shown, ns."""
    return float(gantt.get_attribute("data-from")), float(gantt.get_attribute("data-to"))


def pixels(browser):
    """How many pixels of the schedule are not empty, and how many are of the colour of misses."""
    return browser.execute_script(
        """
        const canvas = document.querySelector("#gantt-0 canvas");
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let drawn = 0, missed = 0;
        for (let i = 0; i < data.length; i += 4) {
          drawn += data[i + 3] > 0;
          missed += data[i] === 0xd5 && data[i + 1] === 0x5e && data[i + 2] === 0;
        }
        return [drawn, missed];
        """
    )


def show(browser, element):
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)


def the_keys_zoom_and_move(browser, gantt):
    whole = visible(gantt)
    browser.execute_script("arguments[0].focus({preventScroll: true})", gantt)
    press = lambda key: browser.switch_to.active_element.send_keys(key)
    length = lambda times: times[1] - times[0]
    press("+")
    half = length(whole) / 2
    wait(browser, "a zoom by half", lambda: abs(length(visible(gantt)) - half) < 2)
    begin = visible(gantt)[0]
    press(Keys.ARROW_RIGHT)
    wait(browser, "a later time", lambda: visible(gantt)[0] > begin)
    press(Keys.ARROW_LEFT)
    wait(browser, "the time before", lambda: abs(visible(gantt)[0] - begin) < 2)
    press("-")
    press("-")
    wait(browser, "the whole run, and no more", lambda: visible(gantt) == whole)
    press("+")
    press(Keys.HOME)
    wait(browser, "the whole run", lambda: visible(gantt) == whole)


def the_mouse_zooms_and_describes(browser, gantt):
    whole = visible(gantt)
    over = gantt.find_element(By.CSS_SELECTOR, ".u-over")
    output = gantt.find_element(By.TAG_NAME, "output")
    drag = ActionChains(browser).move_to_element(over).click_and_hold().move_by_offset(60, 0)
    drag.release().perform()
    zoomed = lambda: visible(gantt)[1] - visible(gantt)[0] < whole[1] / 4
    wait(browser, "a zoom by dragging", zoomed)
    ActionChains(browser).move_to_element(over).move_by_offset(5, 0).perform()
    wait(browser, "a description", lambda: " at " in output.text)
    ActionChains(browser).double_click(over).perform()
    wait(browser, "the whole run by a double click", lambda: visible(gantt) == whole)


def every_picture_is_drawn(browser):
    for figure in browser.find_elements(By.TAG_NAME, "figure"):
        show(browser, figure)
        drawn = lambda: figure.find_elements(By.CSS_SELECTOR, "canvas")
        wait(browser, "a picture", drawn)
    # On paper, too, and with all of it.
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF") and len(pdf) > 10_000, len(pdf)


def it_fits(browser, width, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    needed = lambda: browser.execute_script("return document.documentElement.scrollWidth")
    wait(browser, f"a page {width} pixels wide", lambda: needed() <= width)
    color = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    dark = max(int(part) for part in color[4:-1].split(",")) < 128
    assert dark == (scheme == "dark"), (scheme, color)


def nothing_went_wrong(browser):
    assert browser.title != "executed", "a name in a trace was executed"
    severe = [e for e in browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
    assert not severe, severe
    log = "".join(entry["message"] for entry in browser.get_log("performance"))
    assert '"url":"http' not in log, "the page asks the network"


def measure(browser, page):
    load(browser, page)
    root = browser.find_element(By.TAG_NAME, "html")
    print("interactive after", root.get_attribute("data-ready"), "ms")
    gantt = browser.find_element(By.ID, "gantt-0")
    show(browser, gantt)
    wait(browser, "the schedule", lambda: gantt.get_attribute("data-draw-ms"))
    browser.execute_script("arguments[0].focus({preventScroll: true})", gantt)
    for step in range(14):
        before = visible(gantt)
        browser.switch_to.active_element.send_keys("+")
        wait(browser, "a zoom step", lambda: visible(gantt) != before)
        print("zoom step", step + 1, "drawn in", gantt.get_attribute("data-draw-ms"), "ms")


def main():
    page = pathlib.Path(sys.argv[1])
    browser = new_browser()
    try:
        if sys.argv[2:] == ["--measure"]:
            measure(browser, page)
            return
        load(browser, page)
        gantt = browser.find_element(By.ID, "gantt-0")
        show(browser, gantt)
        wait(browser, "the schedule", lambda: gantt.get_attribute("data-draw-ms"))
        drawn, missed = pixels(browser)
        assert drawn > 1000 and missed > 10, (drawn, missed)
        the_keys_zoom_and_move(browser, gantt)
        the_mouse_zooms_and_describes(browser, gantt)
        every_picture_is_drawn(browser)
        it_fits(browser, 1280, "light")
        it_fits(browser, 360, "dark")
        nothing_went_wrong(browser)
        print("the page works")
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
