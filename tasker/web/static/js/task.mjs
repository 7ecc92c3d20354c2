// The page of a task: looks again when something has happened to it; makes the graph larger and smaller.
import { refresh } from "./app.mjs";

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

function prepare() {
  const zoom = document.querySelector("[data-zoom]");
  if (zoom) zoom.hidden = false;
  if (scale !== 1) zoomed(scale);
}

prepare();
document.body.addEventListener("htmx:afterSettle", prepare);
