// Light, dark, or as the system says: kept in this browser, applied before anything is painted.
// Stylesheets say what is dark by a media query, so that pages without scripts follow the system.

(() => {
  const THEMES = { system: "◐", light: "☀", dark: "☾" };
  const KEY = "theme";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  /** @type {Map<CSSMediaRule, string>} */
  const rules = new Map();

  const chosen = () => {
    const kept = localStorage.getItem(KEY);
    return kept !== null && kept in THEMES ? kept : "system";
  };

  function apply() {
    const theme = chosen();
    for (const sheet of document.styleSheets) {
      for (const rule of sheet.cssRules) {
        if (!(rule instanceof CSSMediaRule)) continue;
        if (rule.conditionText.includes("prefers-color-scheme: dark")) {
          rules.set(rule, rule.conditionText);
        }
      }
    }
    for (const [rule, condition] of rules) {
      rule.media.mediaText = theme === "system" ? condition : theme === "dark" ? "all" : "not all";
    }
    const root = document.documentElement;
    root.style.colorScheme = theme === "system" ? "" : theme;
    root.dataset.dark = String(theme === "system" ? dark.matches : theme === "dark");
    const button = document.getElementById("theme");
    if (button !== null) {
      button.textContent = THEMES[/** @type {keyof typeof THEMES} */ (theme)];
      button.setAttribute("aria-label", `Theme: ${theme === "system" ? "as the system" : theme}`);
      button.title = button.getAttribute("aria-label") ?? "";
    }
    dispatchEvent(new Event("theme"));
  }

  apply();
  dark.addEventListener("change", apply);
  addEventListener("storage", apply); // chosen in another window
  addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme")?.addEventListener("click", () => {
      const names = Object.keys(THEMES);
      localStorage.setItem(KEY, names[(names.indexOf(chosen()) + 1) % names.length]);
      apply();
    });
  });
})();
