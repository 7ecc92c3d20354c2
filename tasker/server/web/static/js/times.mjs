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
}
