// The receipt to print.

document.getElementById("print")?.addEventListener("click", () => print());
