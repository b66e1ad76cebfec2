// The contents start folded on a narrow screen.
const contents = document.querySelector("nav details");
const narrow = matchMedia("(max-width: 63.99rem)");
const fold = () => { contents.open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();
contents.addEventListener("click", event => {
  if (narrow.matches && event.target.closest("a")) contents.open = false;
});

// The script adds the buttons, so that a page without scripts shows none that do nothing.
for (const box of document.querySelectorAll(".copy")) {
  const button = document.createElement("button");
  const code = box.querySelector("code");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  box.append(button);
}
