// Builds elements. Every text goes through textContent, so that no text of the server becomes markup.
import {short} from "./format.js";

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick" || name === "onsubmit" || name === "onchange")
      element[name] = value;
    else if (value === true)
      element.setAttribute(name, "");
    else if (value !== false && value !== undefined)
      element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

// Changes a text only if it differs: a selection in it, and the work of a screen reader, stay.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// A message of the page in place of data: `kind` is "empty", "loading" or "error".
export function notice(kind, title, text = "", ...actions) {
  return el("div", {class: `notice ${kind}`}, el("p", {class: "notice-title"}, title),
      text ? el("p", {}, text) : undefined, ...actions);
}

// Tells screen readers, politely.
export function announce(text) { setText(document.getElementById("status"), text); }

function fill(cell, value = "") {
  if (typeof value !== "object") return setText(cell, short(String(value)));
  let link = cell.firstElementChild;
  if (!link) cell.replaceChildren(link = el("a"));
  if (link.getAttribute("href") !== value.href) link.setAttribute("href", value.href);
  setText(link, short(value.text));
}

// A table whose rows are kept between updates, so that a focused link keeps the focus. A column is
// {label, cell(row, index), class}; cell() returns a text, or {text, href}. A row has a unique `id`. On
// narrow screens the style shows each row as a card; the roles keep it a table for screen readers.
export class Table {
  constructor(caption, columns) {
    this.columns = columns;
    this.rows = new Map();
    this.body = el("tbody", {role: "rowgroup"});
    const heads =
        columns.map((c) => el("th", {scope: "col", role: "columnheader", class: c.class}, c.label));
    this.element = el("table", {role: "table"}, el("caption", {class: "visually-hidden"}, caption),
        el("thead", {role: "rowgroup"}, el("tr", {role: "row"}, ...heads)), this.body);
  }

  update(rows) {
    const wanted = new Set(rows.map((row) => row.id));
    for (const [id, line] of this.rows) {
      if (!wanted.has(id)) {
        line.remove();
        this.rows.delete(id);
      }
    }
    rows.forEach((row, index) => this.place(row, index));
  }

  place(row, index) {
    let line = this.rows.get(row.id);
    if (!line) {
      line = el("tr", {role: "row"},
          ...this.columns.map((c) => el("td", {role: "cell", "data-label": c.label, class: c.class})));
      this.rows.set(row.id, line);
    }
    this.columns.forEach((column, i) => fill(line.cells[i], column.cell(row, index)));
    if (this.body.children[index] !== line) this.body.insertBefore(line, this.body.children[index] ?? null);
  }
}
