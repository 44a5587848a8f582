"use strict";
// Elements are only ever made here, and text only ever becomes a text node: nothing in the data can become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(2)) {
    if (child !== null && child !== undefined && child !== "") element.append(child);
  }
  return element;
}

const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const shape = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);

const DATA = JSON.parse(byId("data").textContent);

let pictures = null;
function pageOf(key) {
  // read when the first case is opened: most of the file is pictures
  pictures = pictures ?? JSON.parse(byId("pages").textContent);
  return pictures[key];
}

function valueOf(metric, value) {
  if (value === null || value === undefined) return "–";
  const unit = (DATA.names[metric] ?? ["", ""])[1];
  if (unit === "%") return (100 * value).toFixed(1);
  return unit === "chars" || unit === "tokens" ? value.toFixed(0) : String(+value.toPrecision(4));
}
