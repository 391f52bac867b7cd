// The theme that was chosen, set before the first paint: "light", "dark", or none for the system's.
{
  let chosen = null;
  try { chosen = localStorage.getItem("rumq.theme"); } catch { /* storage is off: the system's */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
