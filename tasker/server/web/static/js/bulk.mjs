// An action on many tasks continues automatically, one portion at a time, until it is stopped.
const PAUSE = 600;
const form = document.querySelector("[data-goes-on]");
if (form) {
  const stop = form.querySelector("[data-stop]");
  const words = form.querySelector("[data-by-itself]");
  stop.hidden = words.hidden = false;
  const next = setTimeout(() => form.requestSubmit(), PAUSE);
  stop.addEventListener("click", () => {
    clearTimeout(next);
    stop.hidden = words.hidden = true;
  });
}
