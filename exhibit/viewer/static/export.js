// What is shown as a file: the lines that match, as CSV or JSON Lines, made here and sent nowhere.

function recordOf(index) {
  const line = lines[index];
  const record = {};
  META.facets.forEach((facet, at) => { record[facet.name] = facetOf(line, at); });
  META.fields.forEach((name) => { record[name] = line[FIELD[name]]; });
  const labels = {};
  for (let at = 0; at < line[LABELS].length; at += 2) {
    const one = META.labels[line[LABELS][at]];
    labels[one.name] = one.values[line[LABELS][at + 1]];
  }
  return { ...record, labels };
}

// a cell that a spreadsheet would take for a formula is quoted with an apostrophe
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

function download(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

async function exportShown(kind) {
  await allLines();
  const records = Array.from({ length: shownCount() }, (_, place) => recordOf(indexAt(place)));
  if (kind === "jsonl") {
    download("questions.jsonl", "application/x-ndjson", records.map((one) => `${JSON.stringify(one)}\n`).join(""));
    return;
  }
  const columns = [...META.facets.map((one) => one.name), ...META.fields, "labels"];
  const rows = [columns, ...records.map((one) => columns.map((name) => one[name]))];
  download("questions.csv", "text/csv", `\ufeff${rows.map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`);
}
