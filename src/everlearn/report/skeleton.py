"""The page around a report: its style, its script and its frame."""

from __future__ import annotations

from string import Template

STYLE = """
body { max-width: 72rem; margin: 3rem auto; padding: 0 1.25rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { margin: 0; font-size: 2.2rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 3.5rem 0 0; font-size: 1.4rem; }
h3 { margin: 2rem 0 0; font-size: 1.05rem; }
p { max-width: 48rem; margin: .3rem 0 1rem; color: var(--faint); overflow-wrap: anywhere; }
.note { font-size: .85rem; }
.box { overflow-x: auto; }
.box svg { display: block; width: 100%; height: auto; min-width: 28rem; max-width: 46rem; }
.pair { display: grid; gap: 1rem 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.pair .box svg { min-width: 0; max-width: 37rem; }
figure { margin: 1rem 0; min-width: 0; }
figcaption { color: var(--faint); font-size: .9rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { border-bottom: 1px solid var(--rule); padding: .45rem 0 .45rem 1rem; text-align: right;
  white-space: nowrap; }
thead th { color: var(--faint); font-weight: 400; line-height: 1.3; vertical-align: bottom;
  white-space: normal; }
th:first-child { padding-left: 0; text-align: left; position: sticky; left: 0;
  background: var(--paper); }
tbody th { font-weight: 600; white-space: normal; min-width: 7rem; }
table.text td { text-align: left; white-space: normal; vertical-align: top; min-width: 5rem; }
table.text td:nth-child(3) { min-width: 13rem; }
table.text th { text-align: left; vertical-align: top; min-width: 0; }
a { color: var(--blue); }
.badge, .source { display: inline-block; padding: 0 .55rem; border: 1px solid var(--rule);
  border-radius: 1rem; font-size: .8rem; line-height: 1.5rem; white-space: nowrap; }
.badge { font-weight: 600; color: var(--ink); border-color: var(--tone); }
.badge::before { content: ""; display: inline-block; width: .6em; height: .6em;
  margin-right: .45em; border-radius: 50%; background: var(--tone); }
.better { --tone: var(--green); }
.equal { --tone: var(--blue); }
.worse { --tone: var(--vermilion); }
.not-comparable { --tone: var(--faint); }
.verdict { margin: .75rem 0; padding: .1rem 0 .1rem 1rem; border-left: 3px solid var(--rule); }
.verdict p { margin: 0; color: var(--ink); }
.verdict dl { margin: .4rem 0; }
.missing::before { content: "Missing: "; font-weight: 600; }
.cost { margin-bottom: 0; font-size: .85rem; }
details details { margin-left: 1rem; }
img { max-width: 100%; border: 1px solid var(--rule); border-radius: 8px; background: #fff; }
.copy { display: flex; gap: .5rem; align-items: start; margin: .75rem 0; }
.copy code, pre { flex: 1; min-width: 0; overflow-x: auto; margin: 0; padding: .5rem .75rem;
  border: 1px solid var(--rule); border-radius: 6px; white-space: pre;
  font: .8rem/1.5 ui-monospace, Menlo, Consolas, monospace; }
button { padding: .5rem .75rem; border: 1px solid var(--rule); border-radius: 6px;
  background: none; color: inherit; font: .8rem/1.5 inherit; cursor: pointer; }
details { border-bottom: 1px solid var(--rule); padding: .5rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem 1rem;
  margin: .75rem 0; font-size: .9rem; }
dt { color: var(--faint); }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { margin-top: 1.5rem; }
  h1 { font-size: 1.7rem; }
  .box { scrollbar-width: thin; }
  .stack thead { display: none; }
  .stack tr { display: block; padding: .6rem 0; border-bottom: 1px solid var(--rule); }
  .stack th, table.stack td { display: block; padding: .1rem 0; border: 0; }
  .stack td { overflow-wrap: anywhere; }
  .stack td::before { content: attr(data-head) ": "; color: var(--faint); }
}
"""

# The button is made by the script: without one there is none that does nothing.
SCRIPT = """
for (const box of document.querySelectorAll(".copy")) {
  const button = document.createElement("button"), code = box.querySelector("code");
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
"""

PAGE = Template(
    """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>$title</title>
<style>
$shades
$style</style>
<main>
<h1>$title</h1>
$sections
</main>
<script>$script</script>
</html>
"""
)
