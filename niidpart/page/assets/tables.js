/* Tables that are sorted by a click on a heading, and filtered by words. */
const Tables = (() => {
  function readCell(row, column) {
    const cell = row.cells[column];
    if (!cell.hasAttribute("data-value")) return cell.textContent.trim();
    const text = cell.getAttribute("data-value");
    return text === "" ? null : Number(text);
  }

  /* What has no value comes last, whatever the order. */
  function compare(a, b, sign) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * String(a).localeCompare(String(b), "en", { numeric: true });
  }

  function sort(table, column, isDescending) {
    const body = table.tBodies[0];
    const sign = isDescending ? -1 : 1;
    const rows = [...body.rows].map((row) => [readCell(row, column), row]);
    rows.sort(([a, first], [b, second]) =>
      compare(a, b, sign) || first.dataset.place - second.dataset.place);
    body.append(...rows.map(([, row]) => row));
    [...table.tHead.rows[0].cells].forEach((cell, place) => {
      const order = isDescending ? "descending" : "ascending";
      cell.setAttribute("aria-sort", place === column ? order : "none");
    });
  }

  function restore(table) {
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => a.dataset.place - b.dataset.place);
    table.tBodies[0].append(...rows);
    for (const cell of table.tHead.rows[0].cells) cell.setAttribute("aria-sort", "none");
  }

  function show(table) {
    const asked = /^(\d+)(a|d)$/.exec(Address.get(`sort-${table.id}`));
    const last = table.tHead.rows[0].cells.length - 1;
    if (asked && Number(asked[1]) <= last) sort(table, Number(asked[1]), asked[2] === "d");
    else restore(table);
  }

  function choose(table, column) {
    const cell = table.tHead.rows[0].cells[column];
    const now = cell.getAttribute("aria-sort");
    const isNumber = table.tBodies[0].rows[0]?.cells[column].hasAttribute("data-value");
    const first = isNumber ? "descending" : "ascending";
    const other = isNumber ? "ascending" : "descending";
    const next = now === first ? other : first;
    Address.set(`sort-${table.id}`, `${column}${next[0]}`);
    show(table);
    announce(`sorted by ${cell.textContent.trim()}, ${next}`);
  }

  /* Make the headings of a table buttons. */
  function prepare(table) {
    [...table.tBodies[0].rows].forEach((row, place) => (row.dataset.place = place));
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      if (cell.hasAttribute("data-unsorted")) return;
      const button = make("button", { type: "button" }, ...cell.childNodes);
      cell.setAttribute("aria-sort", "none");
      cell.append(button);
      button.addEventListener("click", () => choose(table, column));
    });
  }

  /* Return a test: whether a text has all words. */
  function matchWords(words) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    return (text) => wanted.every((word) => text.toLowerCase().includes(word));
  }

  function filter(input) {
    const table = document.getElementById(input.dataset.filter);
    const matches = matchWords(input.value);
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) row.hidden = !matches(row.textContent);
    return rows.filter((row) => !row.hidden).length;
  }

  function prepareFilter(input) {
    const key = `filter-${input.dataset.filter}`;
    input.addEventListener("input", () => {
      Address.set(key, input.value);
      const n = filter(input);
      announce(n === 1 ? "1 row" : `${n} rows`);
    });
    Address.listen(() => {
      input.value = Address.get(key);
      filter(input);
    });
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    prepare(table);
    Address.listen(() => show(table));
  }
  for (const input of document.querySelectorAll("input[data-filter]")) prepareFilter(input);
  return { prepare, show, matchWords };
})();
