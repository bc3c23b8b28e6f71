// What every page does: say how long ago something was, and keep saying it.

const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "long" });

/**
 * Write times in relation to now; the exact one stays in the title.
 * @param {ParentNode} [place]
 */
export function tellTimes(place = document) {
  for (const element of place.querySelectorAll("time[datetime]:not(.exact)")) {
    const seconds = (Date.parse(element.getAttribute("datetime") ?? "") - Date.now()) / 1000;
    const unit = UNITS.find(([, size]) => Math.abs(seconds) >= Number(size));
    const said = unit
      ? words.format(Math.round(seconds / Number(unit[1])), /** @type {any} */ (unit[0]))
      : seconds > 0 ? "in less than a minute" : "just now";
    if (element.textContent !== said) element.textContent = said;
  }
}

tellTimes();
setInterval(tellTimes, 10_000);
