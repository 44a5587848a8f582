"use strict";
// Elements are only ever made here, and text only ever becomes a text node: nothing in the data can become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== "") element.append(child);
  }
  return element;
}

const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const shape = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");

const META = JSON.parse(byId("meta").textContent);
const PAIR = META.kind === "compare";

// offsets count characters as Python does, where an emoji is one and not two
const cutOut = (text, start, end) => (/[\ud800-\udfff]/.test(text) ? [...text].slice(start, end).join("") : text.slice(start, end));

function valueOf(metric, value) {
  if (value === null || value === undefined) return "–";
  const unit = META.metrics[metric][2];
  if (unit === "%") return (100 * value).toFixed(1);
  return unit === "chars" || unit === "tokens" ? value.toFixed(0) : String(+value.toPrecision(4));
}
