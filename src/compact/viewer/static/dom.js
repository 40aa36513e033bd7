// Making elements. Text goes in as text nodes, never as markup, so content cannot become code.

const SVG = "http://www.w3.org/2000/svg";

function apply(node, props) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [type, listener] of Object.entries(value)) node.addEventListener(type, listener);
    else if (name === "style") for (const [key, item] of Object.entries(value)) node.style.setProperty(key, item);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "href") node.setAttribute("href", inside(value));
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
}

// Every link of the page leads to a place in the page.
function inside(href) {
  if (!String(href).startsWith("#")) throw new TypeError(`not a place in this page: ${href}`);
  return href;
}

function fill(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

export function h(tag, props, ...children) {
  const node = document.createElement(tag);
  apply(node, props);
  return fill(node, children);
}

export function s(tag, props, ...children) {
  const node = document.createElementNS(SVG, tag);
  apply(node, props);
  return fill(node, children);
}

export function replace(node, ...children) {
  node.replaceChildren();
  return fill(node, children);
}

export function debounce(action, milliseconds) {
  let timer = 0;
  const later = () => {
    if (!timer)
      timer = setTimeout(() => {
        timer = 0;
        action();
      }, milliseconds);
  };
  later.cancel = () => {
    clearTimeout(timer);
    timer = 0;
  };
  return later;
}

export const isNarrow = () => window.matchMedia("(max-width: 720px)").matches;
