// The page of a task: looks again when something has happened to it; shows steps; makes the graph larger and smaller.
import { refresh } from "./app.mjs";
import { refreshTimes } from "./times.mjs";

const SOON = 400;
let due = null;

function soon() {
  due ??= setTimeout(() => { due = null; refresh(); }, SOON);
}

const address = document.querySelector("#live")?.dataset.events;
if (address) {
  const events = new EventSource(address);  // comes back by itself when the server does
  events.addEventListener("transition", soon);
  events.addEventListener("progress", soon);
  events.addEventListener("end", () => { events.close(); soon(); });
  window.addEventListener("pagehide", () => events.close());
}

// A step is shown beside the views, without what the page shows already: a task may have thousands of steps.
let asked = 0;

async function show(address) {
  const mine = ++asked;
  const answer = await fetch(address, { headers: { "HX-Target": "beside" } }).catch(() => null);
  if (mine !== asked) return;
  if (!answer?.ok || answer.redirected) return location.assign(address);
  const text = await answer.text();
  const beside = document.querySelector("#beside");
  beside.innerHTML = text;
  history.pushState(null, "", address);
  refreshTimes();
  beside.querySelector("#drawer")?.focus({ preventScroll: true });
  if (beside.getBoundingClientRect().top < 0) beside.scrollIntoView();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-step]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  show(link.getAttribute("href"));
});

window.addEventListener("popstate", () => location.reload());

// The zoom of the graph survives a refresh of the page.
window.Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) => node.id !== "graph" || (name !== "width" && name !== "height");
let scale = 1;

function zoomed(by) {
  const graph = document.querySelector("#graph");
  if (!graph) return;
  scale = Math.min(3, Math.max(0.05, by));
  graph.setAttribute("width", Math.round(graph.dataset.width * scale));
  graph.setAttribute("height", Math.round(graph.dataset.height * scale));
}

function fitted() {
  const graph = document.querySelector("#graph");
  const room = document.querySelector("#graph-scroll");
  if (graph && room) zoomed(Math.min(1, (room.clientWidth - 4) / graph.dataset.width));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-zoom] button");
  if (!button) return;
  if ("zoomFit" in button.dataset) fitted();
  else zoomed(scale * Number(button.dataset.zoomBy));
});

document.body.addEventListener("htmx:afterSettle", () => zoomed(scale));
