/*
 * Elements made in one expression. What is written into them is text, never
 * markup.
 */

function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return filled(
    document.createElementNS("http://www.w3.org/2000/svg", tag),
    attributes,
    children,
  );
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/** Return the element of the page with this id. */
function at(id) {
  return document.getElementById(id);
}
