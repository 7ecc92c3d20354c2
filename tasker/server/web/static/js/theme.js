// Before the first paint: the theme that was chosen here, else the system's; and what scripts can do here.
(() => {
  document.documentElement.dataset.scripts = "";
  if (navigator.clipboard) document.documentElement.dataset.clipboard = "";
  let chosen = null;
  try { chosen = localStorage.getItem("tasker-theme"); } catch { /* storage is closed: the system's */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
