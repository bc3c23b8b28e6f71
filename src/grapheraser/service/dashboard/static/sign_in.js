// A link that signs in once: its token is in the fragment, which the browser keeps to itself.

const token = new URLSearchParams(location.hash.slice(1)).get("once");
const form = document.querySelector("form");
if (token && form) {
  history.replaceState(null, "", location.pathname + location.search);
  /** @type {HTMLInputElement} */ (form.elements.namedItem("once")).value = token;
  form.submit();
}
