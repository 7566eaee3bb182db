// Sorting of tables by a click on the head of a column.
"use strict";
(function () {
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", function () {
        const numbers = head.classList.contains("n");
        const now = head.getAttribute("aria-sort");
        const up = now ? now === "descending" : !numbers;
        const value = function (row) {
          const cell = row.cells[column];
          return cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent;
        };
        const rows = Array.from(table.tBodies[0].rows).map(function (row) { return [value(row), row]; });
        rows.sort(function (a, b) {
          const both = typeof a[0] === "number" && typeof b[0] === "number";
          const order = both ? a[0] - b[0] : String(a[0]).localeCompare(String(b[0]), "en", { numeric: true });
          return up ? order : -order;
        });
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        table.tBodies[0].append(...rows.map(function (pair) { return pair[1]; }));
      });
    });
  }
})();
