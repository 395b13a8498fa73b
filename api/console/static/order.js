// Tables of plants are put in order by a column: a press on its head, and once more for the other way round.
"use strict";
(() => {
  const UNITS = { "": 1, "%": 1, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, ms: 1e-3, s: 1, min: 60, h: 3600 };
  const words = new Intl.Collator(undefined, { numeric: true });

  // A moment or a figure with its unit as a number, other words as they are; null where nothing is known.
  function valueOf(cell) {
    if (!cell) return null;
    const moment = cell.querySelector("time[datetime]");
    if (moment) return Date.parse(moment.dateTime);
    const text = cell.textContent.trim().replace(/(\d)\u202f(?=\d)/g, "$1");
    if (["", "–", "not told"].includes(text)) return null;
    const found = /^([-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|∞))\s*(\S*)$/.exec(text);
    if (!found || !(found[2] in UNITS)) return text;
    return Number(found[1].replace("∞", "Infinity")) * UNITS[found[2]];
  }

  function compare(one, other) {
    if (typeof one === "number" && typeof other === "number") return one < other ? -1 : Number(one > other);
    return words.compare(String(one), String(other));
  }

  // What is not known comes last, whichever way round.
  function order(table, column, down) {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, value: valueOf(row.cells[column]) }));
    const known = rows.filter((each) => each.value !== null);
    known.sort((one, other) => (down ? compare(other.value, one.value) : compare(one.value, other.value)));
    body.append(...[...known, ...rows.filter((each) => each.value === null)].map((each) => each.row));
  }

  function headed(table) {
    const heads = [...table.tHead.rows[0].cells];
    for (const head of heads) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "order";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.ariaSort === "ascending";
        order(table, head.cellIndex, down);
        for (const each of heads) each.ariaSort = null;
        head.ariaSort = down ? "descending" : "ascending";
      });
    }
  }

  for (const table of document.querySelectorAll("table[data-order]")) if (table.tBodies[0].rows.length > 1) headed(table);
})();
