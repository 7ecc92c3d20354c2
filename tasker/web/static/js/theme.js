// Before the first paint: the theme that was chosen here, else the system's.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("tasker-theme"); } catch { /* storage is closed: the system's */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
