// Shows an OpenAPI document. Text only ever becomes text nodes, so nothing in it can turn into markup.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

function code(text) {
  return element("code", {}, text);
}

// Text with `code` in it.
function prose(text) {
  return String(text ?? "").split("`").map((part, index) => (index % 2 ? code(part) : part));
}

function json(value) {
  return element("pre", {}, JSON.stringify(value, null, 2));
}

function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  const type = [].concat(schema.type ?? "any").join(" or ");
  return schema.format ? `${type} (${schema.format})` : type;
}

function table(headings, rows) {
  const row = (cells, kind) => element("tr", {}, ...cells.map((cell) => element(kind, {}, cell)));
  return element("table", {}, row(headings, "th"), ...rows.map((cells) => row(cells, "td")));
}

function parametersOf(parameters) {
  if (!parameters.length) return null;
  const rows = parameters.map((parameter) => [
    code(parameter.name),
    parameter.in + (parameter.required ? ", required" : ""),
    typeOf(parameter.schema),
    element("span", {}, ...prose(parameter.description)),
  ]);
  return element("section", {}, element("h4", {}, "Parameters"),
    table(["name", "in", "type", ""], rows));
}

function contentOf(content) {
  return Object.entries(content ?? {}).map(([type, media]) =>
    element("div", {},
      element("p", { className: "dim" }, `${type}: ${typeOf(media.schema)}`),
      media.example === undefined ? null
        : typeof media.example === "string" ? element("pre", {}, media.example) : json(media.example)));
}

function responsesOf(responses) {
  const rows = Object.entries(responses).map(([status, response]) => {
    const headers = Object.keys(response.headers ?? {}).filter((name) => name !== "X-Request-Id");
    const cell = element("div", {}, ...prose(response.description));
    if (headers.length) cell.append(element("div", { className: "dim" }, headers.join(", ")));
    if (status < 400) cell.append(...contentOf(response.content));
    return [code(status), cell];
  });
  return element("section", {}, element("h4", {}, "Answers"), table(["status", ""], rows));
}

function operation(path, method, described, shared) {
  const role = described["x-role"] ?? "no token needed";
  const body = described.requestBody;
  return element("details", { id: described.operationId },
    element("summary", {},
      element("span", { className: "method" }, method.toUpperCase()), code(path), " ",
      element("span", { className: "about" }, described.summary ?? "")),
    element("p", {}, ...prose(described.description)),
    element("p", { className: "dim" }, `Role: ${role}`),
    parametersOf([...shared, ...(described.parameters ?? [])]),
    body ? element("section", {}, element("h4", {}, "Body"), ...contentOf(body.content)) : null,
    responsesOf(described.responses));
}

function show(main, api) {
  const groups = new Map();
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((name) => item[name])) {
      const tag = item[method].tags?.[0] ?? "";
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(operation(path, method, item[method], []));
    }
  }
  const about = Object.fromEntries((api.tags ?? []).map((tag) => [tag.name, tag.description]));
  main.append(element("p", {}, ...prose(api.info.description)));
  for (const [tag, operations] of groups) {
    main.append(element("h2", {}, tag), element("p", {}, ...prose(about[tag])), ...operations);
  }
  main.append(element("h2", {}, "schemas"));
  for (const [name, schema] of Object.entries(api.components?.schemas ?? {})) {
    main.append(element("details", { id: `schema-${name}` },
      element("summary", {}, code(name)), json(schema)));
  }
}

async function start() {
  const main = document.getElementById("docs");
  try {
    const response = await fetch(main.dataset.document);
    show(main, await response.json());
  } catch (error) {
    main.append(element("p", { className: "error" }, `The document can't be shown: ${error}`));
  }
}

start();
