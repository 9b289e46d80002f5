"use strict";
const page = document.documentElement;
const state = document.getElementById("state");
const refreshMs = 1000 * Number(page.dataset.refreshS);
const focusable = "a, button, input, [tabindex]";

const replace = (text) => {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const main = document.querySelector("main");
  const unfolded = [...main.querySelectorAll("details")].map((part) => part.open);
  const place = [...main.querySelectorAll(focusable)].indexOf(document.activeElement);
  main.replaceWith(document.adoptNode(fresh.querySelector("main")));
  page.dataset.tag = fresh.documentElement.dataset.tag;
  document.title = fresh.title;
  if (place >= 0) {
    const next = document.querySelector("main").querySelectorAll(focusable)[place];
    if (next) next.focus({preventScroll: true});
  }
  document.querySelectorAll("main details").forEach((part, n) => { part.open = unfolded[n] ?? false; });
};

const refresh = async () => {
  if (document.visibilityState !== "visible") return;
  try {
    const known = {"If-None-Match": `"${page.dataset.tag}"`};
    const answer = await fetch(location.href, {headers: known, cache: "no-store"});
    if (answer.status === 401) location.reload();
    else if (answer.status === 200) replace(await answer.text());
    const when = new Date().toISOString().slice(11, 19);
    const news = answer.ok ? "there was news" : answer.status === 304 ? "no table changed" : `answer ${answer.status}`;
    state.textContent = `Asked at ${when} UTC: ${news}. The next time is in ${refreshMs / 1000} s.`;
  } catch {
    state.textContent = "quotaflow serve does not answer: this page may be old.";
  }
};
setInterval(refresh, refreshMs);
// The server may have sent the last page while it computes a new one.
setTimeout(refresh, 4000);
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, textarea, select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    document.getElementById("q").focus();
  }
});
