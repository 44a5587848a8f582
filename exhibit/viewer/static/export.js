// What is shown as a file: the lines that match, as CSV, made here and sent nowhere.

function recordOf(index) {
  const line = lines[index];
  const record = {};
  META.facets.forEach((facet, at) => { record[facet.name] = facetOf(line, at); });
  META.fields.forEach((name) => { record[name] = line[FIELD[name]]; });
  return { ...record, labels: line[LABELS] };
}

// a cell that a spreadsheet would take for a formula is quoted with an apostrophe
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

async function exportShown() {
  await allLines();
  const records = Array.from({ length: shownCount() }, (_, place) => recordOf(indexAt(place)));
  const columns = [...META.facets.map((facet) => facet.name), ...META.fields, "labels"];
  const rows = [columns, ...records.map((record) => columns.map((name) => record[name]))];
  const text = `\ufeff${rows.map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`;
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = make("a", { href: address, download: "questions.csv" });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
