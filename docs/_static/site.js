// Names that the theme leaves out or hides, for those who hear the page.
document.addEventListener("DOMContentLoaded", () => {
  const name = (selector, text) => {
    for (const one of document.querySelectorAll(selector)) one.setAttribute("aria-label", text(one));
  };
  name(".search-button-field", (button) => button.textContent.replace(/\s+/g, " ").trim());
  name(".bd-sidebar summary", () => "pages below");
  // On a phone each cell of a table with several columns has its heading before it.
  for (const table of document.querySelectorAll(".bd-article table")) {
    const heads = [...table.querySelectorAll("thead th")].map((one) => one.textContent.trim());
    if (heads.length < 3) continue;
    table.classList.add("stacks");
    if (heads.length > 6) document.body.classList.add("has-wide-table");
    for (const row of table.querySelectorAll("tbody tr"))
      [...row.children].forEach((cell, i) => heads[i] && cell.textContent.trim() && (cell.dataset.label = heads[i]));
  }
  // A number keeps its unit on its line: no break within "41 s" or "81.0 ± 1.4".
  const beforeUnit = /(\d|±) (?=(±|s|ms|µs|ns|min|h|B|kB|MB|GB|%)(?!\w)|(?<=± )\d)/g;
  for (const cell of document.querySelectorAll(".bd-article td")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(beforeUnit, "$1\u00a0");
  }
  name(".sphx-glr-thumbcontainer a", (link) => link.textContent.trim());
});
