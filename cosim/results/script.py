"""The script of a page with tables to search: filters rows by words, sorts them by a column."""

SCRIPT = """
const scale = {p: 1e-12, n: 1e-9, u: 1e-6, m: 1e-3};
const size = text => { const [, number, prefix] = text.match(/^([-+.0-9e]+) ?([pnum]?)/) ?? [];
  return number === undefined ? -1 : Math.abs(number) * (scale[prefix] ?? 1); };
for (const part of document.querySelectorAll(".search")) {
  const box = part.querySelector("input"), body = part.querySelector("tbody"), count = part.querySelector("output");
  const rows = [...body.rows].map(row => [row, row.textContent.toLowerCase()]);
  const filter = () => {
    const words = box.value.toLowerCase().split(/\\s+/);
    let shown = 0;
    for (const [row, text] of rows) shown += !(row.hidden = !words.every(word => text.includes(word)));
    count.textContent = `${shown} of ${rows.length}`;
  };
  box.hidden = false;
  box.addEventListener("input", filter);
  filter();
  const heads = [...part.querySelectorAll("th")], order = new Intl.Collator("en", {numeric: true});
  heads.forEach((head, column) => {
    head.setAttribute("aria-sort", "none");
    head.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending", sign = down ? -1 : 1;
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const text = row => row.cells[column].textContent, numbers = head.classList.contains("n");
      rows.sort(([a], [b]) => sign * (numbers ? size(text(a)) - size(text(b)) : order.compare(text(a), text(b))));
      body.append(...rows.map(([row]) => row));
    });
  });
}
"""
