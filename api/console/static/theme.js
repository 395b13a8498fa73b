// Before the page is drawn: the look that the reader has chosen; without a choice the system's.
"use strict";
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("ballast-theme"); } catch { /* storage is shut: the system's look stays */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
