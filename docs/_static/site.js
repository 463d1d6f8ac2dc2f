// Names that the theme leaves out or hides, for those who hear the page.
document.addEventListener("DOMContentLoaded", () => {
  const name = (selector, text) => {
    for (const one of document.querySelectorAll(selector)) one.setAttribute("aria-label", text(one));
  };
  name(".search-button-field", (button) => button.textContent.replace(/\s+/g, " ").trim());
  name(".bd-sidebar summary", () => "pages below");
  name(".sphx-glr-thumbcontainer a", (link) => link.textContent.trim());
});
