// Makes elements. Text goes in as text nodes, never as markup, so content cannot become code.

const SVG = "http://www.w3.org/2000/svg";

function setProps(node, props) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [type, listener] of Object.entries(value)) node.addEventListener(type, listener);
    else if (name === "style") for (const [key, item] of Object.entries(value)) node.style.setProperty(key, item);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "href") node.setAttribute("href", checkedLink(value));
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Return a link inside the page; there are no others. */
function checkedLink(href) {
  if (!String(href).startsWith("#")) throw new TypeError(`not a link inside this page: ${href}`);
  return href;
}

function appendAll(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

/** Make an HTML element. */
export function h(tag, props, ...children) {
  const node = document.createElement(tag);
  setProps(node, props);
  return appendAll(node, children);
}

/** Make an SVG element. */
export function s(tag, props, ...children) {
  const node = document.createElementNS(SVG, tag);
  setProps(node, props);
  return appendAll(node, children);
}

/** Replace the children of a node. */
export function replace(node, ...children) {
  node.replaceChildren();
  return appendAll(node, children);
}

/** Return a function that runs an action once, some time after it was first called; `cancel` stops it. */
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
