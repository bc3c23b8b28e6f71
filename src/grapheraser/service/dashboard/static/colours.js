// Colours of groups and of amounts, in light and dark, as numbers for WebGL and as text for CSS.

/** @typedef {[number, number, number]} Rgb each from 0 to 255 */

const GOLDEN = 137.508;
// Hues that are told apart best; further groups follow by the golden angle.
const HUES = [255, 45, 150, 310, 20, 200, 95, 345, 175, 280];

/** @returns {boolean} */
export const isDark = () => document.documentElement.dataset.dark === "true";

/** @param {() => void} listener called when the page turns light or dark */
export const onScheme = (listener) => addEventListener("theme", listener);

/**
 * The colour of one group of several.
 * @param {number} at from 0
 * @returns {Rgb}
 */
export function groupColour(at) {
  const hue = at < HUES.length ? HUES[at] : 20 + at * GOLDEN;
  const step = at < HUES.length ? (at % 2) * 0.06 : ((at % 3) - 1) * 0.08;
  return oklch((isDark() ? 0.76 : 0.6) + (isDark() ? -step : step), isDark() ? 0.13 : 0.16, hue);
}

/**
 * The colour of an amount: the more, the farther from the paper.
 * @param {number} share from 0 to 1
 * @returns {Rgb}
 */
export function amountColour(share) {
  const light = isDark() ? 0.42 + 0.46 * share : 0.84 - 0.5 * share;
  return oklch(light, 0.06 + 0.12 * share, 230 + 90 * share);
}

/** @returns {Rgb} of what is in no group */
export const noColour = () => (isDark() ? [110, 120, 132] : [150, 159, 170]);

/** @param {Rgb} rgb */
export const asText = (rgb) => `rgb(${rgb.map(Math.round).join(" ")})`;

/**
 * @param {string} name of a custom property, such as `--lit`
 * @returns {string}
 */
const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

/**
 * A custom property that is a colour such as `#1f2430`, as numbers from 0 to 1.
 * @param {string} name
 * @returns {number[]}
 */
export function tokenColour(name) {
  const digits = token(name).trim().slice(1);
  const wide = digits.length === 3 ? [...digits].map((digit) => digit + digit).join("") : digits;
  return [0, 2, 4].map((at) => parseInt(wide.slice(at, at + 2), 16) / 255);
}

/**
 * From OKLCH, where equal steps look equal, to sRGB.
 * @param {number} light @param {number} chroma @param {number} hue in degrees
 * @returns {Rgb}
 */
function oklch(light, chroma, hue) {
  const turn = (hue * Math.PI) / 180;
  const a = chroma * Math.cos(turn);
  const b = chroma * Math.sin(turn);
  const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return /** @type {Rgb} */ ([
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((linear) => {
    const value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
    return Math.round(255 * Math.min(1, Math.max(0, value)));
  }));
}
