"""What a reader of a page sees, asked of the browser: contrast, keyboard, folds, what is drawn."""

from typing import Any

from .browser import Browser

# Outside of charts, whose parts lie over each other.
TOO_WIDE = """[...document.querySelectorAll("body *:not(thead, thead *, .scroll *, .chart *)")]
    .filter((part) => part.getBoundingClientRect().right > innerWidth + 1)
    .map((part) => part.outerHTML.slice(0, 80))"""
UNDRAWN = """[...document.querySelectorAll(".chart:not(:empty)")]
    .filter((place) => !place.querySelector("rect:not(.step), polyline, polygon, circle, path"))
    .filter((place) => !place.textContent.includes("No whole step"))
    .map((place) => place.getAttribute("aria-label"))"""
UNREADABLE = """[...document.querySelectorAll(".chart text")]
    .filter((part) => /undefined|nan|inf/.test(part.textContent))
    .map((part) => part.textContent)"""
# Contrast by WCAG 2.2, 1.4.3: texts of this size need 4.5. Cells of heat maps lie under texts.
PALE = """(() => {
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (rgb) => rgb.slice(0, 3).map((part) => part / 255)
        .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, n) => sum + part * [0.2126, 0.7152, 0.0722][n], 0);
    const page = getComputedStyle(document.body).backgroundColor;
    const paper = (part) => {
        const colour = parts(getComputedStyle(part).backgroundColor);
        if (colour[3] !== 0) return colour;
        return part.parentElement ? paper(part.parentElement) : parts(page);
    };
    const cell = (text) => {
        const box = text.previousElementSibling, under = paper(text);
        if (!box || !box.matches("rect.bad")) return under;
        const style = getComputedStyle(box), share = Number(style.fillOpacity);
        return parts(style.fill).map((part, n) => share * part + (1 - share) * under[n]);
    };
    const contrast = (one, other) => {
        const both = [light(one), light(other)];
        return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
    };
    const ofText = (part) => contrast(parts(getComputedStyle(part).color), paper(part));
    const ofChart = (part) => contrast(parts(getComputedStyle(part).fill), cell(part));
    const texts = [...document.querySelectorAll("body *:not(script, .chart *)")]
        .filter((part) => [...part.childNodes].some((node) => node.nodeType === 3))
        .filter((part) => ofText(part) < 4.5);
    const charts = [...document.querySelectorAll(".chart text")]
        .filter((part) => ofChart(part) < 4.5);
    return [...texts, ...charts].map((part) => part.outerHTML.slice(0, 120));
})()"""
# What else is folded, such as alarms that are less urgent, opens on paper.
HIDDEN = """[...document.querySelectorAll("main .chart, main table, .alarms li")]
    .filter((part) => !part.checkVisibility())
    .filter((part) => matchMedia("print").matches || part.closest("main"))
    .map((part) => part.textContent.slice(0, 80))"""

# A closed fold hides its content, but not its summary.
_MARK_STOPS = """(() => {
    const stops = [...document.querySelectorAll("a[href], button, input, summary, [tabindex='0']")]
        .filter((part) => part.checkVisibility());
    stops.forEach((part, n) => { part.dataset.stop = n; });
    document.activeElement.blur();
    getSelection().removeAllRanges();
    return stops.length;
})()"""
_STOP = """(() => {
    const part = document.activeElement, style = getComputedStyle(part);
    return [part.dataset.stop, style.outlineStyle !== "none" && style.outlineWidth !== "0px"];
})()"""


def stops(shown: Browser) -> tuple[list[Any], list[Any]]:
    """What the Tab key reaches from the start of the page on: expected, and as it is.

    Each is the place of a link, fold, field or table, and whether one sees the focus.
    """
    expected = [[str(n), True] for n in range(shown.value(_MARK_STOPS))]
    reached = []
    for _ in expected:
        press(shown, "Tab")
        reached.append(shown.value(_STOP))
    return expected, reached


def press(shown: Browser, key: str) -> None:
    """Press and release a key."""
    typed = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
    text = {"text": typed} if typed else {}
    code = {"Tab": 9, "Enter": 13}.get(key) or ord(key)
    params = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    shown.ask("Input.dispatchKeyEvent", type="keyDown", **params, **text)
    shown.ask("Input.dispatchKeyEvent", type="keyUp", **params)
