// Moments grow older while a page is open. The words are those of the server (views/times.py).
const LONG_AGO = 172800;

function duration(seconds) {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${String(seconds % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} m`;
}

export function ago(moment, now = Date.now()) {
  const seconds = Math.round((now - moment) / 1000);
  if (Math.abs(seconds) >= LONG_AGO) return null;
  if (Math.abs(seconds) < 1) return "now";
  const text = duration(Math.abs(seconds));
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

export function refreshTimes() {
  for (const each of document.querySelectorAll("time[data-ago]")) {
    const text = ago(Date.parse(each.dateTime));
    if (text !== null && each.textContent !== text) each.textContent = text;
  }
  for (const each of document.querySelectorAll("time[data-local]")) {
    const text = local(each.dateTime);
    if (each.textContent !== text) each.textContent = text;
    each.title = `${each.dateTime.slice(0, 19).replace("T", " ")} UTC`;
  }
}

// A time in the zone of the browser, with its offset: "2026-03-29 03:00:00 +02:00".
export function local(iso) {
  const moment = new Date(iso);
  const offset = -moment.getTimezoneOffset();
  const two = (number) => String(Math.abs(number)).padStart(2, "0");
  const shifted = new Date(moment.getTime() + offset * 60000).toISOString().slice(0, 19).replace("T", " ");
  return `${shifted} ${offset < 0 ? "-" : "+"}${two(Math.trunc(offset / 60))}:${two(offset % 60)}`;
}
