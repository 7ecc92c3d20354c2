// What every page does: refreshes itself, answers keys, copies commands, says when the server is away.
import { refreshTimes } from "./times.mjs";

const EVERY = 5000;
const LONGEST = 10000;
const root = document.body.dataset.root;
const offline = document.querySelector("[data-offline]");
let stopped = false;
let lastAnswer = new Date();

// The page that tells why an action was refused stands at the address of the action, where nothing is to be read.
const address = document.querySelector("#live[data-address]")?.dataset.address;
if (address) history.replaceState(null, "", address);

function reading() {
  // Nothing moves under the eyes of who fills in a form, selects a text or confirms an action.
  const active = document.activeElement;
  const writes = active && active.closest("#live form") && active.matches("input, select, textarea");
  const selects = !(window.getSelection()?.isCollapsed ?? true);
  return writes || selects || document.querySelector("#live details.action[open], #live input:checked, dialog[open]") !== null;
}

// A page that takes long to draw is refreshed after three times as long, so that it stays usable.
let looking = null;
let again = false;
let due = null;
let notBefore = 0;

async function refresh() {
  const live = document.querySelector("#live[data-live]");
  if (!live || stopped || document.hidden || reading() || !window.htmx) return;
  if (looking) { again = true; return; }
  const began = performance.now();
  if (began < notBefore) {
    due ??= setTimeout(() => { due = null; refresh(); }, notBefore - began);
    return;
  }
  looking = location.href;
  await window.htmx.ajax("GET", looking, { target: "#live", select: "#live", swap: "morph:outerHTML" }).catch(() => {});
  looking = null;
  notBefore = performance.now() + Math.min(3 * (performance.now() - began), LONGEST);
  if (again) { again = false; refresh(); }
}

// What a look brings that is the same already is not gone through (a task may have thousands of steps), and what scripts
// have drawn is theirs.
window.Idiomorph.defaults.callbacks.beforeNodeMorphed = (old, fresh) => !("drawn" in (old.dataset ?? {})) && !old.isEqualNode(fresh);

// What was asked for another address than the page has by now, behind a step that was opened, is not shown; nor is what
// comes after the user has begun to type.
document.body.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "live" && (looking !== location.href || reading())) event.detail.shouldSwap = false;
});

function online(works, what = "The server does not answer.") {
  if (works) lastAnswer = new Date();
  if (!offline) return;
  offline.querySelector("[data-offline-what]").textContent = what;
  if (offline.hidden === works) return;
  offline.querySelector("[data-offline-since]").textContent = lastAnswer.toLocaleTimeString([], { hour12: false });
  offline.hidden = works;
}

document.body.addEventListener("htmx:sendError", () => online(false));
document.body.addEventListener("htmx:timeout", () => online(false));
document.body.addEventListener("htmx:afterRequest", (event) => {
  const status = event.detail.xhr?.status ?? 0;
  if (status === 401 || event.detail.xhr?.responseURL?.includes("/sign-in")) location.reload();
  else if (status) online(status < 500, status === 503 ? "The server answers, but cannot work now: its database may be away." : `The server answers with error ${status}.`);
});
document.body.addEventListener("htmx:afterSettle", refreshTimes);

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});

// Only one action is open at a time.
document.addEventListener("toggle", (event) => {
  if (!event.target.matches?.("details.action") || !event.target.open) return;
  for (const other of document.querySelectorAll("details.action[open]")) if (other !== event.target && !other.contains(event.target)) other.open = false;
}, true);

const help = document.querySelector("#help");
document.querySelector("[data-help]")?.addEventListener("click", (event) => {
  event.preventDefault();
  help.showModal();
});

function step(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const place = rows.indexOf(document.activeElement);
  rows[Math.min(rows.length - 1, Math.max(0, place + by))]?.focus();
}

let going = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea, [contenteditable]")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (going) {
    going = false;
    document.querySelector(`nav.sections a[data-key="${CSS.escape(event.key)}"]`)?.click();
    return;
  }
  if (event.key === "g") { going = true; setTimeout(() => { going = false; }, 1500); }
  else if (event.key === "/") { event.preventDefault(); document.querySelector("#search")?.focus(); }
  else if (event.key === "?") help.open || help.showModal();
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === ".") { stopped = !stopped; document.body.classList.toggle("stopped", stopped); }
  else if (event.key === "Escape") for (const each of document.querySelectorAll("details.action[open]")) each.open = false;
});

const theme = document.querySelector("[data-theme-switch]");
const system = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
const named = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
theme.hidden = false;
named();
system.addEventListener("change", named);
theme.addEventListener("click", () => {
  const chosen = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = chosen;
  try { localStorage.setItem("tasker-theme", chosen); } catch { /* for this page alone */ }
  named();
});

refreshTimes();
setInterval(refreshTimes, 1000);
setInterval(refresh, EVERY);
document.addEventListener("visibilitychange", refresh);
window.addEventListener("online", refresh);
export { refresh, root };
